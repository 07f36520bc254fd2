"""``dpfit evaluate`` from the shell: charged metrics, public files, and refusals."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

ASKED = ("--eps", "2", "--delta", "1e-6")


@pytest.fixture
def model(dpfit: Any) -> str:
    """A model of ``tiny.svm``, and ``test.svm`` to evaluate it on.

    A fifth of its labels is wrong: noise on a metric at the end of its range would be cut off.
    """
    lines = dpfit.read(dpfit.svm("test.svm", rows=4000, seed=1)).decode().splitlines()
    lines[::5] = [("-" if line[0] == "+" else "+") + line[1:] for line in lines[::5]]
    (dpfit.folder / "test.svm").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(dpfit.fit())


def test_metrics_are_near_the_exact_ones_and_charged(dpfit: Any, model: str) -> None:
    """In a process of its own: every exact metric of the public form is inside a wide interval."""
    exact = dpfit("evaluate", model, "test.svm", "--public", "--json")
    assert (exact.status, exact.err) == (0, "")
    public = json.loads(exact.out)
    assert public["private"] is False
    assert not (dpfit.folder / "test.ledger.json").exists()
    ended = dpfit("evaluate", model, "test.svm", *ASKED, "--n-rows", "4000", "--strict", "--json")
    assert (ended.status, ended.err) == (0, "")
    found = json.loads(ended.out)
    assert found["private"] is True
    assert set(found["metrics"]) == {"error_rate", "clipped_log_loss", "AUC"}
    error = found["metrics"]["error_rate"]
    gap = abs(error["value"] - public["metrics"]["error_rate"])
    assert gap < 7.0 * found["noise_deviation"] / 4000
    loss = found["metrics"]["clipped_log_loss"]
    half = 1.96 * 4.0 * found["noise_deviation"] / 4000
    assert loss["high"] - loss["value"] == pytest.approx(half, rel=1e-3)
    assert found["charge"]["epsilon"] <= 2.0
    assert found["assumed"] == []
    assert dpfit.kinds("test.ledger.json") == ["reserved", "released"]
    entry = dpfit.json("test.ledger.json")["entries"][0]
    assert entry["algorithm"] == "evaluate"
    assert entry["events"] == found["events"]


def test_two_evaluations_have_two_noises_and_two_charges(dpfit: Any, model: str) -> None:
    """Charges add up to the cap and no further; the refusal comes before reading.

    The area under the curve is of many noisy counts, so it is never twice the same.
    """
    assert dpfit.here("budget", "l.json", "--cap-eps", "2.5", "--cap-delta", "1e-6").status == 0
    asked = ("evaluate", model, "test.svm", *ASKED, "--n-rows", "4000")
    args = (*asked, "--ledger", "l.json")
    first = dpfit(*args)
    assert first.status == 0
    assert "private metrics" in first.out
    told = [dpfit(*asked, "--ledger", f"{i}.json", "--json") for i in range(2)]
    one, two = (json.loads(ended.out)["metrics"]["AUC"]["value"] for ended in told)
    assert one != two
    again = dpfit("evaluate", model, "missing.svm", *ASKED, "--ledger", "l.json")
    assert again.status == 5
    again = dpfit(*args)
    assert again.status == 4
    assert "the cap is 2.5" in again.err
    assert dpfit.kinds("l.json") == ["reserved", "released"]


def test_assumed_rows_are_said_and_strict_refuses_them(dpfit: Any, model: str) -> None:
    """The divisor is a public fact like any other."""
    ended = dpfit("evaluate", model, "test.svm", *ASKED)
    assert "taken as public: rows=4000 (--n-rows)" in ended.err
    strict = dpfit("evaluate", model, "test.svm", *ASKED, "--strict")
    assert strict.status == 4
    assert "--n-rows" in strict.err
    wrong = dpfit("evaluate", model, "test.svm", *ASKED, "--n-rows", "3999")
    assert wrong.status == 3
    other = ("--n-rows", "3999", "--adjacency", "add-remove")
    assert dpfit("evaluate", model, "test.svm", *ASKED, *other).status == 0


def test_what_noise_drowns_has_no_value(dpfit: Any, model: str) -> None:
    """In words, and as null: half is no estimate of an area under a curve."""
    little = ("--eps", "0.001", "--delta", "1e-6", "--n-rows", "4000", "--seed", "1", "-q")
    ended = dpfit.here("evaluate", model, "test.svm", *little, "--json")
    auc = {"value": None, "low": 0.0, "high": 1.0}
    assert json.loads(ended.out)["metrics"]["AUC"] == auc
    assert "not resolved at this budget" in dpfit.here("evaluate", model, "test.svm", *little).out


def test_a_model_for_units_is_evaluated_for_rows_and_says_so(dpfit: Any) -> None:
    """On stderr and in JSON, before it is charged; of a model for rows not a word."""
    lines = [f"{i % 50},{i % 10 / 10},{int(i % 10 > 4)}" for i in range(400)]
    (dpfit.folder / "t.csv").write_text("\n".join(["who,x,y", *lines]) + "\n", encoding="utf-8")
    fit = ("fit", "t.csv", "--label", "y", *ASKED, "-q")
    asked = ("t.csv", *ASKED, "--n-rows", "400", "--json")
    unit = ("--unit", "who", "--max-rows-per-unit", "8")
    for name, more in {"u": unit, "r": ()}.items():
        model = f"{name}.model.json"
        assert dpfit.here(*fit, *more, "-o", model, "--ledger", f"{name}.json").status == 0
        for run in (("--dry-run",), ()):
            ended = dpfit.here("evaluate", model, *asked, *run)
            assert ended.status == 0, ended.err
            told = json.loads(ended.out)
            assert told["record"] == "row"
            if name == "r":
                assert (told["warnings"], ended.err) == ([], "")
                continue
            (said,) = told["warnings"]
            assert said.startswith("the model protects each whole unit (who), but this evaluation")
            assert ended.err == f"dpfit: warning: {said}\n"


def test_a_dry_run_spends_nothing(dpfit: Any, model: str) -> None:
    """It shows charge and noise and no metric."""
    ended = dpfit("evaluate", model, "test.svm", *ASKED, "--dry-run", "--json", "-q")
    found = json.loads(ended.out)
    assert found["dry_run"] is True
    assert "metrics" not in found
    assert not (dpfit.folder / "test.ledger.json").exists()


def test_a_seed_repeats_and_is_not_private(dpfit: Any, model: str) -> None:
    """The same bytes twice, a warning, and an unbounded charge."""
    args = ("evaluate", model, "test.svm", *ASKED, "--seed", "3", "--n-rows", "4000")
    first, second = dpfit(*args), dpfit(*args)
    assert first.out == second.out
    assert "the evaluation is not private" in first.err
    assert "NOT PRIVATE" in first.out
    report = dpfit.here("budget", "test.ledger.json")
    assert "NOT PRIVATE" in report.out


@pytest.mark.parametrize(
    ("args", "status", "said"),
    [
        ((), 2, "--public"),
        (("--eps", "1", "--public"), 2, "--eps has no meaning with --public"),
        ((*ASKED, "--loss-clip", "0"), 2, "--loss-clip"),
        ((*ASKED, "--n-rows", "0"), 2, "--n-rows"),
    ],
)
def test_refusals_say_what_to_do(
    dpfit: Any, model: str, args: tuple[str, ...], status: int, said: str
) -> None:
    """One line each, and nothing charged."""
    ended = dpfit("evaluate", model, "test.svm", *args)
    assert ended.status == status
    assert said in ended.err
    assert not (dpfit.folder / "test.ledger.json").exists()


def test_standard_input_needs_a_named_ledger(dpfit: Any, model: str) -> None:
    """A pipe has no name of its own."""
    text = dpfit.read("test.svm")
    args = ("evaluate", "--format", "libsvm", model, "-", *ASKED, "--n-rows", "4000")
    assert "give --ledger" in dpfit(*args, input=text).err
    ended = dpfit(*args, "--ledger", "piped.json", input=text)
    assert ended.status == 0
    assert dpfit.kinds("piped.json") == ["reserved", "released"]


def test_a_failure_while_reading_spends_nothing(dpfit: Any, model: str) -> None:
    """A label that the model does not know, in the last line: refused, its value not shown."""
    with open("test.svm", "a", encoding="utf-8") as stream:
        stream.write("+77 1:0.5\n")
    ended = dpfit("evaluate", model, "test.svm", *ASKED)
    assert ended.status == 3
    assert "77" not in ended.err
    assert not (dpfit.folder / "test.ledger.json").exists()


def test_values_quantiles_and_counts_have_metrics_of_their_own(dpfit: Any) -> None:
    """Each kind of target on a table; the exact value is within 24 scales of the Laplace noise."""
    rows = [(i % 10 / 10, i % 10 + (i % 3) / 3) for i in range(3000)]
    lines = ["x,y", *(f"{x},{y:.3f}" for x, y in rows)]
    (dpfit.folder / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    fit = ("fit", "t.csv", "--label", "y", "--target-range", "0", "12", "--force", "-q")
    cases = {
        ("--loss", "squared"): {"RMSE": "RMSE", "MAE": "MAE"},
        ("--quantile", "0.9"): {"at_or_below": "at_or_below", "pinball_loss": "pinball_loss"},
        ("--loss", "poisson"): {"clipped_deviance": "deviance", "MAE": ""},
    }
    for loss, names in cases.items():
        ended = dpfit.here(*fit, *loss, "--eps", "4", "--delta", "1e-4")
        assert ended.status == 0, ended.err
        wide = ("--loss-clip", "100") if "poisson" in loss else ()
        public = dpfit("evaluate", "t.model.json", "t.csv", "--public", "--json")
        exact = json.loads(public.out)["metrics"]
        ended = dpfit("evaluate", "t.model.json", "t.csv", "--eps", "4", *wide, "--json", "-q")
        assert ended.status == 0, ended.err
        found = json.loads(ended.out)
        assert set(found["metrics"]) == set(names)
        for name, public_name in names.items():
            one = found["metrics"][name]
            assert one["low"] <= one["value"] <= one["high"]
            if public_name:
                # One beyond them in e^24; a deviation is the root of two scales.
                scale = found["noise_deviation"] / math.sqrt(2.0)
                reach = 24.0 * scale / 3000 * (100 if wide else 12)
                power = 2 if name == "RMSE" else 1
                gap = abs(one["value"] ** power - exact[public_name] ** power)
                assert gap < reach * (12 if power == 2 else 1) + 1e-3
                assert math.isfinite(gap)


def test_ratings_have_no_private_evaluation(dpfit: Any) -> None:
    """A model of factors is about whole users; said in one line."""
    lines = ["user,item,value", *(f"u{i % 20},i{i % 7},{i % 5}" for i in range(140))]
    (dpfit.folder / "r.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    columns = ("--user", "user", "--item", "item", "--value", "value", "--range", "0", "4")
    ended = dpfit.here("complete-matrix", "r.csv", *columns, "--non-private", "-q")
    assert ended.status == 0, ended.err
    ended = dpfit("evaluate", "r.factors.parquet", "r.csv", *ASKED)
    assert ended.status == 2
    assert "no private evaluation" in ended.err
