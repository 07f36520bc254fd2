"""What a run will do and cost, from the request and the public facts alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, TypeAlias

from dpfit.algorithms import (
    dp_fw,
    dp_gd,
    dp_ight,
    dp_iht,
    dp_screen,
    median_cd,
    median_irls,
    median_objective,
    two_stage,
)
from dpfit.algorithms.base import Algorithm, Setting
from dpfit.algorithms.default_rule import PublicScale
from dpfit.algorithms.noisy_descent import DescentSettings
from dpfit.design.grid import Grid, grid_bits
from dpfit.fitting.division import Allowance, divide
from dpfit.fitting.request import LEAST_SMOOTHING, FitRequest, share_of_range
from dpfit.losses.absolute import Absolute
from dpfit.losses.base import Loss
from dpfit.losses.huber import Huber
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.charged_releases import Release
from dpfit.privacy.events import Event, NonPrivateEvent
from dpfit.privacy.gaussian_release import plan_release
from dpfit.privacy.laplace_release import plan_laplace
from dpfit.privacy.logistic_sensitivity import may_refine
from dpfit.privacy.minimiser_release import VectorRelease, plan_minimiser, plan_vector
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


Asked: TypeAlias = Mapping[str, Any]

_RULES: Final[dict[str, Callable[[Asked, PublicScale, Any], Any]]] = {
    "dp-ight": lambda asked, scale, s: dp_ight.default_rule(
        scale, s, asked.get("threshold", "each")
    ),
    "dp-screen": lambda asked, scale, s: dp_screen.default_rule(scale, s),
    "dp-gd": lambda asked, scale, s: dp_gd.default_rule(scale, s),
    "dp-iht": lambda asked, scale, s: dp_iht.default_rule(scale, s),
    "dp-fw": lambda asked, scale, s: dp_fw.default_rule(scale),
    "two-stage": lambda asked, scale, s: two_stage.default_rule(scale, s),
    "median-objective": lambda asked, scale, s: median_objective.default_rule(
        scale, s, **_chosen(asked, "quantile", "smoothing", "ridge", "noise")
    ),
    "median-irls": lambda asked, scale, s: median_irls.default_rule(
        scale, s, **_chosen(asked, "quantile", "noise")
    ),
    "median-cd": lambda asked, scale, s: median_cd.default_rule(
        scale, s, **_chosen(asked, "quantile", "noise", "batches")
    ),
}


def _chosen(asked: Asked, *names: str) -> dict[str, Any]:
    return {name: asked[name] for name in names if name in asked}


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
    algorithm = _algorithm(request, facts, grid, loss, target_span)
    # The refined step would undercut a printed noise, which is for gradients 2 G apart.
    refining = None if request.printed else loss
    public = _Public(grid, residual_bits, facts.integer("rows"), facts.integer("features"))
    releases = _releases(algorithm, request, public, refining)
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
        public = _Public(grid, FINEST_BITS, n_rows=1, n_features=1)
        allowance = Allowance(request.budget.squared_mu)
        return [_release(whole, public, allowance, request.adjacency).event()]
    if request.iterations is None and request.algorithm != "dp-ight":
        return []
    # With few columns entries may be long, and the printed noise of dp-iht costs least.
    grid = replace(grid, entry_clip=request.entry_bound(request.declared.n_features or 1))
    smallest = _scale(request, grid, rows=1, features=1, loss="logistic")
    rule = _RULES[request.algorithm](_asked(request), smallest, request.sparsity)
    algorithm: Algorithm = replace(rule, **_asked(request))
    public = _Public(grid, FINEST_BITS, n_rows=1, n_features=1)
    return [one.event() for one in _releases(algorithm, request, public, None)]


def _algorithm(
    request: FitRequest, facts: PublicFacts, grid: Grid, loss: Loss, target_span: float
) -> Algorithm:
    """The default rule's settings, with what the user asked for in their place."""
    rows, features = facts.integer("rows"), facts.integer("features")
    scale = _scale(request, grid, rows, features, loss.name, target_span)
    sparsity = request.sparsity
    if sparsity is not None:
        sparsity = min(sparsity, scale.n_features)
    wished = _wished(request, loss, target_span)
    rule = _RULES[request.private_algorithm](wished, scale, sparsity)
    if isinstance(rule, DescentSettings) and scale.classifies and "step_size" not in wished:
        # What keeps steps on classes stable is eta tau; another tau calls for another eta.
        clip = request.residual_clip or rule.residual_clip
        wished["step_size"] = rule.step_size * rule.residual_clip / clip
    algorithm: Algorithm = replace(rule, **wished)
    return algorithm


def _scale(
    request: FitRequest,
    grid: Grid,
    rows: int,
    features: int,
    loss: str,
    target_span: float = 1.0,
) -> PublicScale:
    return PublicScale(
        n_rows=rows,
        n_features=features,
        loss=loss,
        row_norm=request.row_norm,
        budget=request.budget,
        adjacency=request.adjacency,
        record_length=math.sqrt(grid.squared_norm) / grid.integer_norm,
        count_unit=min(1.0, 1.0 / target_span),
    )


def _asked(request: FitRequest) -> dict[str, Setting]:
    """What the user asked for, and what belongs to a printed noise."""
    forced = _AS_PRINTED.get(request.algorithm, {}) if request.printed else {}
    return {**request.asked_settings(), **forced}


def _wished(request: FitRequest, loss: Loss, target_span: float) -> dict[str, Setting]:
    """What was asked, and what follows from the loss."""
    wished = _asked(request)
    if isinstance(loss, Huber):
        wished.setdefault("residual_clip", loss.threshold)  # no residual is larger
    if isinstance(loss, Absolute):
        wished["quantile"] = loss.quantile
    if request.smoothing is not None:
        wished["smoothing"] = share_of_range(
            "--smoothing", request.smoothing, target_span, LEAST_SMOOTHING
        )
    if request.joint_rows:
        wished["joint_rows"] = True
    return wished


@dataclass(frozen=True)
class _Public:
    """What the sensitivities of releases depend on."""

    grid: Grid
    unit_bits: int
    n_rows: int
    n_features: int


def _releases(
    algorithm: Algorithm, request: FitRequest, public: _Public, refining: Loss | None
) -> list[Release]:
    """Each planned release as a mechanism; a loss may refine the steps of its gradients."""
    planned = algorithm.planned()
    releases: list[Release] = []
    for one, allowance in zip(planned, _allowances(planned, request, public), strict=True):
        if one.quantity is Quantity.MINIMISER:
            vector = next((it for it in releases if isinstance(it, VectorRelease)), None)
            releases.append(_minimiser(one, public, allowance, request.adjacency, vector))
            continue
        refined = refining is not None and may_refine(one, refining)
        releases.append(_release(one, public, allowance, request.adjacency, refined=refined))
    return releases


def _allowances(
    planned: Sequence[PlannedRelease], request: FitRequest, public: _Public
) -> list[Allowance]:
    """Its part of the budget for each release, or what its printed noise costs."""
    if request.budget is None or not request.printed:
        return divide(planned, request.budget, request.adjacency)
    multiple = PRINTED[request.algorithm, request.calibration]
    asked = request.budget.approximate()
    return [
        Allowance(real_cost(one, public.grid, multiple(one, *asked), request.adjacency))
        for one in planned
    ]


def _release(
    planned: PlannedRelease,
    public: _Public,
    allowance: Allowance,
    adjacency: Adjacency,
    *,
    refined: bool = False,
) -> Release:
    grid, unit_bits = public.grid, public.unit_bits
    squared_mu, epsilon = allowance.squared_mu, allowance.epsilon
    rho = None if squared_mu is None else squared_mu / 2
    if planned.quantity in (Quantity.OBJECTIVE_TERM, Quantity.MINIMISER_SHIFT):
        return plan_vector(
            planned,
            grid,
            n_features=public.n_features,
            squared_mu=squared_mu,
            epsilon=epsilon,
            adjacency=adjacency,
        )
    if planned.selects and planned.laplace:
        return plan_peeling(planned, grid, unit_bits=unit_bits, rho=rho, adjacency=adjacency)
    if planned.selects or planned.laplace:
        plan = plan_selection if planned.selects else plan_laplace
        return plan(
            planned, grid, unit_bits=unit_bits, rho=rho, epsilon=epsilon, adjacency=adjacency
        )
    return plan_release(
        planned,
        grid,
        unit_bits=unit_bits,
        squared_mu=squared_mu,
        adjacency=adjacency,
        refined=refined,
    )


def _minimiser(
    planned: PlannedRelease,
    public: _Public,
    allowance: Allowance,
    adjacency: Adjacency,
    vector: VectorRelease | None,
) -> Release:
    return plan_minimiser(
        planned,
        public.grid,
        n_rows=public.n_rows,
        n_features=public.n_features,
        unit_bits=public.unit_bits,
        vector=vector,
        squared_mu=allowance.squared_mu,
        epsilon=allowance.epsilon,
        adjacency=adjacency,
    )
