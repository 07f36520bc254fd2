"""What a run will do and cost, from the request and the public facts alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

from dpfit.algorithms import dp_fw, dp_gd, dp_ight, dp_iht, dp_screen, two_stage
from dpfit.algorithms.base import Algorithm, Setting
from dpfit.algorithms.default_rule import PublicScale
from dpfit.algorithms.noisy_descent import DescentSettings
from dpfit.design.grid import Grid, grid_bits
from dpfit.fitting.request import FitRequest
from dpfit.losses.base import Loss
from dpfit.losses.huber import Huber
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.charged_releases import Release
from dpfit.privacy.events import Event, NonPrivateEvent
from dpfit.privacy.gaussian_release import plan_release
from dpfit.privacy.laplace_release import plan_laplace
from dpfit.privacy.logistic_sensitivity import may_refine
from dpfit.privacy.peeling_release import plan_peeling
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.printed_noise import PRINTED, real_cost
from dpfit.privacy.public_facts import PublicFacts
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.selection_release import plan_selection

FINEST_BITS: Final = 20  # of a row's integers; finer than any noise that a budget can buy


@dataclass(frozen=True)
class FitPlan:
    """A run, fixed in every number.

    Attributes
    ----------
    algorithm : Algorithm
        With all its settings.
    loss : Loss
        As chosen or inferred.
    grid : Grid
        The record map.
    releases : sequence of releases
        The mechanisms.
    events : sequence of Event
        The charge.
    facts : PublicFacts
        Declared and assumed.
    """

    algorithm: Algorithm
    loss: Loss
    grid: Grid
    releases: Sequence[Release]
    events: Sequence[Event]
    facts: PublicFacts

    def noise_multipliers(self) -> dict[str, float]:
        """Noise of each release, as a multiple of the largest share that one record can have."""
        return {release.label: release.noise_multiplier for release in self.releases}


_RULES: Final[dict[str, Callable[[FitRequest, PublicScale, Any], Any]]] = {
    "dp-ight": lambda asked, scale, s: dp_ight.default_rule(scale, s, asked.threshold or "each"),
    "dp-screen": lambda asked, scale, s: dp_screen.default_rule(scale, s),
    "dp-gd": lambda asked, scale, s: dp_gd.default_rule(scale, s),
    "dp-iht": lambda asked, scale, s: dp_iht.default_rule(scale, s),
    "dp-fw": lambda asked, scale, s: dp_fw.default_rule(scale),
    "two-stage": lambda asked, scale, s: two_stage.default_rule(scale, s),
}


_AS_PRINTED: Final[dict[str, dict[str, Setting]]] = {
    "dp-iht": {"selection": "peeling"},
    "dp-fw": {"laplace": True},
}
"""Settings that belong to the printed noise."""


def finest_grid(request: FitRequest) -> Grid:
    """The record map before the shape is known, which may coarsen it and bound entries."""
    return Grid(request.row_norm, request.row_map, FINEST_BITS, request.intercept)


def plan_fit(
    request: FitRequest, facts: PublicFacts, loss: Loss, *, target_span: float = 1.0
) -> FitPlan:
    """Fix the settings, the mechanisms and the charge.

    Parameters
    ----------
    request : FitRequest
        What the user asked for.
    facts : PublicFacts
        Declared and assumed.
    loss : Loss
        As chosen or inferred.
    target_span : float
        Length of a real target's public range.

    Raises
    ------
    PrivacyError
        The budget is too small for the number of iterations.
    """
    row_bits, residual_bits = grid_bits(facts.integer("rows"))
    entry_clip = request.entry_bound(facts.integer("features"))
    grid = replace(finest_grid(request), bits=row_bits, entry_clip=entry_clip)
    algorithm = _algorithm(request, facts, loss, target_span)
    # The refined step would undercut a printed noise, which is for gradients 2 G apart.
    refining = None if request.printed else loss
    releases = _releases(algorithm, request, grid, residual_bits, refining)
    events: list[Event] = [NonPrivateEvent(label=release.label) for release in releases]
    if request.private:
        events = [release.event() for release in releases]
    return FitPlan(algorithm, loss, grid, releases, events, facts)


def charge_ahead(request: FitRequest) -> list[Event]:
    """The charge as far as it is known before the data: one release for the whole budget.

    The final plan spends the same budget up to the rounding of its grids. This is for a refusal
    before hours of reading; the reservation checks the exact charge again. Of printed noise nothing
    is known before the number of steps is, unless the cost is the same for all. Nor of selections:
    what they cost beside other runs, or at another delta, depends on how many there are, and no
    one release for their budget costs less.
    """
    if request.budget is None or not request.private:
        return [NonPrivateEvent(label="whole run")]
    grid = finest_grid(request)
    if not request.printed:
        if request.traits.selects:
            return []
        whole = PlannedRelease("whole run", Quantity.GRADIENT, 1, Fraction(1))
        squared_mu = request.budget.squared_mu
        return [_release(whole, grid, squared_mu, FINEST_BITS, request.adjacency).event()]
    if request.iterations is None and request.algorithm != "dp-ight":
        return []
    # With few columns entries may be long, and the printed noise of dp-iht costs least.
    grid = replace(grid, entry_clip=request.entry_bound(request.declared.n_features or 1))
    smallest = _scale(request, rows=1, features=1, loss="logistic")
    rule = _RULES[request.algorithm](request, smallest, request.sparsity)
    algorithm: Algorithm = replace(rule, **_asked(request))
    return [one.event() for one in _releases(algorithm, request, grid, FINEST_BITS, None)]


def _algorithm(
    request: FitRequest, facts: PublicFacts, loss: Loss, target_span: float
) -> Algorithm:
    """The default rule's settings, with what the user asked for in their place."""
    rows, features = facts.integer("rows"), facts.integer("features")
    scale = _scale(request, rows, features, loss.name, target_span)
    sparsity = request.sparsity
    if sparsity is not None:
        sparsity = min(sparsity, scale.n_features)
    rule = _RULES[request.private_algorithm](request, scale, sparsity)
    wished = _wished(request, loss)
    if isinstance(rule, DescentSettings) and scale.classifies and "step_size" not in wished:
        # What keeps steps on classes stable is eta tau; another tau calls for another eta.
        clip = request.residual_clip or rule.residual_clip
        wished["step_size"] = rule.step_size * rule.residual_clip / clip
    algorithm: Algorithm = replace(rule, **wished)
    return algorithm


def _scale(
    request: FitRequest, rows: int, features: int, loss: str, target_span: float = 1.0
) -> PublicScale:
    return PublicScale(
        n_rows=rows,
        n_features=features,
        loss=loss,
        row_norm=request.row_norm,
        squared_mu=request.budget.squared_mu if request.budget else None,
        adjacency=request.adjacency,
        count_unit=min(1.0, 1.0 / target_span),
    )


def _asked(request: FitRequest) -> dict[str, Setting]:
    """What the user asked for, and what belongs to a printed noise."""
    forced = _AS_PRINTED.get(request.algorithm, {}) if request.printed else {}
    return {**request.asked_settings(), **forced}


def _wished(request: FitRequest, loss: Loss) -> dict[str, Setting]:
    """What was asked, and what follows from the loss."""
    wished = _asked(request)
    if isinstance(loss, Huber):
        wished.setdefault("residual_clip", loss.threshold)  # no residual is larger
    if request.joint_rows:
        wished["joint_rows"] = True
    return wished


def _releases(
    algorithm: Algorithm, request: FitRequest, grid: Grid, bits: int, refining: Loss | None
) -> list[Release]:
    """Each planned release as a mechanism; a loss may refine the steps of its gradients."""
    planned = algorithm.planned()
    return [
        _release(
            one,
            grid,
            squared_mu,
            bits,
            request.adjacency,
            refined=refining is not None and may_refine(one, refining),
        )
        for one, squared_mu in zip(planned, _spendable(planned, request, grid), strict=True)
    ]


def _spendable(
    planned: Sequence[PlannedRelease], request: FitRequest, grid: Grid
) -> list[Fraction | None]:
    """What each release may spend, as mu^2: its part of the budget, or what printed noise costs.

    Selections compose as zCDP, so parts are of twice rho where there is one.
    """
    budget = request.budget
    if budget is None:
        return [None for _ in planned]
    if request.printed:
        multiple = PRINTED[request.algorithm, request.calibration]
        asked = budget.approximate()
        return [real_cost(one, grid, multiple(one, *asked), request.adjacency) for one in planned]
    selects = any(one.selects for one in planned)
    whole = 2 * budget.total_rho if selects else budget.squared_mu
    return [whole * one.budget_part for one in planned]


def _release(
    planned: PlannedRelease,
    grid: Grid,
    squared_mu: Fraction | None,
    unit_bits: int,
    adjacency: Adjacency,
    *,
    refined: bool = False,
) -> Release:
    rho = None if squared_mu is None else squared_mu / 2
    if planned.selects:
        plan = plan_peeling if planned.laplace else plan_selection
        return plan(planned, grid, unit_bits=unit_bits, rho=rho, adjacency=adjacency)
    if planned.laplace:
        return plan_laplace(planned, grid, unit_bits=unit_bits, rho=rho, adjacency=adjacency)
    return plan_release(
        planned,
        grid,
        unit_bits=unit_bits,
        squared_mu=squared_mu,
        adjacency=adjacency,
        refined=refined,
    )
