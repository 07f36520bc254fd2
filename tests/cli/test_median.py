"""Median regression from the shell: budgets, settings, quantiles, and what is refused."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.events import event_from_json

ALGORITHMS = ("median-objective", "median-irls", "median-cd")
FACTS = ("--label", "y", "--target-range", "0", "10", "--n-rows", "2000")
ROWS = 2000


@pytest.fixture(autouse=True)
def _table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The median of y grows from 2 to 5 with a; one target in ten is far off."""
    monkeypatch.chdir(tmp_path)
    chance, lines = random.Random(1), ["a,b,y"]
    for _ in range(ROWS):
        a, b = chance.random(), chance.random()
        y = 10.0 if chance.random() < 0.1 else 2.0 + 3.0 * a + chance.uniform(-1.0, 1.0)
        lines.append(f"{a:.3f},{b:.3f},{y:.3f}")
    Path("t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def fit(dpfit: Any, *args: str) -> Any:
    outcome = dpfit.here("fit", *FACTS, *args, "t.csv", "--json", "--force")
    assert outcome.status == 0, outcome.err
    return json.loads(outcome.out)


def evaluation(dpfit: Any) -> dict[str, float]:
    outcome = dpfit.here("predict", "--json", "--evaluate", "t.model.json", "t.csv")
    assert outcome.status == 0, outcome.err
    values: dict[str, float] = json.loads(outcome.err.splitlines()[-1])["evaluation"]
    return values


def refused(dpfit: Any, status: int, said: str, *args: str) -> None:
    """One line of error with a hint, nothing charged, no model."""
    outcome = dpfit.here("fit", *FACTS, *args, "t.csv")
    assert (outcome.status, outcome.out) == (status, ""), outcome.err
    assert said in outcome.err.splitlines()[0]
    assert not Path("t.ledger.json").exists()
    assert not Path("t.model.json").exists()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("delta", [None, "1e-6"])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_whole_budget_and_no_more(
    dpfit: Any, algorithm: str, delta: str | None, adjacency: Adjacency
) -> None:
    """The events of model and ledger recompute to at most the epsilon that was asked for."""
    budget = ["--eps", "2", "--adjacency", str(adjacency)] + (["--delta", delta] if delta else [])
    report = fit(dpfit, "--algo", algorithm, *budget)
    events = [event_from_json(event) for event in report["events"]]
    epsilon = compose(events, adjacency).epsilon(float(delta or 0.0))
    assert 1.9 < epsilon <= 2.0
    assert report["charge"]["epsilon"] == epsilon
    assert report["charge"]["delta"] == float(delta or 0.0)
    ledger = json.loads(Path("t.ledger.json").read_text())
    assert ledger["entries"][0]["events"] == report["events"]
    model = json.loads(Path("t.model.json").read_text())
    assert (model["loss"], model["link"], model["private"]) == ("absolute", "identity", True)


@pytest.mark.parametrize("budget", [("--eps", "20"), ("--eps", "10", "--delta", "1e-6")])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_outliers_do_not_pull_a_median(dpfit: Any, algorithm: str, budget: tuple[str, ...]) -> None:
    """Half of the targets lie below the predictions, which are near the true medians."""
    fit(dpfit, "--algo", algorithm, *budget, "--seed", "3")
    values = evaluation(dpfit)
    assert 0.35 < values["at_or_below"] < 0.65
    one_number = 1.56  # of the best constant
    assert values["MAE"] < one_number


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("quantile", ["0.1", "0.8"])
def test_a_quantile_has_its_share_below(dpfit: Any, algorithm: str, quantile: str) -> None:
    """About q of the targets lie below a model of the quantile q."""
    asked = ("--loss", "absolute", "--quantile", quantile, "--eps", "50", "--delta", "1e-6")
    report = fit(dpfit, "--algo", algorithm, *asked, "--seed", "3")
    assert report["settings"]["quantile"] == float(quantile)
    assert evaluation(dpfit)["at_or_below"] == pytest.approx(float(quantile), abs=0.12)


def test_auto_is_the_best_of_them(dpfit: Any) -> None:
    """--loss absolute alone chooses by what was measured, and says so."""
    report = fit(dpfit, "--loss", "absolute", "--eps", "1")
    assert report["algorithm"] == "median-objective"
    assert report["settings"]["noise"] == "l2"


def test_laws_follow_the_budget(dpfit: Any) -> None:
    """Without a delta no law is Gaussian; with one, few columns keep the pure law."""
    for algorithm, pure, with_delta in (
        ("median-objective", "l2", "l2"),
        ("median-irls", "l2", "l2"),
        ("median-cd", "l1", "gaussian"),
    ):
        assert fit(dpfit, "--algo", algorithm, "--eps", "1")["settings"]["noise"] == pure
        found = fit(dpfit, "--algo", algorithm, "--eps", "1", "--delta", "1e-6")
        assert found["settings"]["noise"] == with_delta


@pytest.mark.parametrize(
    ("algorithm", "laws"),
    [
        ("median-objective", ("l1", "l2", "gaussian")),
        ("median-irls", ("l1", "l2", "gaussian")),
        ("median-cd", ("l1", "gaussian")),
    ],
)
def test_every_law_keeps_the_budget(dpfit: Any, algorithm: str, laws: tuple[str, ...]) -> None:
    """Whatever --noise says, the charge is within the request."""
    for law in laws:
        report = fit(dpfit, "--algo", algorithm, "--noise", law, "--eps", "3", "--delta", "1e-5")
        events = [event_from_json(event) for event in report["events"]]
        assert 2.8 < compose(events, Adjacency.REPLACE_ONE).epsilon(1e-5) <= 3.0


@pytest.mark.parametrize("algorithm", ["median-irls", "median-cd"])
def test_a_budget_in_rho(dpfit: Any, algorithm: str) -> None:
    """Gaussian forms take zCDP budgets."""
    report = fit(dpfit, "--algo", algorithm, "--rho", "0.5")
    assert 0.45 < report["charge"]["rho"] <= 0.5


def test_disjoint_batches_are_charged_once(dpfit: Any) -> None:
    """T batches of records of their own cost what one does."""
    report = fit(dpfit, "--algo", "median-cd", "--eps", "1", "--iterations", "7")
    gradient = next(event for event in report["events"] if event["label"] == "gradient")
    assert (report["settings"]["batches"], gradient["count"]) == ("disjoint", 1)


def test_the_largest_coefficients_stay(dpfit: Any) -> None:
    """--sparsity keeps that many, at the end and for nothing."""
    fit(dpfit, "--algo", "median-objective", "--eps", "8", "--sparsity", "1")
    model = json.loads(Path("t.model.json").read_text())
    assert len(model["coefficients"]["indices"]) == 1


def test_a_run_without_noise_is_the_same_fit(dpfit: Any) -> None:
    """Twice the same bytes, marked as not private."""
    found = []
    for _ in range(2):
        fit(dpfit, "--algo", "median-objective", "--eps", "1", "--non-private")
        found.append(Path("t.model.json").read_bytes())
    assert found[0] == found[1]
    assert json.loads(found[0])["private"] is False


def test_threads_do_not_change_a_seeded_run(dpfit: Any) -> None:
    """The same model for any number of threads."""
    found = []
    for threads in ("1", "3"):
        fit(dpfit, "--algo", "median-objective", "--eps", "1", "--seed", "7", "--threads", threads)
        found.append(json.loads(Path("t.model.json").read_text())["coefficients"])
    assert found[0] == found[1]


PURE = ("--eps", "1")
REFUSALS = (
    (2, "does not fit --loss squared", ("--algo", "median-irls", "--loss", "squared", *PURE)),
    (
        2,
        "does not fit --loss absolute",
        ("--algo", "dp-screen", "--loss", "absolute", "--rho", "1"),
    ),
    (2, "--quantile belongs to", ("--loss", "squared", "--quantile", "0.5", "--rho", "1")),
    (2, "strictly between 0 and 1", ("--loss", "absolute", "--quantile", "1", *PURE)),
    (2, "--quantile", ("--loss", "absolute", "--quantile", "nan", *PURE)),
    (2, "needs --delta", ("--algo", "dp-gd", "--loss", "squared", *PURE)),
    (2, "needs --delta", ("--algo", "dp-iht", "--sparsity", "1", "--loss", "squared", *PURE)),
    (2, "needs --delta", ("--algo", "median-objective", "--noise", "gaussian", *PURE)),
    (2, "needs a budget in --eps", ("--algo", "median-objective", "--rho", "1")),
    (2, "no budget in --mu", ("--algo", "median-irls", "--mu", "1")),
    (2, "--noise l2 is no law", ("--algo", "median-cd", "--noise", "l2", *PURE)),
    (2, "--batches full needs", ("--algo", "median-cd", "--batches", "full", *PURE)),
    (2, "is not known", ("--algo", "median-cd", "--noise", "cauchy", *PURE)),
    (2, "--ridge", ("--algo", "median-objective", "--ridge", "0", *PURE)),
    (2, "--ridge must lie", ("--algo", "median-objective", "--ridge", "1e-30", *PURE)),
    (2, "out of proportion", ("--algo", "median-irls", "--smoothing", "1e-30", *PURE)),
    (2, "is no setting of", ("--algo", "median-irls", "--iterations", "5", *PURE)),
    (
        4,
        "curvature alone spends the epsilon",
        ("--algo", "median-objective", "--smoothing", "0.1", "--ridge", "1", *PURE),
    ),
)


@pytest.mark.parametrize(("status", "said", "args"), REFUSALS)
def test_refusals(dpfit: Any, status: int, said: str, args: tuple[str, ...]) -> None:
    """What cannot be meant, or cannot be kept, ends before anything is charged."""
    refused(dpfit, status, said, *args)


def test_the_feasible_values_are_told(dpfit: Any) -> None:
    """The refusal of a small ridge names one that works, and it does."""
    asked = ("--algo", "median-objective", "--smoothing", "1", *PURE)
    outcome = dpfit.here("fit", *FACTS, *asked, "--ridge", "1", "t.csv")
    assert outcome.status == 4
    fit(dpfit, *asked, "--ridge", outcome.err.split("; ")[1].split()[0])


def test_a_cap_holds_for_pure_runs(dpfit: Any) -> None:
    """A ledger with a cap adds pure runs up and refuses the one too many."""
    assert dpfit.here("budget", "l.json", "--cap-eps", "2.5", "--cap-delta", "1e-6").status == 0
    for _ in range(2):
        fit(dpfit, "--algo", "median-irls", "--eps", "1", "--ledger", "l.json")
    args = ("fit", *FACTS, "--algo", "median-irls", *PURE, "--ledger", "l.json", "--force", "t.csv")
    outcome = dpfit.here(*args)
    assert outcome.status == 4
    assert "does not allow this run" in outcome.err
    shown = dpfit.here("budget", "l.json", "--json")
    assert shown.status == 0


def test_a_dry_run_heeds_the_cap(dpfit: Any) -> None:
    """What a run would be refused for is refused before it."""
    assert dpfit.here("budget", "l.json", "--cap-eps", "0.5", "--cap-delta", "1e-6").status == 0
    asked = ("--algo", "median-irls", *PURE, "--ledger", "l.json", "--dry-run")
    outcome = dpfit.here("fit", *FACTS, *asked, "t.csv")
    assert outcome.status == 4
    assert "does not allow this run" in outcome.err


def test_a_quantile_is_of_the_absolute_loss(dpfit: Any) -> None:
    """--quantile alone chooses loss and algorithm, and the ledger's report names both."""
    report = fit(dpfit, "--quantile", "0.9", "--eps", "5")
    assert (report["loss"], report["algorithm"]) == ("absolute", "median-objective")
    shown = dpfit.here("budget", "t.ledger.json")
    assert "median-objective, absolute loss, quantile 0.9" in shown.out
    values = evaluation(dpfit)
    assert values["quantile"] == 0.9
    assert values.keys() == {"schema_version", "private", "rows"} | {
        "quantile",
        "at_or_below",
        "pinball_loss",
    }


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (("--loss", "median"), "--loss absolute"),
        (("--quantile", "90"), "did you mean 0.9?"),
        (("--algo", "median-irls", "--mu", "1"), "give --eps"),
        (("--algo", "median-objective", "--rho", "1"), "median-irls or median-cd"),
    ],
)
def test_hints_lead_on(dpfit: Any, args: tuple[str, ...], hint: str) -> None:
    """The hint names what to do."""
    budget = () if {"--mu", "--rho"} & {*args} else PURE
    outcome = dpfit.here("fit", *FACTS, *args, *budget, "t.csv")
    assert outcome.status == 2
    assert hint in outcome.err.splitlines()[1]


def test_a_penalty_above_the_rows_is_warned_of(dpfit: Any) -> None:
    """Charged and useless: said before it is done."""
    asked = ("--algo", "median-irls", "--eps", "0.001", "--dry-run")
    outcome = dpfit.here("fit", *FACTS, *asked, "t.csv")
    assert outcome.status == 0
    assert "above the number of rows" in outcome.err
