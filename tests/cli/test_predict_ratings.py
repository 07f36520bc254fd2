"""Prediction of ratings from the shell: pairs, best items, evaluation, and hostile models."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpfit.files.factor_model import FactorModel, read_factor_model

USERS, ITEMS = 60, 9
MODEL = "r.factors.parquet"


@pytest.fixture(autouse=True)
def _model(dpfit: Any) -> None:
    """Ratings of half of the items by each user, and a model of them without noise."""
    chance, lines, held = random.Random(2), ["who,what,stars"], ["who,what,stars"]
    for user in range(USERS):
        level = chance.uniform(-1.0, 1.0)
        for item in range(ITEMS):
            value = min(max(3.0 + level + (item - 4) / 4 + chance.uniform(-0.3, 0.3), 1.0), 5.0)
            (lines if chance.random() < 0.5 else held).append(f"u{user},i{item},{value:.2f}")
    Path("r.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    Path("t.csv").write_text("\n".join(held) + "\n", encoding="utf-8")
    columns = ("--user", "who", "--item", "what", "--value", "stars", "--range", "1", "5")
    outcome = dpfit.here("complete-matrix", *columns, "--algo", "als", "-q", "r.csv")
    assert outcome.status == 0, outcome.err


def rows_of(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def predicted(dpfit: Any, *args: str) -> list[list[str]]:
    outcome = dpfit.here("predict", MODEL, *args)
    assert outcome.status == 0, outcome.err
    return rows_of(outcome.out)


def test_pairs_come_in_their_order_and_are_evaluated(dpfit: Any) -> None:
    """One line a pair: user, item, prediction; the errors are those of the lines shown."""
    outcome = dpfit.here("predict", MODEL, "r.csv", "--pairs", "t.csv", "--evaluate", "--json")
    assert outcome.status == 0, outcome.err
    shown = [json.loads(line) for line in outcome.out.splitlines()]
    asked = [line.split(",") for line in Path("t.csv").read_text().splitlines()[1:]]
    assert [(row["user"], row["item"]) for row in shown] == [(u, i) for u, i, _ in asked]
    gap = np.array([row["prediction"] for row in shown]) - [float(v) for _, _, v in asked]
    evaluation = json.loads(outcome.err)["evaluation"]
    assert evaluation["pairs"] == len(asked)
    assert evaluation["RMSE"] == pytest.approx(float(np.sqrt(np.mean(gap**2))))
    assert evaluation["MAE"] == pytest.approx(float(np.mean(np.abs(gap))))
    assert evaluation["private"] is False
    assert evaluation["RMSE"] < 0.45
    lines = predicted(dpfit, "r.csv", "--pairs", "t.csv")
    assert [float(row[2]) for row in lines] == [row["prediction"] for row in shown]


def test_strangers_get_the_released_means(dpfit: Any) -> None:
    """A user without ratings in the file; pairs need no column of ratings."""
    Path("p.csv").write_text("what,who\ni3,nobody\ni0,nobody\n", encoding="utf-8")
    model = read_factor_model(MODEL)
    lines = predicted(dpfit, "r.csv", "--pairs", "p.csv")
    assert [row[:2] for row in lines] == [["nobody", "i3"], ["nobody", "i0"]]
    assert [float(row[2]) for row in lines] == model.item_means[[3, 0]].tolist()


def test_a_user_depends_on_own_ratings_only(dpfit: Any) -> None:
    """The same lines from a file with nobody else in it."""
    everyone = predicted(dpfit, "r.csv", "--top", "9")
    own = [line for line in Path("r.csv").read_text().splitlines() if line.startswith("u7,")]
    Path("own.csv").write_text("\n".join(["who,what,stars", *own]) + "\n", encoding="utf-8")
    assert predicted(dpfit, "own.csv", "--top", "9") == [row for row in everyone if row[0] == "u7"]


def test_the_best_items_are_the_pairs_of_the_highest_prediction(dpfit: Any) -> None:
    """For each user the n best of those that the user has not rated, best first."""
    pairs = predicted(dpfit, "r.csv", "--pairs", "t.csv")
    top = predicted(dpfit, "r.csv", "--top", "2")
    inside = [row for row in pairs if 1.0 < float(row[2]) < 5.0]
    for user in {row[0] for row in top} - {row[0] for row in pairs if row not in inside}:
        own = sorted((-float(row[2]), row[1]) for row in inside if row[0] == user)
        found = [(-float(row[2]), row[1]) for row in top if row[0] == user]
        assert [item for _, item in found] == [item for _, item in own[:2]]
        assert [value for value, _ in found] == pytest.approx([value for value, _ in own[:2]])


def test_grouped_reading_changes_nothing(dpfit: Any) -> None:
    """Nor does a shuffled file that is read without it; with it that is an error."""
    expected = predicted(dpfit, "r.csv", "--top", "3")
    assert predicted(dpfit, "r.csv", "--top", "3", "--grouped") == expected
    head, *lines = Path("r.csv").read_text().splitlines()
    random.Random(1).shuffle(lines)
    Path("r.csv").write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    assert sorted(predicted(dpfit, "r.csv", "--top", "3")) == sorted(expected)
    outcome = dpfit.here("predict", MODEL, "r.csv", "--top", "3", "--grouped")
    assert outcome.status == 3
    assert "a user comes back" in outcome.err


def test_files_of_predictions(dpfit: Any) -> None:
    """CSV and Parquet by extension, with the columns of the lines; never over an input."""
    expected = predicted(dpfit, "r.csv", "--top", "2")
    for name in ("o.csv", "o.parquet", "o.txt"):
        outcome = dpfit.here("predict", MODEL, "r.csv", "--top", "2", "-o", name)
        assert (outcome.status, outcome.out) == (0, ""), outcome.err
    text = Path("o.csv").read_text().splitlines()
    assert text[0] == "user,item,prediction"
    assert [line.split(",") for line in text[1:]] == expected
    table = pq.read_table("o.parquet").to_pylist()
    assert [[row["user"], row["item"], str(row["prediction"])] for row in table] == expected
    assert rows_of(Path("o.txt").read_text()) == expected
    for name, pairs in (("r.csv", ()), (MODEL, ()), ("t.csv", ("--pairs", "t.csv"))):
        wish = pairs or ("--top", "2")
        outcome = dpfit.here("predict", MODEL, "r.csv", *wish, "-o", name, "--force")
        assert outcome.status == 2
        assert "is a file of this run" in outcome.err


def test_other_columns_and_formats(dpfit: Any) -> None:
    """Options name columns where the file calls them otherwise; a matrix has none."""
    expected = predicted(dpfit, "r.csv", "--top", "2")
    text = Path("r.csv").read_text().replace("who,what,stars", "a,b,c")
    Path("x.csv").write_text(text, encoding="utf-8")
    named = ("--user", "a", "--item", "b", "--value", "c")
    assert predicted(dpfit, "x.csv", "--top", "2", *named) == expected
    piped = dpfit("predict", MODEL, "-", "--format", "csv", "--top", "2", input=dpfit.read("r.csv"))
    assert rows_of(piped.out) == expected


def test_items_that_the_model_does_not_know(dpfit: Any) -> None:
    """An error, in ratings and in pairs; or they are left out."""
    expected = predicted(dpfit, "r.csv", "--pairs", "t.csv")
    for name in ("r.csv", "t.csv"):
        with Path(name).open("a", encoding="utf-8") as stream:
            stream.write("u1,new,3\n")
        outcome = dpfit.here("predict", MODEL, "r.csv", "--pairs", "t.csv")
        assert (outcome.status, outcome.out) == (3, "")
        assert "is not one of the model" in outcome.err
        assert "new" not in outcome.err.splitlines()[0]
    assert predicted(dpfit, "r.csv", "--pairs", "t.csv", "--ignore-new-items") == expected


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "needs to know what to predict"),
        (("--pairs", "t.csv", "--top", "1"), "exclude each other"),
        (("--top", "0"), "--top must be 1 or more"),
        (("--top", "1", "--evaluate"), "--evaluate compares with the ratings of --pairs"),
        (("--top", "1", "--proba"), "--proba is for models of rows"),
        (("--top", "1", "--margin"), "--margin is for models of rows"),
        (("--top", "1", "--label", "stars"), "--label is for models of rows"),
        (("--top", "1", "--ignore-new-features"), "--ignore-new-features is for models of rows"),
        (("--top", "1", "--missing", "zero"), "--missing is for models of rows"),
        (("--top", "1", "--duplicates", "sum"), "--duplicates is one of error, last"),
        (("--top", "1", "--user", "stars"), "cannot be both the user and the value"),
    ],
)
def test_what_a_model_of_ratings_does_not_understand(
    dpfit: Any, args: tuple[str, ...], said: str
) -> None:
    """Status 2 and one line."""
    outcome = dpfit.here("predict", MODEL, "r.csv", *args)
    assert (outcome.status, outcome.out) == (2, "")
    assert said in outcome.err.splitlines()[0]


@pytest.mark.parametrize(
    "args",
    [
        ("--pairs", "t.csv"),
        ("--top", "3"),
        ("--user", "a"),
        ("--item", "a"),
        ("--value", "a"),
        ("--grouped",),
        ("--ignore-new-items",),
    ],
)
def test_what_a_model_of_rows_does_not_understand(dpfit: Any, args: tuple[str, ...]) -> None:
    """Status 2 and one line; a matrix is no format of rows either."""
    dpfit.fit()
    outcome = dpfit.here("predict", "tiny.model.json", "tiny.svm", *args)
    assert (outcome.status, outcome.out) == (2, "")
    assert f"{args[0]} is for models of ratings" in outcome.err
    assert dpfit.here("predict", "tiny.model.json", "tiny.svm", "--format", "mtx").status == 2


def changed(constants: dict[str, float | None], **fields: Any) -> FactorModel:
    model = read_factor_model(MODEL)
    named = {**model.constants, **constants}
    kept = {name: value for name, value in named.items() if value is not None}
    return replace(model, constants=kept, **fields)


@pytest.mark.parametrize(
    ("constants", "fields", "said"),
    [
        ({"noise_variance": None}, {}, "noise_variance is missing"),
        ({"noise_variance": 0.0}, {}, "noise_variance is not a sensible number"),
        ({"offset_ridge": -1.0}, {}, "offset_ridge is not a sensible number"),
        ({"huber_threshold": 0.0}, {}, "huber_threshold is not a sensible number"),
        ({"log_count_scale": None}, {}, "log_count_scale is missing"),
        ({"bias_scale": 1e90}, {}, "too large"),
        ({}, {"count": np.zeros(ITEMS)}, "a count is not positive"),
        ({}, {"factors": np.full((ITEMS, 2), 1e60)}, "too large"),
        ({}, {"bias": np.full(ITEMS, 1e99)}, "too large"),
        ({"noise_variance": 1e-40}, {"factors": np.full((ITEMS, 3), 1e40)}, None),
    ],
)
@pytest.mark.parametrize("wish", [("--top", "2"), ("--pairs", "t.csv")])
def test_hostile_models_are_refused(
    dpfit: Any,
    constants: dict[str, float | None],
    fields: dict[str, Any],
    said: str | None,
    wish: tuple[str, str],
) -> None:
    """With status 3 and the reason; no number of theirs becomes a fault or a warning."""
    Path("h.parquet").write_bytes(changed(constants, **fields).to_bytes())
    outcome = dpfit.here("predict", "h.parquet", "r.csv", *wish)
    if said is None:
        assert outcome.status in (0, 3)
        assert "nan" not in outcome.out
    else:
        assert (outcome.status, outcome.out) == (3, "")
        assert said in outcome.err
        assert outcome.err.startswith("dpfit: error: h.parquet")


def test_damaged_models_are_refused(dpfit: Any) -> None:
    """Cut off anywhere, or any byte changed: status 3, or the change does not matter."""
    content = dpfit.read(MODEL)
    chance = random.Random(5)
    for _ in range(60):
        at = chance.randrange(len(content))
        flipped = bytearray(content)
        flipped[at] ^= 1 << chance.randrange(8)
        for damaged in (content[:at], bytes(flipped)):
            Path("h.parquet").write_bytes(damaged)
            outcome = dpfit.here("predict", "h.parquet", "r.csv", "--top", "1")
            assert outcome.status in (0, 3), outcome.err
            assert outcome.status == 3 or damaged != content[:at]


def test_a_large_rank_is_refused(dpfit: Any) -> None:
    """Each user's solve takes time by its cube."""
    model = changed({}, factors=np.zeros((ITEMS, 65)))
    Path("h.parquet").write_bytes(model.to_bytes())
    assert dpfit.here("predict", "h.parquet", "r.csv", "--top", "1").status == 3


def test_a_model_may_come_through_a_pipe(dpfit: Any) -> None:
    """It is read once, from the start."""
    code = f"cat {MODEL} | {dpfit.program[0]} -c '{dpfit.program[-1]}' predict /dev/stdin r.csv"
    outcome = dpfit("--version", prefix=["sh", "-c", f"{code} --top 1 #"])
    assert outcome.status == 0, outcome.err
    assert outcome.out.count("\n") == USERS
