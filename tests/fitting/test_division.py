"""A division keeps the budget in every currency, whatever is planned."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest

from dpfit.errors import PrivacyError
from dpfit.fitting.division import Allowance, divide
from dpfit.fitting.plan import plan_fit
from dpfit.fitting.request import FitRequest
from dpfit.losses.absolute import Absolute
from dpfit.losses.smoothed import HuberSmoothed
from dpfit.privacy.accountant import Cost, compose
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.events import (
    BoundedRangeEvent,
    Event,
    GaussianEvent,
    MinimiserEvent,
    MinimiserLaw,
    PureEvent,
)
from dpfit.privacy.objective import Objective
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.public_facts import Origin, PublicFact, PublicFacts
from dpfit.privacy.quantity import Quantity

OBJECTIVE = Objective(HuberSmoothed(0.5, 0.1), 40.0)
TENTH = Fraction(1, 10)
CHOICE = PlannedRelease("choice", Quantity.TARGET_RANKS, 1, Fraction(0), chosen=1, pure_part=TENTH)
PURE = PlannedRelease("pure", Quantity.MINIMISER, 1, Fraction(0), pure_part=3 * TENTH)
NOISE = PlannedRelease("noise", Quantity.MINIMISER, 1, Fraction(99, 100))
MORE = PlannedRelease("more", Quantity.GRADIENT, 7, Fraction(1, 100))
TERM = PlannedRelease(
    "term",
    Quantity.OBJECTIVE_TERM,
    1,
    Fraction(99, 100),
    pure_part=3 * TENTH,
    objective=OBJECTIVE,
    law=MinimiserLaw.GAUSSIAN,
)
ALL_PURE = [
    CHOICE,
    PURE,
    PlannedRelease("rest", Quantity.MINIMISER, 1, Fraction(0), pure_part=6 * TENTH),
]
PLANS = {
    "gaussian": [NOISE, MORE],
    "all pure": ALL_PURE,
    "choice beside noise": [CHOICE, NOISE, MORE],
    "pure beside noise": [PURE, NOISE, MORE],
    "both beside noise": [CHOICE, PURE, NOISE, MORE],
    "folded": [CHOICE, TERM, MORE],
}
adjacencies = pytest.mark.parametrize("adjacency", Adjacency)


def pair(value: Fraction) -> PerAdjacency[Fraction]:
    return PerAdjacency(value, value)


def spent(planned: PlannedRelease, allowance: Allowance) -> Event:
    """An event of exactly the allowance, or a hair less."""
    squared_mu, epsilon = allowance.squared_mu, allowance.epsilon
    if planned.law is MinimiserLaw.GAUSSIAN:
        assert squared_mu is not None
        assert epsilon is not None
        scale = Fraction(1 / float(squared_mu) ** 0.5) * (1 + Fraction(1, 10**12))
        return MinimiserEvent(
            label="m",
            law=planned.law,
            sensitivity=pair(Fraction(1)),
            scale=scale,
            jacobian=pair(epsilon),  # ln(1 + q) <= q
        )
    if squared_mu is not None:
        assert epsilon is None
        unit = 1 << 60
        squared = int(squared_mu * unit**2)
        return GaussianEvent(
            label="g", squared_sensitivity=PerAdjacency(squared, squared), scale=unit
        )
    assert epsilon is not None
    if planned.selects:
        return BoundedRangeEvent(label="b", eta=pair(epsilon))
    return PureEvent(label="p", epsilon=pair(epsilon))


def cost_of(plans: Sequence[PlannedRelease], budget: Budget, adjacency: Adjacency) -> Cost:
    shares = divide(plans, budget, adjacency)
    return compose(map(spent, plans, shares), adjacency)


@adjacencies
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 0.01])
def test_an_epsilon_with_a_delta_is_kept(
    adjacency: Adjacency, plan: str, epsilon: float, delta: float
) -> None:
    cost = cost_of(PLANS[plan], Budget(epsilon=epsilon, delta=delta), adjacency)
    assert cost.epsilon(delta) <= epsilon * (1 + 1e-12)
    if plan in ("gaussian", "choice beside noise"):
        assert cost.epsilon(delta) >= epsilon * (1 - 1e-6)


@adjacencies
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_a_pure_epsilon_is_kept_and_used(adjacency: Adjacency, epsilon: float) -> None:
    cost = cost_of(ALL_PURE, Budget(epsilon=epsilon), adjacency)
    assert cost.pure == Fraction(epsilon)


@adjacencies
@pytest.mark.parametrize("plan", [name for name in PLANS if name != "folded"])
@pytest.mark.parametrize("rho", [0.001, 0.1, 5.0])
def test_a_rho_is_kept_and_used(adjacency: Adjacency, plan: str, rho: float) -> None:
    cost = cost_of(PLANS[plan], Budget(rho=rho), adjacency)
    assert rho * (1 - 1e-6) <= cost.rho_bound() <= rho * (1 + 1e-12)


@adjacencies
@pytest.mark.parametrize("noise", ["gaussian", "l2", "l1"])
def test_curvature_that_leaves_nothing_is_refused(adjacency: Adjacency, noise: str) -> None:
    """With a hint, under every law: also where nothing is left to divide."""
    request = FitRequest(
        sparsity=None,
        budget=Budget(epsilon=1.0, delta=1e-6),
        dataset="toy",
        algorithm="median-objective",
        loss="absolute",
        noise=noise,
        smoothing=0.01,
        ridge=0.1,
        adjacency=adjacency,
    )
    facts = PublicFacts(
        PublicFact(name, 100, Origin.DECLARED, f"--{name}") for name in ("rows", "features")
    )
    with pytest.raises(PrivacyError, match="curvature alone"):
        plan_fit(request, facts, Absolute())


@adjacencies
def test_the_least_delta_can_be_divided(adjacency: Adjacency) -> None:
    """A folded loss needs a half or a quarter of it."""
    budget = Budget.from_request(1.0, 1e-299, None, None)
    cost = cost_of(PLANS["folded"], budget, adjacency)
    assert cost.epsilon(1e-299) <= 1.0


def test_a_run_without_a_budget_has_no_allowances() -> None:
    for shares in divide([CHOICE, TERM], None, Adjacency.REPLACE_ONE):
        assert shares == Allowance()


@adjacencies
def test_a_folded_loss_gets_its_part_of_delta(adjacency: Adjacency) -> None:
    """What is left to Gaussian noise beside it is less than beside a pure release of that part."""
    budget = Budget(epsilon=1.0, delta=1e-6)
    folded = divide([CHOICE, TERM, MORE], budget, adjacency)[1].squared_mu
    plain = divide([CHOICE, PURE, NOISE, MORE], budget, adjacency)[2].squared_mu
    assert folded is not None
    assert plain is not None
    assert folded < plain
