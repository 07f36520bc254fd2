"""``dpfit audit`` from the shell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpfit.audit.audit import Finding

FAST = ("audit", "--iterations", "1", "--trials", "40", "--rows", "20")
TABLE = """
label = "answer"
labels = ["no", "yes"]
row_norm = 2.0

[columns.level]
role = "categorical"
levels = ["a", "b", "c"]
"""
BUDGET = ("--eps", "4", "--delta", "1e-5")
SEED = (*BUDGET, "--seed", "1")  # a tight claim is passed by chance, now and then


def test_claim_and_audit_stand_side_by_side(dpfit: Any) -> None:
    """On stdout the table; on stderr how many runs and how long, first."""
    outcome = dpfit.here(*FAST, *SEED, "--algo", "dp-gd")
    assert outcome.status == 0
    assert "claimed epsilon at delta 1e-05  " in outcome.out
    assert outcome.out.count("audited, at least") == 2
    assert outcome.err.startswith("dpfit: white-box attack, 40 runs in each of two worlds, about ")


def test_a_seed_repeats_an_audit(dpfit: Any) -> None:
    """To the bit; without one, keys are fresh."""
    asked = (*FAST, *BUDGET, "--algo", "dp-gd", "--json")
    one, two, other = (dpfit.here(*asked, *seed) for seed in (("--seed", "5"),) * 2 + ((),))
    assert one.out == two.out
    first, third = json.loads(one.out), json.loads(other.out)
    assert first["refuted"] is False
    assert first["claimed"]["epsilon"] <= 4.0
    assert first["audited"]["mu_estimate"] != third["audited"]["mu_estimate"]


def test_one_run_of_many_canaries(dpfit: Any) -> None:
    """It tells guesses instead of trials."""
    asked = ("--algo", "dp-gd", "--iterations", "2", "--attack", "one-run", "--features", "200")
    outcome = dpfit.here("audit", *BUDGET, *asked)
    assert outcome.status == 0
    assert "of 40, about 200 canaries" in outcome.out
    assert "one-run attack, 1 run, about" in outcome.err
    told = json.loads(dpfit.here("audit", *BUDGET, *asked, "--json").out)
    assert told["audited"]["epsilon"]["guesses"] == 40


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_an_audit_among_real_records_is_marked(dpfit: Any, adjacency: str) -> None:
    """As not private, on stderr, in the table and in JSON; the claim holds there, too."""
    asked = ("--data", dpfit.svm(), "--algo", "dp-gd", "--adjacency", adjacency)
    fast = ("audit", "--iterations", "1", "--trials", "40", *SEED)
    outcome = dpfit.here(*fast, *asked)
    assert outcome.status == 0
    assert "NOT private" in outcome.err.splitlines()[0]
    assert outcome.out.splitlines()[0].endswith("tiny.svm: NOT private")
    told = json.loads(dpfit.here(*fast, *asked, "--json", "-q").out)
    assert told["private"] is False
    assert told["refuted"] is False


def test_an_audit_of_real_records_reads_as_a_fit_does(dpfit: Any) -> None:
    """With a schema, labels that are texts, weights, and levels of a column."""
    rows = [f"{'yes' if i % 3 else 'no'},{i % 5},{'abc'[i % 3]},{1 + i % 2}" for i in range(30)]
    Path("table.csv").write_text("\n".join(["answer,number,level,times", *rows, ""]))
    Path("table.toml").write_text(TABLE)
    asked = ("--data", "table.csv", "--schema", "table.toml", "--weight", "times")
    fast = ("audit", "--algo", "dp-gd", "--iterations", "1", "--trials", "40", *SEED, "--json")
    told = json.loads(dpfit.here(*fast, *asked).out)
    assert told["private"] is False
    assert told["refuted"] is False
    assert told["audited"]["mu_estimate"]["value"] > 0.3


def test_an_audit_of_real_ratings(dpfit: Any) -> None:
    """Of whole users, by default as completions are: added or removed."""
    rows = [f"u{i},{'abcdef'[i * j % 6]},{1 + (i + j) % 5}" for i in range(9) for j in (1, 5)]
    Path("ratings.csv").write_text("\n".join(["user,item,value", *rows, ""]))
    names = ("--user", "user", "--item", "item", "--value", "value", "--duplicates", "last")
    asked = ("--data", "ratings.csv", "--range", "1", "5", "--rank", "0", *names)
    fast = ("audit", "--trials", "30", "--algo", "complete-matrix", *SEED, "--json")
    told = json.loads(dpfit.here(*fast, *asked).out)
    assert told["adjacency"] == "add-remove"
    assert told["private"] is False
    assert told["refuted"] is False
    outcome = dpfit.here(*fast, "--data", "ratings.csv")
    assert "bounds of a rating are not declared" in outcome.err


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "huber"])
def test_everything_that_a_completion_can_be_told(dpfit: Any, noise: str) -> None:
    """Reaches the audited run."""
    knee = ("--huber-knee", "1.5") if noise == "huber" else ()
    asked = ("--noise", noise, *knee, "--rank", "0", "--passes", "2", "--max-per-user", "4")
    budget = BUDGET if noise == "gaussian" else ("--eps", "4")
    more = ("--loss", "huber", "--huber-threshold", "0.2", "--range", "1", "5", "--rows", "9")
    fast = (
        "audit",
        "--trials",
        "20",
        "--algo",
        "complete-matrix",
        *budget,
        "--json",
        "--seed",
        "1",
    )
    told = json.loads(dpfit.here(*fast, *asked, *more, "--json").out)
    assert (told["rows"], told["features"]) == (9, 24)
    assert told["claimed"]["epsilon"] == pytest.approx(4.0, rel=1e-3)
    assert told["refuted"] is False


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("--attack", "guess"), "--attack 'guess' is not known"),
        (("--algo", "dp-fw", "--attack", "one-run"), "needs gradients on all columns"),
        (("--attack", "one-run", "--trials", "50"), "with --attack one-run: leave it out"),
        (("--algo", "complete-matrix", "--attack", "score"), "choose white-box or black-box"),
        (("--loss", "poisson", "--algo", "dp-gd", "--attack", "score"), "does not know --loss"),
        (("--label", "y"), "--label belongs to --data"),
        (("--data", "tiny.svm", "--rows", "9"), "--rows has no meaning with --data"),
        (("--data", "tiny.svm", "--attack", "one-run"), "has records of its own"),
        (("--trials", "3"), "--trials must be at least"),
        (("--confidence", "1"), "--confidence must lie"),
        (("--rows", "1"), "--rows must lie"),
        (("--rank", "2"), "--rank belongs to --algo complete-matrix"),
        (("--algo", "complete-matrix", "--step-size", "1"), "--step-size is no setting of"),
        (("--algo", "ight"), "audit --algo dp-ight"),
        (("--algo", "als"), "audit --algo complete-matrix"),
        (("--algo", "lasso"), "or median-cd or complete-matrix\n"),
    ],
)
def test_what_makes_no_sense_is_refused(dpfit: Any, asked: tuple[str, ...], message: str) -> None:
    """Before the first run."""
    outcome = dpfit.here("audit", *BUDGET, *asked)
    assert outcome.status == 2
    assert message in outcome.err


def test_no_bound_proves_a_claim(dpfit: Any) -> None:
    """The table says how much of the claim was shown, and never that it holds."""
    outcome = dpfit.here(*FAST, "--algo", "dp-gd", *SEED)
    assert outcome.status == 0
    told = json.loads(dpfit.here(*FAST, "--algo", "dp-gd", *SEED, "--json").out)
    assert 0.0 < told["tightness"] < 1.0
    assert f"not refuted; {100.0 * told['tightness']:.0f} % of it was shown" in outcome.out


def test_a_broken_claim_says_what_to_do(dpfit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be chance: repeat the audit, then report it."""
    monkeypatch.setattr(Finding, "refuted", True)
    outcome = dpfit.here(*FAST, "--algo", "dp-gd", *SEED)
    assert outcome.status == 4
    assert outcome.out.rstrip().endswith("BROKEN")
    assert "one audit in twenty" in outcome.err
    assert "more --trials and another --seed, then report it as SECURITY.md" in outcome.err


@pytest.mark.parametrize(
    "many", [("dp-gd", "--features", "2001"), ("complete-matrix", "--features", "63")]
)
def test_a_model_of_many_numbers_is_no_black_box(dpfit: Any, many: tuple[str, ...]) -> None:
    """What a learner cannot learn from is refused with a hint, before the first run."""
    outcome = dpfit.here("audit", "--attack", "black-box", "--rows", "10", *SEED, "--algo", *many)
    assert outcome.status == 2
    assert "at most 4000 numbers\nhint: attack white-box" in outcome.err
    assert "runs in each" not in outcome.err


def test_few_trials_are_refused_before_data_are_read(dpfit: Any) -> None:
    outcome = dpfit.here("audit", "--algo", "dp-gd", *BUDGET, "--trials", "5", "--data", "no.svm")
    assert outcome.status == 2
    assert "at least 20" in outcome.err
