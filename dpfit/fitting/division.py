"""How a budget is divided among the releases that an algorithm plans."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpfit.privacy import conversion
from dpfit.privacy.accountant import minimiser_doublings
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.events import MinimiserLaw
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.quantity import Quantity


@dataclass(frozen=True)
class Allowance:
    """What one release may spend; nothing is set in a run without noise.

    Attributes
    ----------
    squared_mu : Fraction or None
        For Gaussian noise; half of it is the rho of anything else.
    epsilon : Fraction or None
        As pure differential privacy, or as the range of a selection's log-likelihood ratio.
    """

    squared_mu: Fraction | None = None
    epsilon: Fraction | None = None


def divide(
    planned: Sequence[PlannedRelease], budget: Budget | None, adjacency: Adjacency
) -> list[Allowance]:
    """The allowance of each release; together they keep the budget.

    Without pure parts everything is a part of mu^2 or, where something is selected, of twice rho.
    With pure parts these come first. What they leave of an epsilon goes with delta to the Gaussian
    releases, since pure releases move the Gaussian curve by their epsilon; or what they leave of
    mu^2, if that is more (:mod:`.accountant`).

    Raises
    ------
    UsageError
        The budget is in a currency that these releases cannot be paid in.
    """
    if budget is None:
        return [Allowance() for _ in planned]
    if not any(one.pure_part for one in planned):
        selects = any(one.selects for one in planned)
        whole = 2 * budget.total_rho if selects else budget.squared_mu
        return [Allowance(squared_mu=whole * one.budget_part) for one in planned]
    gaussian = _left(planned, budget, adjacency)
    return [
        Allowance(
            squared_mu=gaussian * one.budget_part if gaussian and one.budget_part else None,
            epsilon=_pure(one, budget) if one.pure_part else None,
        )
        for one in planned
    ]


def _pure(planned: PlannedRelease, budget: Budget) -> Fraction:
    if budget.epsilon is not None:
        return planned.pure_part * Fraction(budget.epsilon)
    rho = planned.pure_part * budget.total_rho
    if planned.selects:  # a range of eta is eta^2/8-zCDP
        return 1 / Fraction(conversion.sqrt_up(1 / (8 * rho)))
    return Fraction(conversion.pure_epsilon(rho))


def _left(
    planned: Sequence[PlannedRelease], budget: Budget, adjacency: Adjacency
) -> Fraction | None:
    """What the pure parts leave to Gaussian releases, as mu^2."""
    if not any(one.budget_part for one in planned):
        return None
    left = 1 - sum((one.pure_part for one in planned), Fraction(0))
    if budget.epsilon is None:
        return 2 * left * budget.total_rho
    epsilon, delta = budget.approximate()
    doublings = sum(
        minimiser_doublings(adjacency)
        for one in planned
        if one.quantity is Quantity.OBJECTIVE_TERM and one.law is MinimiserLaw.GAUSSIAN
    )
    rest = conversion.round_down(left * Fraction(epsilon))
    if rest <= 0.0:
        return None
    beside = conversion.gaussian_mu(rest, math.ldexp(delta, -doublings))
    if doublings:
        return Fraction(beside) ** 2
    # Or all in mu: log-odds move by a selection's range, and by twice what else is pure.
    spent = sum((_squared_mu(one, budget) for one in planned if one.pure_part), Fraction(0))
    return max(Fraction(beside) ** 2, budget.squared_mu - spent)


def _squared_mu(planned: PlannedRelease, budget: Budget) -> Fraction:
    log_odds = _pure(planned, budget) * (1 if planned.selects else 2)
    return Fraction(conversion.randomized_response_mu(conversion.round_up(log_odds))) ** 2
