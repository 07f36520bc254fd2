"""People, not rows, from the shell."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

BUDGET = ("--eps", "4", "--delta", "0.001", "--seed", "1", "--dataset", "d", "-q", "--force")
UNIT = ("--unit", "who", "--max-rows-per-unit", "4")
FACTS = ("--n-rows", "300", "--n-units", "40", "--labels", "0,1")
TABLE = ("--label", "y", *UNIT, *FACTS)


@pytest.fixture(autouse=True)
def _tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 40 people, in no order: as a table and, the same, in LIBSVM."""
    monkeypatch.chdir(tmp_path)
    chance = random.Random(0)
    table, lines = ["who,a,b,y"], []
    for i in range(300):
        who, a, b = i if i < 40 else chance.randrange(40), chance.random(), chance.random()
        table.append(f"{who},{a:.3f},{b:.3f},{int(a > b)}")
        lines.append(f"{int(a > b)} qid:{who} 1:{a:.3f} 2:{b:.3f}")
    Path("d.csv").write_text("\n".join(table) + "\n", encoding="utf-8")
    Path("d.svm").write_text("\n".join(lines) + "\n", encoding="utf-8")
    read = pacsv.read_csv("d.csv")
    pq.write_table(read, "d.parquet")
    texts = read.set_column(0, "who", read["who"].cast(pa.string()).dictionary_encode())
    pq.write_table(texts, "text.parquet")


def fitted(dpfit: Any, *args: str) -> dict[str, Any]:
    """Coefficients of a seeded run."""
    outcome = dpfit.here("fit", *BUDGET, "-o", "m.json", *args)
    assert outcome.status == 0, outcome.err
    return json.loads(Path("m.json").read_text(encoding="utf-8"))


def numbers(model: dict[str, Any]) -> object:
    return model["coefficients"], model["intercept"]


def values(model: dict[str, Any]) -> object:
    """Whatever the columns are called."""
    return model["coefficients"]["values"], model["intercept"]


def test_formats_agree(dpfit: Any) -> None:
    """A unit's identifier is a text, or the digits of a number, in CSV, Parquet and LIBSVM."""
    expected = values(fitted(dpfit, "d.csv", *TABLE))
    for name in ("d.parquet", "text.parquet"):
        assert values(fitted(dpfit, name, *TABLE)) == expected
    sparse = ("--unit", "qid", *UNIT[2:], *FACTS, "--index-base", "1", "--n-features", "2")
    assert values(fitted(dpfit, "d.svm", *sparse)) == expected


def test_order_threads_and_storage_change_nothing(dpfit: Any, tmp_path: Path) -> None:
    """To the bit."""
    expected = numbers(fitted(dpfit, "d.csv", *TABLE, "--threads", "1"))
    assert numbers(fitted(dpfit, "d.csv", *TABLE, "--threads", "3")) == expected
    assert numbers(fitted(dpfit, "d.csv", *TABLE, "--cache", str(tmp_path))) == expected
    head, *rows = Path("d.csv").read_text(encoding="utf-8").splitlines()
    random.Random(1).shuffle(rows)
    Path("e.csv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    assert numbers(fitted(dpfit, "e.csv", *TABLE)) == expected


def test_the_ledger_names_the_unit(dpfit: Any) -> None:
    """And what is public about it; so does the model, and ``dpfit budget``."""
    model = fitted(dpfit, "d.csv", *TABLE, "--ledger", "l.json")
    entry = json.loads(dpfit.here("budget", "l.json", "--json").out)["entries"][0]
    assert (entry["record"], entry["unit"]) == ("unit", "who")
    assert "(replace-one of a unit: who)" in dpfit.here("budget", "l.json").out
    facts = model["provenance"]["public_facts"]
    assert facts["units"] == {"value": 40, "origin": "declared"}
    assert facts["max_rows_per_unit"] == {"value": 4, "origin": "declared"}
    assert facts["unit_clip"] == {"value": 1.0, "origin": "default"}


def test_delta_is_for_units(dpfit: Any) -> None:
    """It is too large by their number, which is below that of rows."""
    asked = ("fit", "d.csv", "--eps", "1", *TABLE, "--dry-run", "--delta")
    assert "above 1/units: a whole unit may leak" in dpfit.here(*asked, "0.03").err
    assert "above" not in dpfit.here(*asked, "0.02").err


def fitted_for(dpfit: Any, *units: str | None) -> None:
    """One run for each, rows where it is None, on one ledger."""
    asked = ("--eps", "1", "--delta", "1e-5", "--ledger", "l.json", "-o", "m.json", "--force")
    for unit in units:
        of_unit = () if unit is None else ("--unit", unit, *UNIT[2:])
        run = (*of_unit, "--n-rows", "300", "--labels", "0,1", "--label", "y")
        assert dpfit.here("fit", "d.csv", *run, *asked).status == 0


def test_costs_for_different_units_are_not_one(dpfit: Any) -> None:
    """``dpfit budget`` tells what was spent under each name and, as all may be of the same people,
    under all; how many runs that are, and what the total of all of them is for."""
    fitted_for(dpfit, "who", "who", "a", None)
    report = json.loads(dpfit.here("budget", "l.json", "--json", "--delta", "1e-5").out)
    named = [(spent["record"], spent.get("unit"), spent["runs"]) for spent in report["protected"]]
    assert named == [("unit", "who", 2), ("unit", "a", 1), ("row", None, 1)]
    squared = [spent["mu"] ** 2 for spent in report["protected"]]
    assert squared[0] == pytest.approx(2 * squared[1])
    together = report["whole_units"]
    assert together["names"] == [{"record": "unit", "unit": name} for name in ("who", "a")]
    assert (together["runs"], together["mu"] ** 2) == (3, pytest.approx(3 * squared[1]))
    assert report["total"]["mu"] ** 2 == pytest.approx(sum(squared))
    text = dpfit.here("budget", "l.json").out
    assert "spent on a unit: who (replace-one)" in text
    assert "2 of 4; the others have another name or are for rows" in text
    assert "spent on whoever is one unit under all names (replace-one)" in text
    assert "names                   unit: who, unit: a" in text
    assert "3 of 4; the others do not protect a whole unit" in text
    assert "a single row, by all runs" in text
    removed = dpfit.here("budget", "l.json", "--adjacency", "add-remove").out
    assert "nothing by itself: the runs are for different records" in removed


def test_the_picture_says_what_was_spent_on_whom(dpfit: Any) -> None:
    """``--plot`` draws the sum of all runs, says for whom it holds, and what the others come to."""
    fitted_for(dpfit, "who", None)
    (units,) = json.loads(dpfit.here("budget", "l.json", "--json").out)["whole_units"]["names"]
    assert units == {"record": "unit", "unit": "who"}
    text = dpfit.here("budget", "l.json").out
    assert "1 of 2; the others do not protect a whole unit" in text
    assert "under all names" not in text
    drawn = dpfit.here("budget", "l.json", "--plot", "--delta", "1e-5").out
    *_, total, of_total, on_unit = drawn.splitlines()
    assert total.startswith("2 runs spent epsilon 1.47 at delta 1e-05")
    assert of_total == "this sum protects a single row, by all runs"
    said = "spent on a unit: who: epsilon 1 at delta 1e-05 (replace-one) by 1 of 2 runs; "
    assert on_unit == said + "the others do not protect a whole unit"


def test_costs_for_one_unit_are_one(dpfit: Any) -> None:
    """No more is said than of rows."""
    fitted(dpfit, "d.csv", *TABLE, "--ledger", "l.json")
    text = dpfit.here("budget", "l.json").out
    assert "spent in total" in text
    assert "spent on a" not in text


def test_a_model_predicts_with_and_without_the_column(dpfit: Any) -> None:
    """The unit is no feature."""
    model = fitted(dpfit, "d.csv", *TABLE)
    assert [c["name"] for c in model["features"]["columns"]["columns"]] == ["a", "b"]
    with_unit = dpfit.here("predict", "m.json", "d.csv")
    rows = [line.split(",", 1)[1] for line in Path("d.csv").read_text().splitlines()]
    Path("bare.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    assert with_unit.status == 0
    assert dpfit.here("predict", "m.json", "bare.csv").out == with_unit.out


@pytest.mark.parametrize(
    "options",
    [
        ("--loss", "squared", "--target-range", "0", "1"),
        ("--loss", "huber", "--target-range", "0", "1"),
        ("--loss", "poisson", "--target-range", "0", "1", "--offset", "b"),
        ("--loss", "multinomial", "--labels", "0,1"),
        ("--algo", "dp-ight", "--sparsity", "1", "--weight", "b", "--max-weight", "1"),
        ("--no-intercept",),
    ],
)
def test_every_loss_of_the_algorithms_for_units(dpfit: Any, options: tuple[str, ...]) -> None:
    """With weights, offsets, and without an intercept or noise."""
    fitted(dpfit, "d.csv", "--label", "y", *UNIT, *options)


def test_the_originals_clip_units_too(dpfit: Any) -> None:
    """Without noise the result depends on the number of rows that take part."""
    found = []
    for most in ("1", "9"):
        asked = ("--label", "y", "--unit", "who", "--max-rows-per-unit", most)
        done = dpfit.here("fit", "d.csv", *asked, "--algo", "gd", "-o", "m.json", "--force")
        assert done.status == 0, done.err
        found.append(numbers(json.loads(Path("m.json").read_text(encoding="utf-8"))))
    assert found[0] != found[1]


def test_a_column_may_have_the_role(dpfit: Any) -> None:
    """In a schema file, instead of the option."""
    Path("s.toml").write_text('label = "y"\n[columns]\nwho = { role = "unit" }\n', encoding="utf-8")
    by_role = fitted(dpfit, "d.csv", "--schema", "s.toml", *UNIT[2:], *FACTS)
    assert numbers(by_role) == numbers(fitted(dpfit, "d.csv", *TABLE))


def test_strict_wants_the_number_of_units(dpfit: Any) -> None:
    """As any other public fact."""
    outcome = dpfit.here("fit", *BUDGET, "d.csv", "--label", "y", *UNIT, "--strict")
    assert outcome.status == 4
    assert "--n-units" in outcome.err


def test_the_number_of_rows_is_a_divisor_and_that_of_units_is_checked(dpfit: Any) -> None:
    """Under replace-one; under add-remove both are divisors."""
    fitted(dpfit, "d.csv", *TABLE, "--n-rows", "250")
    wrong = ("fit", *BUDGET, "d.csv", *TABLE, "--n-units", "41")
    assert "does not hold the declared number of units" in dpfit.here(*wrong).err
    fitted(dpfit, "d.csv", *TABLE, "--n-units", "41", "--adjacency", "add-remove")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--unit", "who"), "--unit needs --max-rows-per-unit"),
        (("--max-rows-per-unit", "3"), "--max-rows-per-unit needs --unit"),
        (("--unit-clip", "3"), "--unit-clip needs --unit"),
        (("--n-units", "3"), "--n-units needs --unit"),
        (("--unit", "who", "--max-rows-per-unit", "0"), "between 1 and"),
        ((*UNIT, "--unit-clip", "5"), "at most --max-rows-per-unit"),
        ((*UNIT, "--algo", "dp-screen"), "with --unit choose dp-ight or dp-gd"),
        ((*UNIT, "--algo", "dp-iht", "--sparsity", "1"), "protects rows, not units"),
        ((*UNIT, "--loss", "absolute"), "--loss absolute has no algorithm for --unit"),
        (("--unit", "nobody", *UNIT[2:]), "the unit column 'nobody' is not among the columns"),
        (("--unit", "y", *UNIT[2:]), "cannot be both the label and the unit"),
        (
            (*UNIT, "--algo", "dp-ight", "--sparsity", "1", "--calibration", "paper"),
            "no paper prints a noise for units",
        ),
    ],
)
def test_what_is_refused(dpfit: Any, options: tuple[str, ...], message: str) -> None:
    """In one line, before anything is spent."""
    outcome = dpfit.here("fit", *BUDGET, "d.csv", "--label", "y", *options)
    assert outcome.status != 0
    assert message in outcome.err
    assert not list(Path().glob("*.ledger.json"))


def test_every_record_needs_its_unit(dpfit: Any) -> None:
    """An empty cell, a null and a line without its qid are errors that tell the place."""
    with open("d.csv", "a", encoding="utf-8") as stream:
        stream.write(",0.5,0.5,1\n")
    outcome = dpfit.here("fit", *BUDGET, "d.csv", *TABLE)
    assert outcome.status == 3
    assert "d.csv:302: column 'who' (field 1) is empty" in outcome.err
    with open("d.svm", "a", encoding="utf-8") as stream:
        stream.write("1 1:1\n")
    outcome = dpfit.here("fit", *BUDGET, "d.svm", "--unit", "qid", *UNIT[2:])
    assert "d.svm:301: the record has no qid" in outcome.err
    table = pa.table({"who": [1, None], "a": [1.0, 2.0], "y": [0, 1]})
    pq.write_table(table, "null.parquet")
    outcome = dpfit.here("fit", *BUDGET, "null.parquet", "--label", "y", *UNIT)
    assert "column 'who' is empty (row 2)" in outcome.err


def test_an_audit_of_units(dpfit: Any) -> None:
    """The canary is a unit with all rows that it may have; the claim holds."""
    asked = ("audit", "--algo", "dp-gd", "--max-rows-per-unit", "3", "--iterations", "1")
    fast = ("--trials", "40", "--rows", "20", "--seed", "1", "--eps", "4", "--delta", "1e-5")
    outcome = dpfit.here(*asked, *fast)
    assert outcome.status == 0, outcome.err
    assert "for rows, not for units" in dpfit.here(*asked, *fast, "--attack", "one-run").err
    data = ("--data", "d.csv", "--label", "y", "--unit", "who")
    among = dpfit.here("audit", "--max-rows-per-unit", "3", *fast[:2], *fast[4:], *data)
    assert "an audit for units has synthetic records" in among.err
