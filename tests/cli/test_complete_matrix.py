"""Matrix completion from the shell: budgets, refusals, formats, and what the model file carries."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpfit.files.factor_model import read_factor_model
from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.events import NonPrivateEvent, event_from_json

USERS, ITEMS = 200, 12
COLUMNS = ("--user", "u", "--item", "i", "--value", "v", "--range", "1", "5")
FACTS = ("--n-users", str(USERS), "--items", "items.txt", "--strict")
BUDGET = ("--eps", "5", "--delta", "1e-4")
MODEL, LEDGER = "r.factors.parquet", "r.ledger.json"


def ratings() -> list[tuple[int, int, float]]:
    """Each user's ratings follow the item, the user's own level and chance."""
    chance, rows = random.Random(4), []
    for user in range(1, USERS + 1):
        level = chance.uniform(-1.0, 1.0)
        for item in sorted(chance.sample(range(1, ITEMS + 1), 6)):
            value = 3.0 + level + (item - 6) / 6 + chance.uniform(-0.5, 0.5)
            rows.append((user, item, round(min(max(value, 1.0), 5.0), 2)))
    return rows


ROWS = ratings()


def csv(rows: list[tuple[int, int, float]], delimiter: str = ",") -> str:
    return "".join(f"{delimiter.join(map(str, row))}\n" for row in [("u", "i", "v"), *rows])


@pytest.fixture(autouse=True)
def _files(dpfit: Any) -> None:
    Path("r.csv").write_text(csv(ROWS), encoding="utf-8")
    Path("items.txt").write_text("".join(f"{i}\n" for i in range(1, ITEMS + 1)), encoding="utf-8")


def complete(dpfit: Any, *args: str, source: str = "r.csv") -> Any:
    """Run and return the JSON report."""
    outcome = dpfit.here("complete-matrix", *COLUMNS, *args, source, "--json", "--force")
    assert outcome.status == 0, outcome.err
    return json.loads(outcome.out)


def refused(dpfit: Any, status: int, said: str, *args: str) -> None:
    """One line of error, nothing charged, no model."""
    outcome = dpfit.here("complete-matrix", *args)
    assert (outcome.status, outcome.out) == (status, ""), outcome.err
    assert said in outcome.err.splitlines()[0]
    assert not {MODEL, LEDGER} & dpfit.names()


# --- the promise ---------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize(
    ("noise", "eps", "delta"),
    [
        ("gaussian", 2.0, 1e-4),
        ("laplace", 2.0, 1e-4),
        ("huber", 2.0, 1e-4),
        ("laplace", 8.0, None),
        ("huber", 8.0, None),
    ],
)
def test_the_whole_budget_and_no_more(
    dpfit: Any, adjacency: Adjacency, noise: str, eps: float, delta: float | None
) -> None:
    """The events of ledger and model recompute to at most the epsilon that was asked for."""
    budget = ["--eps", str(eps)] + (["--delta", str(delta)] if delta else [])
    report = complete(dpfit, *FACTS, *budget, "--noise", noise, "--adjacency", str(adjacency))
    events = [event_from_json(event) for event in report["events"]]
    epsilon = compose(events, adjacency).epsilon(delta or 0.0)
    assert 0.97 * eps < epsilon <= eps
    assert report["charge"]["epsilon"] == epsilon
    entry = dpfit.json(LEDGER)["entries"][0]
    model = read_factor_model(MODEL)
    assert entry["events"] == report["events"] == model.provenance["events"]
    assert (entry["record"], entry["adjacency"]) == ("user", str(adjacency))
    assert model.private


@pytest.mark.parametrize("budget", [("--rho", "0.3"), ("--mu", "0.8")])
def test_other_budgets(dpfit: Any, budget: tuple[str, str]) -> None:
    """--rho and --mu stand in for eps and delta, and the charge never exceeds them."""
    charge = complete(dpfit, *FACTS, *budget)["charge"]
    found = charge[budget[0].removeprefix("--")]
    assert 0.999 * float(budget[1]) < found <= float(budget[1])


def test_add_remove_is_the_default_and_is_shown(dpfit: Any) -> None:
    """In the help and in the report."""
    helped = dpfit.here("complete-matrix", "--help").out
    assert "[default: add-remove]" in " ".join(helped.split())
    assert complete(dpfit, *FACTS, *BUDGET)["adjacency"] == "add-remove"


def test_every_user_moves_what_is_charged_not_every_rating(dpfit: Any) -> None:
    """The noise does not grow with how much a user rates: the charge is for whole users."""
    heavy = [(1, item, 5.0) for item in range(1, ITEMS + 1)]
    Path("h.csv").write_text(csv(heavy), encoding="utf-8")
    plans = [
        complete(dpfit, *FACTS, *BUDGET, "--dry-run", source=name)["events"]
        for name in ("r.csv", "h.csv")
    ]
    assert plans[0] == plans[1]


def test_assumed_facts_are_said_in_one_line(dpfit: Any) -> None:
    """Users and items that were not declared; with them declared a run says nothing."""
    args = ("complete-matrix", *COLUMNS, *BUDGET, "--rank", "0", "r.csv")
    outcome = dpfit.here(*args)
    said = "dpfit: assumed from the data and taken as public: users=200 (--n-users), "
    assert outcome.err == said + "items=12 (--items)\n"
    assert dpfit.here(*args, *FACTS, "--force").err == ""
    facts = dpfit.json(LEDGER)["entries"][0]["public_facts"]
    assert facts["items"] == {"value": 12, "origin": "assumed"}


def test_a_small_budget_falls_back_to_biases_and_says_so(dpfit: Any) -> None:
    """The model then has no factors; asked for with --rank 0 there is nothing to say."""
    args = ("complete-matrix", *COLUMNS, *FACTS, "--eps", "0.1", "--delta", "1e-4", "r.csv")
    assert "item biases only" in dpfit.here(*args).err
    assert read_factor_model(MODEL).rank == 0
    assert dpfit.here(*args, "--rank", "0", "--force").err == ""


def test_without_factors_in_the_data_there_are_none_in_the_model(dpfit: Any) -> None:
    """What is given up on the way, on released values, is said."""
    args = ("complete-matrix", *COLUMNS, *FACTS, *BUDGET, "--seed", "1", "r.csv")
    assert "no factors stood out of the noise" in dpfit.here(*args).err
    assert read_factor_model(MODEL).rank == 0


def test_a_whole_user_may_leak_at_a_large_delta(dpfit: Any) -> None:
    """A delta above 1/users is warned of."""
    args = ("complete-matrix", *COLUMNS, *FACTS, "--eps", "5", "--delta", "0.01", "r.csv")
    assert "above 1/users: a whole user may leak" in dpfit.here(*args).err


def test_shares_of_the_budget_are_told_when_asked(dpfit: Any) -> None:
    """By label, in ledger, model and report; they sum to one and match the events."""
    report = complete(dpfit, *FACTS, *BUDGET, "--budget-report")
    shares = report["budget_shares"]
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares.keys() == {event["label"] for event in report["events"]}
    assert dpfit.json(LEDGER)["entries"][0]["budget_shares"] == shares
    assert read_factor_model(MODEL).provenance["budget_shares"] == shares
    whole = compose(map(event_from_json, report["events"]), Adjacency.ADD_REMOVE).gaussian
    assert whole is not None
    for event in map(event_from_json, report["events"]):
        part = compose([event], Adjacency.ADD_REMOVE).gaussian
        assert part is not None
        assert float(part / whole) == pytest.approx(shares[event.label], rel=1e-3)
    shown = dpfit.here("complete-matrix", *COLUMNS, *FACTS, *BUDGET, "--dry-run", "r.csv").out
    assert "item sums" in shown
    assert " %" not in shown
    assert "budget_shares" not in complete(dpfit, *FACTS, *BUDGET)


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "no privacy budget was given"),
        (("--eps", "1"), "Gaussian noise needs --delta"),
        (("--mu", "1", "--noise", "laplace"), "budget in mu"),
        (("--eps", "1", "--delta", "1e-6", "--rho", "1"), "more than one privacy budget"),
        ((*BUDGET, "--noise", "cauchy"), "--noise 'cauchy' is not known"),
        ((*BUDGET, "--algo", "svd"), "--algo 'svd' is not known"),
        ((*BUDGET, "--loss", "absolute"), "--loss 'absolute' is not known"),
        ((*BUDGET, "--rank", "65"), "--rank must lie between 0 and 64"),
        ((*BUDGET, "--rank", "-1"), "--rank must lie"),
        ((*BUDGET, "--sweeps", "0"), "--sweeps must lie"),
        ((*BUDGET, "--passes", "0"), "--passes must lie"),
        ((*BUDGET, "--max-per-user", "nan"), "--max-per-user must lie"),
        ((*BUDGET, "--n-users", "0"), "--n-users must lie"),
        ((*BUDGET, "--huber-knee", "2"), "belongs to --noise huber"),
        ((*BUDGET, "--huber-threshold", "1"), "belongs to --loss huber"),
        ((*BUDGET, "--range", "5", "1"), "--range needs two finite numbers"),
        ((*BUDGET, "--range", "nan", "1"), "--range needs two finite numbers"),
        ((*BUDGET, "--user", "i"), "cannot be both the user and the item"),
        ((*BUDGET, "--non-private", "--seed", "1"), "takes no seed"),
        (("--algo", "als", "--loss", "huber"), "--algo als has --loss squared"),
        ((*BUDGET, "-o", "r.csv"), "is a file of this run"),
        ((*BUDGET, "-o", "items.txt", "--items", "items.txt"), "is a file of this run"),
        ((*BUDGET, "--ledger", "items.txt", "--items", "items.txt"), "is a file of this run"),
        ((*BUDGET, "--json", "-o", "-"), "both want standard output"),
    ],
)
def test_nonsense_is_refused_before_reading(dpfit: Any, args: tuple[str, ...], said: str) -> None:
    """With status 2, though the file itself would be an error of status 3."""
    Path("r.csv").write_text("u,i,v\n1,2,not a number\n", encoding="utf-8")
    refused(dpfit, 2, said, *COLUMNS, *args, "r.csv")


def test_bounds_and_columns_must_be_declared(dpfit: Any) -> None:
    """Neither is ever read off the data."""
    refused(dpfit, 2, "bounds of a rating", *COLUMNS[:6], *BUDGET, "r.csv")
    refused(
        dpfit,
        2,
        "the value column is not named",
        *COLUMNS[:4],
        "--range",
        "1",
        "5",
        *BUDGET,
        "r.csv",
    )
    matrix = "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 3\n"
    Path("m.mtx").write_text(matrix, encoding="utf-8")
    refused(dpfit, 2, "--user names a column", *COLUMNS, *BUDGET, "m.mtx")


def test_strict_names_every_missing_fact_at_once(dpfit: Any) -> None:
    """Before the data are read."""
    Path("r.csv").write_text("u,i,v\n1,2,not a number\n", encoding="utf-8")
    args = (*COLUMNS, *BUDGET, "--strict", "r.csv")
    refused(dpfit, 4, "--strict: not declared: --n-users, --items", *args)
    refused(dpfit, 4, "--strict: not declared: --items", *args, "--n-users", "5")


@pytest.mark.parametrize("declared", [(), FACTS])
def test_a_cap_refuses_before_reading(dpfit: Any, declared: tuple[str, ...]) -> None:
    """With status 4; and nothing is added to the ledger."""
    cap = ("--cap-eps", "6", "--cap-delta", "1e-4", "--adjacency", "add-remove")
    assert dpfit.here("budget", LEDGER, *cap).status == 0
    complete(dpfit, *declared, *BUDGET)
    before = dpfit.read(LEDGER)
    Path("r.csv").write_text("u,i,v\n1,2,not a number\n", encoding="utf-8")
    for more in ((), ("--dry-run",), ("--non-private",), ("--seed", "1")):
        args = (*COLUMNS, *declared, *BUDGET, *more, "--force", "r.csv")
        outcome = dpfit.here("complete-matrix", *args)
        assert (outcome.status, outcome.out) == (4, ""), outcome.err
    assert dpfit.read(LEDGER) == before


@pytest.mark.parametrize("noise", ["laplace", "huber"])
def test_hopeless_pure_budgets_are_refused_with_a_reason(dpfit: Any, noise: str) -> None:
    """It says how far off the noise is."""
    args = (*COLUMNS, *FACTS, "--eps", "0.005", "--noise", noise, "r.csv")
    refused(dpfit, 4, f"pure epsilon with {noise} noise is hopeless here", *args)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("u,i,v\n1,2,3\n1,2,x\n", "r.csv:3: "),
        ("u,i,v\n1,2,\n", "r.csv:2: "),
        ("u,i,v\n1,2,3\n1,2,4\n", "r.csv:3: a user rates an item for the second time"),
        ("u,i,v\n1,77,3\n", "r.csv:2: "),
        ("u,i,v\n", "holds no ratings"),
        ("u,i\n1,2\n", "r.csv"),
    ],
)
def test_bad_files_cost_nothing(dpfit: Any, content: str, said: str) -> None:
    """Status 3, with the line, without a value."""
    Path("r.csv").write_text(content, encoding="utf-8")
    refused(dpfit, 3, said, *COLUMNS, *FACTS, *BUDGET, "r.csv")


def test_more_users_than_declared_is_an_error(dpfit: Any) -> None:
    """The number is public and divides the sums; fewer are fine."""
    args = (*COLUMNS, *BUDGET, "r.csv", "--n-users")
    refused(dpfit, 3, "more users than declared", *args, "199")
    assert complete(dpfit, *BUDGET, "--n-users", "900")["public_facts"]["users"]["value"] == 900


def test_a_dry_run_spends_nothing(dpfit: Any) -> None:
    """It writes no file and shows the charge that the run then has."""
    before = dpfit.names()
    report = complete(dpfit, *FACTS, *BUDGET, "--dry-run", "--budget-report")
    assert report["dry_run"] is True
    assert dpfit.names() == before
    shown = dpfit.here(
        "complete-matrix", *COLUMNS, *FACTS, *BUDGET, "--dry-run", "--budget-report", "r.csv"
    )
    assert "dry run: nothing was spent" in shown.out
    assert "1.47 % of the budget" in shown.out
    assert complete(dpfit, *FACTS, *BUDGET)["events"] == report["events"]


# --- what is written -----------------------------------------------------------------------------


def test_ledger_names_the_model_by_hash(dpfit: Any) -> None:
    """The released entry carries the SHA-256 of the model file; the budget command reads both."""
    complete(dpfit, *FACTS, *BUDGET, "--noise", "huber")
    entry = dpfit.json(LEDGER)["entries"][-1]
    assert entry["model_sha256"] == hashlib.sha256(dpfit.read(MODEL)).hexdigest()
    assert dpfit.outcomes(LEDGER) == ["released"]


def test_force_replaces_models_of_factors_and_nothing_else(dpfit: Any) -> None:
    """A model stays unless --force is given; another Parquet file and a ledger stay always."""
    complete(dpfit, *FACTS, *BUDGET)
    args = ("complete-matrix", *COLUMNS, *FACTS, *BUDGET, "r.csv")
    assert dpfit.here(*args).status == 5
    assert dpfit.here(*args, "--force").status == 0
    pq.write_table(pa.table({"a": [1]}), "other.parquet")
    Path("tiny.parquet").write_bytes(b"PAR1")
    for name in ("other.parquet", "tiny.parquet", "items2.txt"):
        Path(name).touch()
        with Path(name).open("ab") as stream:
            stream.write(b"" if name != "items2.txt" else b"1\n")
        before = dpfit.read(name)
        assert dpfit.here(*args, "--force", "-o", name).status == 5
        assert dpfit.read(name) == before
    assert dpfit.here(*args, "--force", "-o", LEDGER).status == 2


def test_a_seed_repeats_the_bytes_and_marks_the_run(dpfit: Any) -> None:
    """Equal runs give equal bytes; without a seed the noise is fresh."""
    models = []
    for seed in ("7", "7", None, None):
        complete(dpfit, *FACTS, *BUDGET, *(["--seed", seed] if seed else []))
        models.append(dpfit.read(MODEL))
    assert models[0] == models[1]
    assert models[2] != models[3]
    outcome = dpfit.here(
        "complete-matrix", *COLUMNS, *FACTS, *BUDGET, "--seed", "7", "--force", "r.csv"
    )
    assert "--seed repeats the noise: the model is not private" in outcome.err
    assert complete(dpfit, *FACTS, *BUDGET, "--seed", "7")["noise_multipliers"]
    assert read_factor_model(MODEL).private is False


@pytest.mark.parametrize(("name", "loss"), [("als", "squared"), ("irls", "huber")])
def test_originals_are_the_private_algorithm_without_noise(
    dpfit: Any, name: str, loss: str
) -> None:
    """The same numbers; marked in model and ledger; no budget needed."""
    released = []
    for args in (("--algo", name), ("--non-private", "--loss", loss)):
        report = complete(dpfit, *FACTS, *args)
        assert report["private"] is False
        assert report["charge"] is None
        assert report["noise"] is None
        assert report["noise_multipliers"] is None
        assert all(
            isinstance(event_from_json(event), NonPrivateEvent) for event in report["events"]
        )
        released.append(read_factor_model(MODEL))
    assert np.array_equal(released[0].factors, released[1].factors)
    assert np.array_equal(released[0].bias, released[1].bias)
    assert released[0].rank > 0


def test_order_of_ratings_and_users_changes_no_bit(dpfit: Any) -> None:
    """Items that were not declared are in canonical order, whatever the file's."""
    complete(dpfit, *BUDGET, "--seed", "3")
    model = read_factor_model(MODEL)
    shuffled = list(ROWS)
    random.Random(1).shuffle(shuffled)
    Path("r.csv").write_text(csv(shuffled), encoding="utf-8")
    complete(dpfit, *BUDGET, "--seed", "3")
    other = read_factor_model(MODEL)
    assert other.items == model.items == tuple(map(str, range(1, ITEMS + 1)))
    assert other.to_bytes() == model.to_bytes()


def test_values_beyond_the_bounds_are_cut(dpfit: Any) -> None:
    """A rating of 1e300 is one of 5."""
    for top in ("5.0", "1e300"):
        rows = [(u, i, top if u == 1 else v) for u, i, v in ROWS]
        Path("r.csv").write_text(csv(rows), encoding="utf-8")  # type: ignore[arg-type]
        complete(dpfit, *FACTS, *BUDGET, "--seed", "3")
        Path(MODEL).rename(f"{top}.parquet")
    assert dpfit.read("5.0.parquet") == dpfit.read("1e300.parquet")


def test_of_duplicates_the_last_counts_if_asked(dpfit: Any) -> None:
    """As if the earlier ones were not there."""
    complete(dpfit, *FACTS, *BUDGET, "--seed", "3")
    expected = dpfit.read(MODEL)
    earlier = [(u, i, 1.0) for u, i, _ in ROWS if u % 3 == 0]
    Path("r.csv").write_text(csv([*earlier, *ROWS]), encoding="utf-8")
    complete(dpfit, *FACTS, *BUDGET, "--seed", "3", "--duplicates", "last")
    assert dpfit.read(MODEL) == expected


def test_every_format_gives_the_same_numbers(dpfit: Any) -> None:
    """CSV, TSV, compressed, Parquet, LIBSVM, Matrix Market, two files, standard input."""
    complete(dpfit, *FACTS, *BUDGET, "--seed", "3")
    expected = read_factor_model(MODEL)
    Path("r.tsv").write_text(csv(ROWS, "\t"), encoding="utf-8")
    Path("z.csv.gz").write_bytes(gzip.compress(csv(ROWS).encode()))
    users, items, values = zip(*ROWS, strict=True)
    pq.write_table(pa.table({"u": users, "i": items, "v": values}), "p.parquet")
    head = f"%%MatrixMarket matrix coordinate real general\n{USERS} {ITEMS} {len(ROWS)}\n"
    Path("m.mtx").write_text(head + csv(ROWS, " ").partition("\n")[2], encoding="utf-8")
    with Path("s.svm").open("w", encoding="utf-8") as stream:
        for user in range(1, USERS + 1):
            cells = " ".join(f"{i}:{v}" for u, i, v in ROWS if u == user)
            stream.write(f"{user} {cells}\n")
    Path("a.csv").write_text(csv(ROWS[:500]), encoding="utf-8")
    Path("b.csv").write_text(csv(ROWS[500:]), encoding="utf-8")
    facts = (*FACTS, *BUDGET, "--seed", "3", "--force", "-o", "x.parquet", "--ledger", "x.json")
    without = ("--range", "1", "5", *facts)
    for args in (
        (*COLUMNS, *facts, "r.tsv"),
        (*COLUMNS, *facts, "z.csv.gz"),
        (*COLUMNS, *facts, "p.parquet"),
        (*COLUMNS, *facts, "a.csv", "b.csv"),
        (*without, "m.mtx"),
        (*without, "s.svm"),
    ):
        outcome = dpfit.here("complete-matrix", *args)
        assert outcome.status == 0, outcome.err
        found = read_factor_model("x.parquet")
        assert found.items == expected.items
        assert np.array_equal(found.bias, expected.bias)
        assert np.array_equal(found.factors, expected.factors)
    piped = dpfit(
        "complete-matrix", *COLUMNS, *facts, "--format", "csv", "-", input=dpfit.read("r.csv")
    )
    assert piped.status == 0, piped.err
    assert np.array_equal(read_factor_model("x.parquet").factors, expected.factors)


def test_standard_input_names_follow_the_model(dpfit: Any) -> None:
    """The ledger is called like the model; the model may go to standard output."""
    args = ("complete-matrix", *COLUMNS, *FACTS, *BUDGET, "--format", "csv", "-")
    assert dpfit(*args, "-o", "mine.factors.parquet", input=dpfit.read("r.csv")).status == 0
    assert "mine.ledger.json" in dpfit.names()
    assert dpfit(*args, input=dpfit.read("r.csv")).status == 2


def test_a_headless_table_has_numbered_columns(dpfit: Any) -> None:
    """They are named c1, c2, ... in the model, and prediction finds them."""
    Path("n.csv").write_text(csv(ROWS).partition("\n")[2], encoding="utf-8")
    numbered = ("--no-header", "--user", "1", "--item", "2", "--value", "3", "--range", "1", "5")
    outcome = dpfit.here("complete-matrix", *numbered, *FACTS, *BUDGET, "n.csv")
    assert outcome.status == 0, outcome.err
    assert read_factor_model("n.factors.parquet").columns == {
        "user": "c1",
        "item": "c2",
        "value": "c3",
    }
    predicted = dpfit.here("predict", "n.factors.parquet", "n.csv", "--no-header", "--top", "1")
    assert (predicted.status, predicted.out.count("\n")) == (0, USERS)


def test_options_from_a_configuration(dpfit: Any) -> None:
    """Its table is named as the command."""
    names = 'user = "u"\nitem = "i"\nvalue = "v"\nrange = [1, 5]\n'
    Path("c.toml").write_text(f"[complete-matrix]\neps = 5.0\ndelta = 1e-4\n{names}")
    assert dpfit.here("complete-matrix", "--config", "c.toml", "-q", "r.csv").status == 0
    assert read_factor_model(MODEL).value_range == (1.0, 5.0)
    outcome = dpfit.here(
        "complete-matrix", "--config", "c.toml", "-o", "c.toml", "--force", "r.csv"
    )
    assert (outcome.status, "is a file of this run" in outcome.err) == (2, True)
