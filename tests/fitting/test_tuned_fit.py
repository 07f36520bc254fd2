"""A search: one charge before the first run, the best of them after it, nothing of the others."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpfit.data.rows import RowBlock
from dpfit.errors import UsageError
from dpfit.fitting import tuned_fit
from dpfit.fitting.request import FitRequest
from dpfit.fitting.search import Search
from dpfit.fitting.tuned_fit import TunedFit
from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.declared_facts import DeclaredFacts, Layout
from dpfit.privacy.events import RandomStoppingEvent
from dpfit.privacy.mechanisms.noise import SearchNoise

N, D = 400, 6
SEARCH = Search({"residual_clip": (0.1, 1.0), "sparsity": (2, 4)}, 3.0)
DECLARED = DeclaredFacts(n_rows=N, n_features=D, index_base=1, labels=(-1.0, 1.0))


def request(**more: Any) -> FitRequest:
    asked = {
        "sparsity": 2,
        "budget": Budget(epsilon=2.0, delta=1e-6),
        "dataset": "it",
        "loss": "logistic",
        "declared": DECLARED,
        "search": SEARCH,
        **more,
    }
    return FitRequest(**asked)


def block(seed: int = 0) -> RowBlock:
    chance = np.random.default_rng(seed)
    rows = chance.standard_normal((N, D))
    target = np.where(rows[:, 0] + 0.1 * chance.standard_normal(N) > 0.0, 1.0, -1.0)
    indices = np.tile(np.arange(1, D + 1, dtype=np.int32), N)
    return RowBlock(np.arange(0, N * D + 1, D), indices, rows.ravel(), target)


def fitted(**more: Any) -> TunedFit:
    return TunedFit.of(request(**more), [block()], layout=Layout, source="it")


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happened, in order; every key and every run."""
    happened: list[str] = []

    class Watched(SearchNoise):
        def __init__(self, seed: int | None) -> None:
            happened.append("key")
            super().__init__(seed)

        def of_next_run(self) -> Any:
            happened.append("run")
            return super().of_next_run()

    monkeypatch.setattr(tuned_fit, "SearchNoise", Watched)
    return happened


@pytest.mark.parametrize("algorithm", ["dp-screen", "dp-gd", "dp-ight", "dp-iht", "two-stage"])
@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-8), (1.0, 1e-6), (8.0, 1e-3)])
def test_the_whole_search_keeps_the_budget_and_nearly_uses_it(
    algorithm: str, adjacency: Adjacency, epsilon: float, delta: float
) -> None:
    """One event, whose cost by the accountant is at most what was asked; no run costs more rho."""
    made = fitted(
        algorithm=algorithm, adjacency=adjacency, budget=Budget(epsilon=epsilon, delta=delta)
    )
    (event,) = made.events
    assert isinstance(event, RandomStoppingEvent)
    spent = compose(made.events, adjacency).epsilon(delta)
    assert 0.98 * epsilon < spent <= epsilon
    for plan in made.plans:
        rho = compose(made.events_of_run(plan), adjacency).rho
        assert rho is not None
        assert rho <= made.rho_of_run
    labels = {released.label for run in event.runs for released in run}
    assert "score" in labels


def test_every_release_of_every_candidate_is_in_the_charge() -> None:
    """The list of a candidate is that of its plan and the score; equal ones stand once."""
    made = fitted(search=Search({"iterations": (5, 9), "step_size": (0.1, 1.0)}))
    (event,) = made.events
    assert isinstance(event, RandomStoppingEvent)
    assert set(event.runs) == {tuple(made.events_of_run(plan)) for plan in made.plans}
    assert len(event.runs) == 2
    counts = sorted(run[0].count for run in event.runs)
    assert counts == [5, 9]


def test_the_charge_comes_before_the_key_and_before_every_run(watched: list[str]) -> None:
    """A reservation that fails leaves no key; one that holds is the only one."""

    def fail(description: object) -> None:
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fitted().run(fail, lambda done: None)
    assert watched == []
    fitted().run(lambda description: watched.append("charged"), lambda done: None)
    assert watched[:2] == ["charged", "key"]
    assert set(watched[2:]) == {"run"}


def test_what_comes_out_does_not_tell_the_number_of_runs(watched: list[str]) -> None:
    """Searches of different length describe themselves alike, but for the best and its score."""
    told, lengths, progress = set(), set(), set()
    for seed in range(12):
        watched.clear()
        made = fitted(seed=seed)
        before: list[Any] = []
        made.run(before.append, progress.add)
        lengths.add(watched.count("run"))
        said = dict(made.description())
        assert before[0]["settings"] == {}
        assert "chosen" not in before[0]["tuning"]
        tuning = dict(said["tuning"])
        assert tuning.pop("chosen") in SEARCH.candidates()
        tuning.pop("chosen_score")
        said["settings"] = None
        told.add(json.dumps(said | {"tuning": tuning}))
        assert made.steps == 1
    assert len(lengths) > 2
    assert len(told) == 1
    assert progress == {0}


def test_the_best_score_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the runs that were drawn the one with the lowest score, with its own settings."""
    made = fitted()
    scores: list[tuple[float, int, Any]] = []
    once = TunedFit._run_once

    def noted(self: TunedFit, number: int, *args: Any) -> Any:
        outcome, score = once(self, number, *args)
        scores.append((score, number, outcome))
        return outcome, score

    monkeypatch.setattr(TunedFit, "_run_once", noted)
    monkeypatch.setattr(
        "dpfit.privacy.mechanisms.random_stopping.StoppingDraws.number_of_runs",
        lambda self, eta, gamma: 9,
    )
    outcome = made.run(lambda description: None, lambda done: None)
    assert len(scores) == 9
    score, number, best = min(scores, key=lambda one: one[0])
    assert outcome is best
    assert made.best is not None
    assert (made.best.score, made.best.settings) == (score, SEARCH.candidates()[number])
    assert made.plan is made.plans[number]


def test_the_score_is_the_noisy_loss_of_the_very_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores of nine runs are within six deviations of the error rates counted by prediction."""
    made = fitted(budget=Budget(epsilon=50.0, delta=1e-6), algorithm="dp-gd")
    rows, target = block().values.reshape(N, D), block().target
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    for number in range(4):
        noise = SearchNoise(3).of_next_run()
        outcome, score = made._run_once(number, noise, lambda done: None)
        margins = rows[:, outcome.columns] @ outcome.values
        margins += outcome.intercept * made.plan.grid.intercept_value + outcome.offset
        wrong = float(np.mean((margins > 0.0) != (target > 0.0)))
        deviation = made.score_release.noise_multiplier / N
        assert abs(score - wrong) < 6.0 * deviation + 1e-3
        assert score != wrong


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"budget": Budget(rho=0.1)}, "--eps and --delta"),
        ({"budget": Budget(mu=0.1)}, "--eps and --delta"),
        ({"without_noise": True, "budget": None}, "needs noise"),
        ({"calibration": "paper"}, "exact only"),
        ({"search": Search({"l1_radius": (1.0, 2.0)})}, "no setting of --algo"),
        ({"search": Search({"iterations": (0, 2)})}, "--iterations"),
        (
            {
                "algorithm": "median-objective",
                "loss": "absolute",
                "declared": DeclaredFacts(),
                "search": Search({"ridge": (1.0, 2.0)}),
            },
            "no --algo median-objective",
        ),
    ],
)
def test_what_has_no_proof_is_refused(more: dict[str, Any], said: str) -> None:
    """Before anything is read."""
    with pytest.raises(UsageError, match=said):
        request(**more)


def test_searches_are_sensible() -> None:
    """At least two candidates, none twice, and a law with a number of runs that can be expected."""
    for grid in ({"sparsity": (5,)}, {"sparsity": tuple(range(1, 300))}):
        with pytest.raises(UsageError, match="combinations"):
            Search(grid)
    with pytest.raises(UsageError, match="twice"):
        Search({"sparsity": (5, 5)})
    with pytest.raises(UsageError, match="--tune-runs"):
        request(search=replace(SEARCH, expected_runs=1.0))
    assert 0 < SEARCH.gamma < 1
    assert Search({"sparsity": (1, 2, 3)}).gamma > Search({"sparsity": (1, 2, 3)}, 30.0).gamma


def test_more_runs_cost_each_of_them_more() -> None:
    """The rho of a run falls with the number expected, and is below that of a run alone."""
    budget = Budget(epsilon=1.0, delta=1e-6)
    rhos = [
        replace(SEARCH, expected_runs=runs).rho_of_run(budget, Adjacency.REPLACE_ONE)
        for runs in (2.0, 4.0, 16.0)
    ]
    assert Fraction(budget.total_rho) > rhos[0] > rhos[1] > rhos[2] > 0
