"""What a run will do and cost, from the request and the public facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, TypeAlias

from dpfit.algorithms import dp_fw, dp_gd, dp_ight, dp_iht, dp_screen
from dpfit.algorithms.base import Algorithm
from dpfit.algorithms.default_rule import PublicScale
from dpfit.algorithms.dp_gd import DpGd
from dpfit.algorithms.dp_ight import DpIght
from dpfit.algorithms.dp_iht import DpIht
from dpfit.algorithms.shares import Quantity, Share
from dpfit.design.grid import Grid, grid_bits
from dpfit.fitting.request import FitRequest
from dpfit.losses.base import Loss
from dpfit.losses.logistic import Logistic
from dpfit.losses.squared import Squared
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.events import Event, NonPrivateEvent
from dpfit.privacy.gaussian_release import (
    COLUMN_SUMS,
    TARGET_SUM,
    GaussianRelease,
    gradient_factor,
    partial_gradient_factor,
    plan_release,
)
from dpfit.privacy.public_facts import PublicFacts
from dpfit.privacy.selection_release import SelectionRelease, plan_selection

Release: TypeAlias = GaussianRelease | SelectionRelease

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
    releases : sequence of GaussianRelease or SelectionRelease
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


def finest_grid(request: FitRequest) -> Grid:
    """The record map before the number of records may coarsen it."""
    return Grid(
        request.row_norm, request.row_map, FINEST_BITS, request.intercept, request.entry_bound
    )


def plan_fit(request: FitRequest, facts: PublicFacts, loss: Loss) -> FitPlan:
    """Fix the settings, the mechanisms and the charge.

    Raises
    ------
    PrivacyError
        The budget is too small for the number of iterations.
    """
    row_bits, residual_bits = grid_bits(facts.integer("rows"))
    grid = replace(finest_grid(request), bits=row_bits)
    algorithm = _algorithm(request, facts, loss)
    releases = _releases(algorithm, request, grid, residual_bits)
    events: list[Event] = [NonPrivateEvent(label=release.label) for release in releases]
    if request.private:
        events = [release.event() for release in releases]
    return FitPlan(algorithm, loss, grid, releases, events, facts)


def charge_ahead(request: FitRequest) -> list[Event]:
    """The charge as far as it is known before the data: one release for the whole budget.

    The final plan spends the same budget up to the rounding of its grids. This is for a refusal
    before hours of reading; the reservation checks the exact charge again.
    """
    if request.budget is None or not request.private:
        return [NonPrivateEvent(label="whole run")]
    whole = plan_release(
        "whole run",
        PerAdjacency(replace_one=1, add_remove=1),
        unit_bits=FINEST_BITS,
        squared_mu=request.budget.squared_mu,
        count=1,
        adjacency=request.adjacency,
    )
    return [whole.event()]


def loss_named(name: str) -> Loss:
    """The loss of that command-line name."""
    return Logistic() if name == "logistic" else Squared()


def _algorithm(request: FitRequest, facts: PublicFacts, loss: Loss) -> Algorithm:
    scale = PublicScale(
        n_rows=facts.integer("rows"),
        n_features=facts.integer("features"),
        loss=loss.name,
        row_norm=request.row_norm,
        squared_mu=request.budget.squared_mu if request.budget else None,
        adjacency=request.adjacency,
    )
    if request.algorithm == "dp-screen":
        screen = dp_screen.default_rule(scale, request.sparsity)
        return replace(
            screen,
            iterations=request.iterations or screen.iterations,
            residual_clip=request.residual_clip,
        )
    if request.algorithm == "dp-fw":
        vertices = dp_fw.default_rule(scale)
        return replace(
            vertices,
            iterations=request.iterations or vertices.iterations,
            l1_radius=request.l1_radius or vertices.l1_radius,
            residual_clip=request.residual_clip or vertices.residual_clip,
        )
    rule: DpGd | DpIght | DpIht
    if request.algorithm == "dp-gd":
        rule = dp_gd.default_rule(scale, request.sparsity)
    else:
        assert request.sparsity is not None
        thresholded = dp_iht if request.algorithm == "dp-iht" else dp_ight
        rule = thresholded.default_rule(scale, request.sparsity)
    return replace(
        rule,
        iterations=request.iterations or rule.iterations,
        step_size=request.step_size or rule.step_size,
        residual_clip=request.residual_clip or rule.residual_clip,
    )


def _releases(algorithm: Algorithm, request: FitRequest, grid: Grid, bits: int) -> list[Release]:
    """Each share as a mechanism. Selections compose as zCDP, so then every part is one of rho."""
    shares = algorithm.shares()
    budget = request.budget
    if any(share.quantity is Quantity.SELECTION for share in shares):
        rho = None if budget is None else budget.total_rho
        squared_mu = None if rho is None else 2 * rho
    else:
        squared_mu = None if budget is None else budget.squared_mu
    return [_release(share, request.adjacency, squared_mu, grid, bits) for share in shares]


def _release(
    share: Share, adjacency: Adjacency, squared_mu: Fraction | None, grid: Grid, bits: int
) -> Release:
    part = None if squared_mu is None else squared_mu * share.part
    if share.quantity is Quantity.SELECTION:
        return plan_selection(
            share.label,
            grid.largest_entry,
            unit_bits=bits,
            rho=None if part is None else part / 2,
            chosen=share.chosen,
            count=share.count,
            adjacency=adjacency,
        )
    return plan_release(
        share.label,
        _factor(share, grid),
        unit_bits=bits,
        squared_mu=part,
        count=share.count,
        adjacency=adjacency,
    )


def _factor(share: Share, grid: Grid) -> PerAdjacency[int]:
    match share.quantity:
        case Quantity.COLUMN_SUMS:
            return COLUMN_SUMS
        case Quantity.TARGET_SUM:
            return TARGET_SUM
        case Quantity.UNIT_GRADIENT:
            return gradient_factor(grid.integer_norm**2)
        case Quantity.PARTIAL_GRADIENT:
            return partial_gradient_factor(grid.squared_norm, grid.largest_entry, share.chosen)
        case _:
            return gradient_factor(grid.squared_norm)
