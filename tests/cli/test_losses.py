"""Every loss from the shell: fit, predict, evaluate, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import math
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

BUDGET = ("--eps", "20", "--delta", "0.001")
CLASSES = ("cat", "dog", "owl")
OF_CLASSES = ("--label", "kind", "--labels", "cat,dog,owl", "--n-rows", "120")
OF_COUNTS = (
    *("--label", "n", "--loss", "poisson", "--target-range", "0", "20", "--n-rows", "120"),
    *("--exposure", "hours", "--max-exposure", "4"),
)


@pytest.fixture(autouse=True)
def _tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three classes told apart by a and b; counts whose rate grows with a."""
    monkeypatch.chdir(tmp_path)
    chance, kinds, counts = random.Random(0), ["a,b,c,kind,w"], ["a,b,hours,n,w"]
    for i in range(120):
        a, b, c = (chance.random() / 4 + (i % 3 == j) for j in range(3))
        kinds.append(f"{a:.3f},{b:.3f},{c:.3f},{CLASSES[i % 3]},{1 + i % 2}")
        hours, rest = chance.uniform(0.2, 4.0), chance.random()
        counts.append(f"{a:.3f},{rest:.3f},{hours:.3f},{round(hours * (1 + 3 * a))},{1 + i % 2}")
    Path("kinds.csv").write_text("\n".join(kinds) + "\n", encoding="utf-8")
    Path("counts.csv").write_text("\n".join(counts) + "\n", encoding="utf-8")


def columns_of(name: str) -> dict[str, list[str]]:
    with open(name, encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    return {key: [row[key] for row in rows] for key in rows[0]}


def fit(dpfit: Any, *args: str, silent: bool = True) -> None:
    outcome = dpfit.here("fit", *BUDGET, *args)
    assert outcome.status == 0, outcome.err
    assert not silent or outcome.err == ""


def told(dpfit: Any, *args: str) -> Any:
    outcome = dpfit.here(*args)
    assert outcome.status == 0, outcome.err
    return outcome


def refused(outcome: Any, status: int, said: str) -> None:
    """One line of error, at most one hint, and nothing on stdout."""
    assert (outcome.status, outcome.out) == (status, "")
    lines = outcome.err.splitlines()
    assert said in lines[0]
    assert len(lines) == 1 or (len(lines) == 2 and lines[1].startswith("hint: "))


# --- classes -------------------------------------------------------------------------------------


def test_classes_in_every_output(dpfit: Any) -> None:
    """Labels, a column for each class, and JSON that names them, all from the same scores."""
    fit(dpfit, *OF_CLASSES, "kinds.csv")
    args = ("predict", "kinds.model.json", "kinds.csv")
    labels = told(dpfit, *args).out.splitlines()
    truth = columns_of("kinds.csv")["kind"]
    assert sum(a == b for a, b in zip(labels, truth, strict=True)) > 100
    shares = [
        list(map(float, line.split())) for line in told(dpfit, *args, "--proba").out.splitlines()
    ]
    scores = [
        list(map(float, line.split())) for line in told(dpfit, *args, "--margin").out.splitlines()
    ]
    objects = [json.loads(line) for line in told(dpfit, *args, "--json").out.splitlines()]
    for label, p, m, named in zip(labels, shares, scores, objects, strict=True):
        assert len(p) == len(m) == 3
        total = math.fsum(math.exp(value - max(m)) for value in m)
        assert p == pytest.approx([math.exp(value - max(m)) / total for value in m], abs=1e-15)
        assert label == CLASSES[m.index(max(m))]
        assert named == {
            "prediction": label,
            **{f"probability:{name}": value for name, value in zip(CLASSES, p, strict=True)},
        }


def test_classes_in_files(dpfit: Any) -> None:
    """CSV and Parquet have a column for each class, in their order, and the lines' numbers."""
    fit(dpfit, *OF_CLASSES, "kinds.csv")
    args = ("predict", "kinds.model.json", "kinds.csv")
    for kind, name in (("--proba", "probability"), ("--margin", "margin")):
        lines = [line.split() for line in told(dpfit, *args, kind).out.splitlines()]
        for path in ("p.csv", "p.parquet"):
            told(dpfit, *args, kind, "-o", path, "--force")
        header, *rows = csv.reader(io.StringIO(dpfit.read("p.csv").decode()))
        assert header == [f"{name}:{label}" for label in CLASSES]
        assert rows == lines
        table = pq.read_table("p.parquet")
        assert table.column_names == header
        assert [list(map(float, row)) for row in lines] == [
            list(row.values()) for row in table.to_pylist()
        ]
    told(dpfit, *args, "-o", "p.parquet", "--force")
    assert pq.read_table("p.parquet")["prediction"].to_pylist() == told(dpfit, *args).out.split()


def test_evaluation_of_classes(dpfit: Any) -> None:
    """Error rate and log loss are those of the printed labels and probabilities."""
    fit(dpfit, *OF_CLASSES, "kinds.csv")
    args = ("predict", "kinds.model.json", "kinds.csv")
    outcome = told(dpfit, *args, "--json", "--evaluate")
    objects = [json.loads(line) for line in outcome.out.splitlines()]
    truth = columns_of("kinds.csv")["kind"]
    wrong = [row["prediction"] != label for row, label in zip(objects, truth, strict=True)]
    losses = [
        -math.log(row[f"probability:{label}"]) for row, label in zip(objects, truth, strict=True)
    ]
    evaluation = json.loads(outcome.err)["evaluation"]
    assert evaluation["error_rate"] == pytest.approx(sum(wrong) / 120)
    assert evaluation["log_loss"] == pytest.approx(math.fsum(losses) / 120)
    assert evaluation["private"] is False


@pytest.mark.parametrize("mode", ["per-class", "joint"])
@pytest.mark.parametrize("algo", ["dp-screen", "dp-ight", "dp-gd", "ight"])
def test_sparsity_modes(dpfit: Any, mode: str, algo: str) -> None:
    """S coefficients for each class, or S columns for all of them.

    With a seed: a noisy coefficient is 0 once in a million.
    """
    args = (*OF_CLASSES, "--sparsity", "2", "--sparsity-mode", mode, "--algo", algo, "-q")
    fit(dpfit, *args, *(() if algo == "ight" else ("--seed", "1")), "kinds.csv")
    values = dpfit.json("kinds.model.json")["coefficients"]["values"]
    used = [sum(value != 0.0 for value in column) for column in zip(*values, strict=True)]
    assert used == [2, 2, 2]
    assert len(values) == 2 or mode == "per-class"
    assert told(dpfit, "predict", "kinds.model.json", "kinds.csv").out.count("\n") == 120


def test_numbers_may_be_classes(dpfit: Any) -> None:
    """Three numeric labels in a LIBSVM file are classes when told so, and come back as numbers."""
    chance = random.Random(2)
    lines = [f"{1 + i % 3} {1 + i % 3}:1 4:{chance.random():.3f}" for i in range(90)]
    Path("k.svm").write_text("\n".join(lines) + "\n", encoding="utf-8")
    facts = ("--n-rows", "90", "--n-features", "4", "--index-base", "1", "--strict")
    fit(dpfit, "--labels", "1,2,3", *facts, "k.svm")
    assert set(told(dpfit, "predict", "k.model.json", "k.svm").out.split()) == {"1", "2", "3"}


# --- counts --------------------------------------------------------------------------------------


def test_counts_under_exposures(dpfit: Any) -> None:
    """A prediction is proportional to the row's exposure; D2 is that of the definition."""
    fit(dpfit, *OF_COUNTS, "counts.csv")
    args = ("predict", "counts.model.json")
    outcome = told(dpfit, *args, "counts.csv", "--evaluate", "--json")
    predicted = [json.loads(line)["prediction"] for line in outcome.out.splitlines()]
    table = columns_of("counts.csv")
    counts, hours = list(map(float, table["n"])), list(map(float, table["hours"]))

    def deviance(rates: list[float]) -> float:
        parts = [
            2 * ((y * math.log(y / rate) if y else 0.0) - (y - rate))
            for y, rate in zip(counts, rates, strict=True)
        ]
        return math.fsum(parts) / len(parts)

    overall = sum(counts) / sum(hours)
    evaluation = json.loads(outcome.err)["evaluation"]
    assert evaluation["deviance"] == pytest.approx(deviance(predicted))
    d2 = 1 - deviance(predicted) / deviance([overall * hour for hour in hours])
    assert evaluation["D2"] == pytest.approx(d2)
    assert d2 > 0.1
    text = Path("counts.csv").read_text(encoding="utf-8").splitlines()
    doubled = [text[0]]
    for line in text[1:]:
        a, b, hour, n, w = line.split(",")
        doubled.append(f"{a},{b},{2 * float(hour)},{n},{w}")
    Path("doubled.csv").write_text("\n".join(doubled) + "\n", encoding="utf-8")
    twice = list(map(float, told(dpfit, *args, "doubled.csv").out.split()))
    assert twice == pytest.approx([2 * value for value in predicted])


def test_prediction_needs_the_exposure(dpfit: Any) -> None:
    """A table without the column is refused by name; the count and the weight may be absent."""
    fit(dpfit, *OF_COUNTS, "--weight", "w", "--max-weight", "2", "counts.csv")
    rows = [line.split(",") for line in Path("counts.csv").read_text(encoding="utf-8").split()]
    for name, kept in (("bare.csv", (0, 1, 2)), ("lacking.csv", (0, 1, 3))):
        text = "".join(",".join(row[i] for i in kept) + "\n" for row in rows)
        Path(name).write_text(text, encoding="utf-8")
    model = ("predict", "counts.model.json")
    assert told(dpfit, *model, "bare.csv").out == told(dpfit, *model, "counts.csv").out
    refused(dpfit.here(*model, "lacking.csv"), 3, "the exposure column 'hours'")


def test_offsets_of_any_size_are_predicted(dpfit: Any) -> None:
    """Rates saturate instead of overflowing, in predictions and in their evaluation."""
    fit(dpfit, *OF_COUNTS[:9], "--offset", "hours", "--max-exposure", "60", "counts.csv")
    rows = "".join(f"0.5,0.5,{offset},3,1\n" for offset in ("1e308", "-1e308", "0"))
    Path("wild.csv").write_text("a,b,hours,n,w\n" + rows, encoding="utf-8")
    outcome = told(dpfit, "predict", "counts.model.json", "wild.csv", "--evaluate", "--json")
    assert "Infinity" not in outcome.out + outcome.err
    assert "NaN" not in outcome.out + outcome.err


def test_an_evaluation_leaves_out_what_is_no_number(dpfit: Any) -> None:
    """The square of 1e200 is none, and JSON knows no infinity."""
    told(dpfit, "fit", *BUDGET, *OF_COUNTS[:2], "--loss", "huber", "counts.csv")
    Path("wild.csv").write_text("a,b,hours,n,w\n0.5,0.5,1,1e200,1\n", encoding="utf-8")
    outcome = told(dpfit, "predict", "counts.model.json", "wild.csv", "--evaluate", "--json")
    found = json.loads(outcome.err, parse_constant=pytest.fail)["evaluation"]
    assert found.keys() == {"schema_version", "private", "rows", "MAE"}


def test_a_negative_count_is_refused(dpfit: Any) -> None:
    """By a fit that would read its range off the data, and by an evaluation."""
    text = Path("counts.csv").read_text(encoding="utf-8")
    Path("bad.csv").write_text(text + "0.5,0.5,1,-1,1\n", encoding="utf-8")
    bad = ("fit", *BUDGET, "--label", "n", "--loss", "poisson", "bad.csv")
    refused(dpfit.here(*bad), 3, "negative count")
    fit(dpfit, *OF_COUNTS, "counts.csv")
    predict = ("predict", "counts.model.json", "bad.csv", "--evaluate", "-o", "p.txt")
    refused(dpfit.here(*predict), 3, "negative count")


# --- values and weights --------------------------------------------------------------------------


def test_huber_is_told_in_the_targets_units(dpfit: Any) -> None:
    """A threshold of 2 over a range of 20 clips at a tenth; predictions stay in the range."""
    args = (
        "--label",
        "n",
        "--loss",
        "huber",
        "--huber-threshold",
        "2",
        "--target-range",
        "0",
        "20",
    )
    fit(dpfit, *args, "--n-rows", "120", "--algo", "dp-gd", "counts.csv")
    model = dpfit.json("counts.model.json")
    assert (model["loss"], model["link"]) == ("huber", "identity")
    assert model["provenance"]["settings"]["residual_clip"] == 0.1
    outcome = told(dpfit, "predict", "counts.model.json", "counts.csv", "--evaluate")
    assert all(0.0 <= float(line) <= 20.0 for line in outcome.out.split())
    assert "RMSE" in outcome.err


@pytest.mark.parametrize("loss", ["multinomial", "squared", "huber", "poisson"])
def test_weights_are_recorded(dpfit: Any, loss: str) -> None:
    """The bound is a public fact, assumed when not declared; the column is in the model."""
    name, label = ("kinds.csv", "kind") if loss == "multinomial" else ("counts.csv", "n")
    args = ("--label", label, "--loss", loss, "--weight", "w", name)
    fit(dpfit, *args, silent=False)
    model = dpfit.json(name.replace("csv", "model.json"))
    assert model["features"]["weight"] == "w"
    assert model["provenance"]["public_facts"]["max_weight"] == {"value": 2.0, "origin": "assumed"}
    fit(dpfit, *args, "--max-weight", "5", "--force", silent=False)
    model = dpfit.json(name.replace("csv", "model.json"))
    assert model["provenance"]["public_facts"]["max_weight"] == {"value": 5.0, "origin": "declared"}


# --- what is chosen and what is refused ----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "label", "extra", "loss"),
    [
        ("kinds.csv", "kind", [], "multinomial"),
        ("kinds.csv", "w", ["--schema", "s.toml"], "logistic"),
        ("counts.csv", "n", [], "squared"),
        ("counts.csv", "n", ["--labels", ",".join(map(str, range(30)))], "multinomial"),
        ("counts.csv", "w", ["--target-range", "0", "9"], "squared"),
    ],
)
def test_the_loss_follows_from_the_target(
    dpfit: Any, name: str, label: str, extra: list[str], loss: str
) -> None:
    """Two values and more than two texts are classes, other numbers are values."""
    Path("s.toml").write_text('[columns.kind]\nrole = "ignore"\n', encoding="utf-8")
    fit(dpfit, "--label", label, *extra, name, silent=False)
    stem = name.split(".")[0]
    assert dpfit.json(f"{stem}.model.json")["loss"] == loss
    assert dpfit.json(f"{stem}.model.json")["provenance"]["algorithm"] == "dp-screen"


@pytest.mark.parametrize("loss", ["logistic", "multinomial", "squared", "huber", "poisson"])
def test_auto_fits_every_loss(dpfit: Any, loss: str) -> None:
    """With and without an intercept, from the request alone, within the charge."""
    name = "kinds.csv" if loss == "multinomial" else "counts.csv"
    label = {"multinomial": "kind", "logistic": "w"}.get(loss, "n")
    for extra, algorithm in ((["-q"], "dp-screen"), (["-q", "--no-intercept"], "dp-gd")):
        model = ("-o", "m.json", "--force")
        fit(dpfit, "--label", label, "--loss", loss, *model, *extra, name)
        assert dpfit.json("m.json")["provenance"]["algorithm"] == algorithm
        assert dpfit.json("m.json")["loss"] == loss
        assert told(dpfit, "predict", "m.json", name).out.count("\n") == 120


@pytest.mark.parametrize(
    ("args", "missing"),
    [
        (["--loss", "multinomial", "--weight", "w"], "--labels, --max-weight"),
        (["--loss", "poisson", "--exposure", "hours"], "--target-range"),
        (["--loss", "huber", "--target-range", "0", "9", "--weight", "w"], "--max-weight"),
    ],
)
def test_strict_names_what_is_missing(dpfit: Any, args: list[str], missing: str) -> None:
    """Before the data are read, and nothing is charged."""
    run = ("fit", *BUDGET, "--label", "n", "--n-rows", "120", "--strict", *args, "counts.csv")
    refused(dpfit.here(*run), 4, f"not declared: {missing}")
    assert not Path("counts.ledger.json").exists()


@pytest.mark.parametrize(
    "args",
    [
        "--loss squared --sparsity 2 --sparsity-mode joint",
        "--loss poisson --sparsity 2 --sparsity-mode per-class",
        "--sparsity 2 --sparsity-mode joint",
        "--loss multinomial --sparsity-mode joint",
        "--loss multinomial --sparsity 2 --sparsity-mode rows",
        "--loss squared --huber-threshold 1",
        "--huber-threshold 1",
        "--loss huber --huber-threshold 0",
        "--loss huber --huber-threshold 1e-320",
        "--loss huber --huber-threshold 1e300",
        "--loss squared --offset hours",
        "--loss huber --exposure hours",
        "--loss multinomial --exposure hours",
        "--exposure hours",
        "--loss logistic --labels 1,2,3",
        "--loss squared --labels 1,2",
        "--labels 1",
        "--labels 1,1",
        "--loss multinomial --algo dp-iht --sparsity 2",
        "--loss multinomial --algo dp-fw",
        "--loss multinomial --algo two-stage --sparsity 2",
        "--loss multinomial --target-range 0 9",
        "--loss poisson --target-range 1 9",
        "--algo ight --sparsity 2 --seed 1",
        "--non-private --seed 1",
        "--max-weight 2",
        "--weight w --max-weight 0",
        "--loss poisson --max-exposure 2",
        "--loss squared --max-exposure 2",
        "--loss poisson --exposure hours --max-exposure -1",
        "--loss multinomial --residual-clip 1e-310",
        "--loss hinge",
    ],
)
def test_misuse(dpfit: Any, args: str) -> None:
    """Status 2, one line and perhaps a hint, and nothing is charged."""
    outcome = dpfit.here("fit", *BUDGET, "-q", "--label", "n", *args.split(), "counts.csv")
    refused(outcome, 2, "dpfit: error: ")
    assert not Path("counts.ledger.json").exists()


def test_originals_take_the_budget_for_their_rules_only(dpfit: Any) -> None:
    """With one or without, the run has no noise and the ledger counts it as unbounded."""
    args = ("-q", "--label", "n", "--target-range", "0", "20", "--n-rows", "120")
    for algo in (["--algo", "gd"], ["--algo", "fw"], ["--non-private"]):
        for budget in ([], BUDGET):
            told(dpfit, "fit", *algo, *budget, *args, "--force", "counts.csv")
            assert dpfit.json("counts.model.json")["private"] is False
            first = dpfit.read("counts.model.json")
            told(dpfit, "fit", *algo, *budget, *args, "--force", "counts.csv")
            assert dpfit.read("counts.model.json") == first


def test_what_exceeds_the_memory_is_not_charged(dpfit: Any) -> None:
    """A thousand classes on 300,000 columns: 2.4 GB an array, and 4 GB in all."""
    Path("wide.svm").write_text("0 1:1\n1 2:1\n", encoding="utf-8")
    classes = ",".join(map(str, range(1000)))
    outcome = dpfit(
        *("fit", "wide.svm", *BUDGET, "--algo", "dp-gd", "--loss", "multinomial", "--threads", "1"),
        *("--labels", classes, "--n-features", "300000", "--index-base", "1"),
        prefix=("sh", "-c", 'ulimit -v 4000000; exec "$0" "$@"'),
    )
    assert (outcome.status, outcome.out) == (1, "")
    assert "out of memory" in outcome.err
    assert not Path("wide.ledger.json").exists()
