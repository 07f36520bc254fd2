"""What a matrix completion will do and cost, from the request and the public facts alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from dpfit.algorithms.complete_matrix import CompleteMatrix
from dpfit.algorithms.matrix_rule import SWEEPS, MatrixScale, default_rule
from dpfit.errors import PrivacyError
from dpfit.fitting.matrix_request import MatrixRequest
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.charged_releases import SumRelease
from dpfit.privacy.events import Event, NonPrivateEvent
from dpfit.privacy.huber_release import huber_variance
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.public_facts import Origin, PublicFact, PublicFacts
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.user_release import NoiseLaw, plan_user_release
from dpfit.privacy.user_sensitivity import UserGrid

_HOPELESS: Final = 30.0
_MANY_ITEMS: Final = 1_000_000


@dataclass(frozen=True)
class MatrixPlan:
    """A run, fixed in every number.

    Attributes
    ----------
    algorithm : CompleteMatrix
        With all its settings.
    grid : UserGrid
        Public numbers of users, items and factors.
    releases : sequence of releases
        The mechanisms.
    events : sequence of Event
        The charge.
    shares : dict
        Part of the budget of each release, by label; they sum to one.
    facts : PublicFacts
        Declared and assumed.
    """

    algorithm: CompleteMatrix
    grid: UserGrid
    releases: Sequence[SumRelease]
    events: Sequence[Event]
    shares: dict[str, float]
    facts: PublicFacts

    def noise_multipliers(self) -> dict[str, float]:
        """Deviation of each release's noise, in units of the largest share of a user."""
        return {release.label: release.noise_multiplier for release in self.releases}

    @property
    def falls_back(self) -> bool:
        """Whether there are biases and local features only."""
        return not self.algorithm.has_factors


def public_facts(request: MatrixRequest) -> PublicFacts:
    """What the request declares."""
    facts = PublicFacts(strict=request.strict)
    bounds = list(request.value_range)
    facts.add(PublicFact("value_range", bounds, Origin.DECLARED, "--range"))
    if request.n_users is not None:
        facts.add(PublicFact("users", request.n_users, Origin.DECLARED, "--n-users"))
    if request.n_items is not None:
        facts.add(PublicFact("items", request.n_items, Origin.DECLARED, "--items"))
    return facts


def plan_matrix(request: MatrixRequest, facts: PublicFacts) -> MatrixPlan:
    """Fix the settings, the mechanisms and the charge.

    Parameters
    ----------
    request : MatrixRequest
        What the user asked for.
    facts : PublicFacts
        With the numbers of users and of items.

    Raises
    ------
    PrivacyError
        The budget is too small to say anything about so many items.
    """
    n_users, n_items = facts.integer("users"), facts.integer("items")
    scale = MatrixScale(
        n_users, n_items, request.value_range, _equivalent_mu(request, n_items), request.pure
    )
    if request.pure and scale.scarcity > _HOPELESS:
        raise PrivacyError(
            f"pure epsilon with {request.noise} noise is hopeless here: the noise on an item's sum"
            f" would be {scale.scarcity / _HOPELESS:.0f} times the most that {n_users} users of"
            f" {n_items} items can bear",
            hint="give --delta, or a far larger --eps",
        )
    algorithm = _algorithm(request, scale)
    grid = UserGrid(n_users, n_items, algorithm.rank if algorithm.has_factors else 0)
    planned, whole = algorithm.planned(), _whole(request)
    releases = [
        plan_user_release(
            one,
            grid,
            request.user_noise,
            share=None if whole is None else whole * one.budget_part,
            adjacency=request.adjacency,
        )
        for one in planned
    ]
    events: list[Event] = [NonPrivateEvent(label=one.label, count=one.count) for one in releases]
    if request.private:
        events = [one.event() for one in releases]
    shares = {one.label: float(one.budget_part) for one in planned}
    return MatrixPlan(algorithm, grid, releases, events, shares, facts)


def charge_ahead(request: MatrixRequest) -> list[Event]:
    """The charge as far as it is known before the data: one release for the whole budget.

    The final plan spends the same budget up to the rounding of its grids. This is for a refusal
    before hours of reading; the reservation checks the exact charge again.

    Parameters
    ----------
    request : MatrixRequest
        What the user asked for.
    """
    whole = _whole(request)
    if whole is None or not request.private:
        return [NonPrivateEvent(label="whole run")]
    # Of the quantities these cost least under the other relation, which the cap may be meant in.
    replaced = request.adjacency is Adjacency.REPLACE_ONE
    quantity = Quantity.ITEM_SUMS if replaced else Quantity.ITEM_COUNTS
    planned = PlannedRelease("whole run", quantity, 1, Fraction(1))
    # With many items the l1 norm is of no use to a budget in rho, as in the final plan.
    grid = UserGrid(1, request.n_items or _MANY_ITEMS, 0)
    release = plan_user_release(
        planned, grid, request.user_noise, share=whole, adjacency=request.adjacency
    )
    return [release.event()]


def _algorithm(request: MatrixRequest, scale: MatrixScale) -> CompleteMatrix:
    """The default rule's settings, with what the user asked for in their place."""
    rule = default_rule(scale, huber=request.huber)
    asked = request.asked_settings()
    if asked.get("rank", rule.rank) and not rule.has_factors:
        asked.setdefault("sweeps", SWEEPS)  # factors against the rule's advice
    if "huber_threshold" in asked:
        asked["residual_clip"] = asked["huber_threshold"]
    asked["rank"] = min(asked.get("rank", rule.rank), scale.n_items)
    if not asked["rank"]:
        asked["sweeps"] = 0
    keeps = request.rank is not None or not rule.may_fall_back
    return replace(rule, may_fall_back=not keeps, **asked)  # type: ignore[arg-type]


def _whole(request: MatrixRequest) -> Fraction | None:
    """The budget: epsilon where it is pure, else mu^2 of Gaussian noise, or twice rho.

    In a run without noise it only fixes what the rule derives from it.
    """
    budget = request.budget
    if budget is None:
        return None
    if request.pure:
        assert budget.epsilon is not None
        return Fraction(budget.epsilon)
    if request.law is NoiseLaw.GAUSSIAN:
        return budget.squared_mu
    return 2 * budget.total_rho


def _equivalent_mu(request: MatrixRequest, n_items: int) -> float | None:
    """mu of Gaussian noise of the same variance on sums by item.

    A pure epsilon is charged in the l1 norm, which is sqrt(n_items) times the l2 norm.
    """
    whole = _whole(request)
    if whole is None:
        return None
    knee = float(request.knee)
    variance = {
        NoiseLaw.GAUSSIAN: 1.0,
        NoiseLaw.LAPLACE: 2.0,
        NoiseLaw.HUBER: huber_variance(knee),
    }[request.law]
    if not request.pure:
        return math.sqrt(float(whole) / variance)
    steepness = knee if request.law is NoiseLaw.HUBER else 1.0
    return float(whole) / (steepness * math.sqrt(variance * n_items))
