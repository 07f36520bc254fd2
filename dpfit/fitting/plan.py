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
from dpfit.fitting.division import Allowance
from dpfit.fitting.mechanisms import PublicShape, mechanism, mechanisms
from dpfit.fitting.request import LEAST_SMOOTHING, FitRequest, share_of_range
from dpfit.losses.absolute import Absolute
from dpfit.losses.base import Loss
from dpfit.losses.huber import Huber
from dpfit.privacy.charged_releases import Release
from dpfit.privacy.events import Event, NonPrivateEvent
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.public_facts import PublicFacts
from dpfit.privacy.quantity import Quantity

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
    n_rows : int
        What divides the sums.
    """

    algorithm: Algorithm
    loss: Loss
    grid: Grid
    releases: Sequence[Release]
    events: Sequence[Event]
    facts: PublicFacts
    n_rows: int

    def noise_multipliers(self) -> dict[str, float]:
        """Noise of each release, as a multiple of the largest share that one record can have."""
        return {release.label: release.noise_multiplier for release in self.releases}


_Rule: TypeAlias = Callable[..., Any]
_RULES: Final[dict[str, tuple[_Rule, tuple[str, ...]]]] = {
    "dp-ight": (dp_ight.default_rule, ("threshold",)),
    "dp-screen": (dp_screen.default_rule, ()),
    "dp-gd": (dp_gd.default_rule, ()),
    "dp-iht": (dp_iht.default_rule, ()),
    "dp-fw": (lambda scale, _: dp_fw.default_rule(scale), ()),
    "two-stage": (two_stage.default_rule, ()),
    "median-objective": (
        median_objective.default_rule,
        ("quantile", "smoothing", "ridge", "noise"),
    ),
    "median-irls": (median_irls.default_rule, ("quantile", "noise")),
    "median-cd": (median_cd.default_rule, ("quantile", "noise", "batches")),
}
"""Of each algorithm, with the settings that decide others of the rule."""


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
    owners, rows = request.owners, divisor(request, facts)
    row_bits, residual_bits = grid_bits(rows)
    if owners is not None:  # each unit's sums are brought to a grid of their own
        row_bits = FINEST_BITS
    entry_clip = request.entry_bound(facts.integer("features"))
    grid = replace(finest_grid(request), bits=row_bits, entry_clip=entry_clip)
    algorithm = _algorithm(request, facts, grid, loss, target_span)
    # The refined step would undercut a printed noise, which is for gradients 2 G apart.
    refining = None if request.printed else loss
    shape = PublicShape(grid, residual_bits, rows, facts.integer("features"))
    if owners is not None:
        shape = replace(shape, owners=owners, n_owners=facts.integer("units"))
        refining = None
    releases = mechanisms(algorithm, request, shape, refining)
    events: list[Event] = [NonPrivateEvent(label=release.label) for release in releases]
    if request.private:
        events = [release.event() for release in releases]
    return FitPlan(algorithm, loss, grid, releases, events, facts, rows)


def divisor(request: FitRequest, facts: PublicFacts) -> int:
    """What divides the sums: the public number of rows, of units as many as may take part."""
    rows = facts.integer("rows")
    if request.owners is None:
        return rows
    return min(rows, facts.integer("units") * request.owners.max_rows)


def charge_ahead(request: FitRequest) -> list[Event]:
    """The charge as far as it is known before the data: one release for the whole budget.

    The final plan spends the same budget up to the rounding of its grids. This is for a refusal
    before hours of reading; the reservation checks the exact charge again. Of printed noise nothing
    is known before the number of steps is, unless the cost is the same for all. Nor of selections:
    what they cost beside other runs, or at another delta, depends on how many there are, and no
    one release for their budget costs less. Nor of a search, which costs what its runs do.
    """
    if request.budget is None or not request.private:
        return [NonPrivateEvent(label="whole run")]
    grid = finest_grid(request)
    if request.search is not None:
        return []
    if not request.printed:
        if request.traits.selects:
            return []
        whole = PlannedRelease("whole run", Quantity.GRADIENT, 1, Fraction(1))
        shape = PublicShape(grid, FINEST_BITS, n_rows=1, n_features=1)
        allowance = Allowance(request.budget.squared_mu)
        return [mechanism(whole, shape, allowance, request.adjacency).event()]
    if request.iterations is None and request.algorithm != "dp-ight":
        return []
    # With few columns entries may be long, and the printed noise of dp-iht costs least.
    grid = replace(grid, entry_clip=request.entry_bound(request.declared.n_features or 1))
    smallest = _scale(request, grid, rows=1, features=1, loss="logistic")
    rule = _rule(request, smallest, request.sparsity, _asked(request))
    algorithm: Algorithm = replace(rule, **_asked(request))
    shape = PublicShape(grid, FINEST_BITS, n_rows=1, n_features=1)
    return [one.event() for one in mechanisms(algorithm, request, shape, None)]


def _algorithm(
    request: FitRequest, facts: PublicFacts, grid: Grid, loss: Loss, target_span: float
) -> Algorithm:
    """The default rule's settings, with what the user asked for in their place."""
    rows, features = divisor(request, facts), facts.integer("features")
    if request.owners is not None:  # noise is for the clip of a unit: as if there were fewer rows
        rows = max(1, round(rows / request.owners.clip))
    scale = _scale(request, grid, rows, features, loss.name, target_span)
    sparsity = request.sparsity
    if sparsity is not None:
        sparsity = min(sparsity, scale.n_features)
    wished = _wished(request, loss, target_span)
    rule = _rule(request, scale, sparsity, wished)
    if isinstance(rule, DescentSettings) and scale.classifies and "step_size" not in wished:
        # What keeps steps on classes stable is eta tau; another tau calls for another eta.
        clip = request.residual_clip or rule.residual_clip
        wished["step_size"] = rule.step_size * rule.residual_clip / clip
    algorithm: Algorithm = replace(rule, **wished)
    return algorithm


def _rule(
    request: FitRequest, scale: PublicScale, sparsity: int | None, wished: Mapping[str, Setting]
) -> Any:
    rule, decisive = _RULES[request.private_algorithm]
    return rule(scale, sparsity, **{name: wished[name] for name in decisive if name in wished})


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
