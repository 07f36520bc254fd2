"""two-stage: its shares, and the support it finds."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from dense_rows import dense_block
from dpfit.algorithms.default_rule import PublicScale
from dpfit.algorithms.outcome import Outcome
from dpfit.algorithms.two_stage import default_rule
from dpfit.data.rows import RowBlock
from dpfit.errors import UsageError
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.request import FitRequest
from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.declared_facts import DeclaredFacts, Layout

N, D = 2_500, 40
PLANTED = {3: 2.0, 11: -3.0, 30: 2.5}


def blocks(loss: str) -> Iterator[RowBlock]:
    rng = np.random.default_rng(0)
    values = rng.standard_normal((N, D))
    score = sum(weight * values[:, j] for j, weight in PLANTED.items())
    target = (score > 0).astype(np.float64) if loss == "logistic" else score
    yield dense_block(values, target)


def request(loss: str, budget: Budget | None, **changes: object) -> FitRequest:
    facts = {"algorithm": "two-stage", "loss": loss, "declared": declared(loss), **changes}
    return FitRequest(
        sparsity=3, budget=budget, without_noise=budget is None, dataset="toy", **facts
    )


def declared(loss: str) -> DeclaredFacts:
    return DeclaredFacts(
        n_rows=N, n_features=D, index_base=0, target_range=(-10, 10) if loss == "squared" else None
    )


def loaded(asked: FitRequest) -> LinearFit:
    return LinearFit.of(asked, blocks(asked.loss), layout=Layout, source="toy.svm")


def ignore(*_: object) -> None:
    pass


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("rho", [None, 2.0])
def test_it_finds_the_planted_columns(loss: str, rho: float | None) -> None:
    """Without noise, and by a large budget with fixed noise: the columns and their signs."""
    budget = None if rho is None else Budget.from_request(None, None, rho, None)
    seed = None if rho is None else 1
    outcome: Outcome = loaded(request(loss, budget, seed=seed)).run(ignore, ignore)
    assert outcome.columns.tolist() == sorted(PLANTED)
    assert np.sign(outcome.values).tolist() == [np.sign(PLANTED[j]) for j in sorted(PLANTED)]


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_charge_keeps_the_budget(loss: str, adjacency: Adjacency) -> None:
    """Half of rho each for votes and descent, together at most and nearly all of it."""
    budget = Budget.from_request(None, None, 0.3, None)
    plan = loaded(request(loss, budget, adjacency=adjacency)).plan
    costs = [compose([event], adjacency).rho for event in plan.events]
    assert sum(costs) <= Fraction(0.3)
    assert [float(cost) for cost in costs] == pytest.approx([0.15, 0.15], rel=1e-4)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("budget", [None, Budget(mu=0.1), Budget(mu=7.0)])
def test_the_shares_are_the_whole_budget(loss: str, budget: Budget | None) -> None:
    """The parts sum to exactly one and are told with the settings."""
    scale = PublicScale(10_000, 500, loss, 1.0, budget, Adjacency.REPLACE_ONE)
    algorithm = default_rule(scale, 20)
    assert sum(one.budget_part for one in algorithm.planned()) == 1
    assert algorithm.settings()["budget_parts"] == {"votes": 0.5, "descent": 0.5}


def test_everything_charged_is_asked_and_progress_ends_at_the_last_step() -> None:
    """One selection and T gradients, no more and no less."""
    fit = loaded(request("logistic", None, iterations=7))
    seen: list[int] = []
    fit.run(ignore, seen.append)
    assert seen == list(range(8))
    assert [event.label for event in fit.plan.events] == ["votes", "descent"]


@pytest.mark.parametrize("change", [{"intercept": False}, {"step_size": 1.0}, {"sparsity": None}])
def test_what_it_cannot_be_told_is_refused(change: dict[str, object]) -> None:
    """No fit without an intercept, no step size, and never without a sparsity."""
    facts = {"sparsity": 3, "budget": None, "dataset": "toy", "algorithm": "two-stage", **change}
    facts["without_noise"] = True
    with pytest.raises(UsageError):
        FitRequest(**facts)
