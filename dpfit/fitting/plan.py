"""What a run will do and cost, from the request and the public facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from dpfit.algorithms import dp_gd, dp_ight, dp_screen
from dpfit.algorithms.base import Algorithm
from dpfit.algorithms.default_rule import PublicScale
from dpfit.algorithms.dp_gd import DpGd
from dpfit.algorithms.dp_ight import DpIght
from dpfit.algorithms.shares import Quantity, Share
from dpfit.design.grid import Grid, grid_bits
from dpfit.fitting.request import FitRequest
from dpfit.losses.base import Loss
from dpfit.losses.logistic import Logistic
from dpfit.losses.squared import Squared
from dpfit.privacy.adjacency import PerAdjacency
from dpfit.privacy.events import Event, NonPrivateEvent
from dpfit.privacy.gaussian_release import (
    COLUMN_SUMS,
    TARGET_SUM,
    GaussianRelease,
    gradient_factor,
    plan_release,
)
from dpfit.privacy.public_facts import PublicFacts

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
    releases : sequence of GaussianRelease
        The mechanisms.
    events : sequence of Event
        The charge.
    facts : PublicFacts
        Declared and assumed.
    """

    algorithm: Algorithm
    loss: Loss
    grid: Grid
    releases: Sequence[GaussianRelease]
    events: Sequence[Event]
    facts: PublicFacts

    def noise_multipliers(self) -> dict[str, float]:
        """Noise of each release, as a multiple of the largest share that one record can have."""
        return {release.label: release.noise_multiplier for release in self.releases}


def finest_grid(request: FitRequest) -> Grid:
    """The record map before the number of records may coarsen it."""
    return Grid(request.row_norm, request.row_map, FINEST_BITS, request.intercept)


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
    releases = [_release(share, request, grid, residual_bits) for share in algorithm.shares()]
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
    rule: DpGd | DpIght
    if request.algorithm == "dp-gd":
        rule = dp_gd.default_rule(scale, request.sparsity)
    else:
        assert request.sparsity is not None
        rule = dp_ight.default_rule(scale, request.sparsity)
    return replace(
        rule,
        iterations=request.iterations or rule.iterations,
        step_size=request.step_size or rule.step_size,
        residual_clip=request.residual_clip or rule.residual_clip,
    )


def _release(share: Share, request: FitRequest, grid: Grid, residual_bits: int) -> GaussianRelease:
    factors = {
        Quantity.GRADIENT: gradient_factor(grid.squared_norm),
        Quantity.UNIT_GRADIENT: gradient_factor(grid.integer_norm**2),
        Quantity.COLUMN_SUMS: COLUMN_SUMS,
        Quantity.TARGET_SUM: TARGET_SUM,
    }
    return plan_release(
        share.label,
        factors[share.quantity],
        unit_bits=residual_bits,
        squared_mu=request.budget.squared_mu * share.part if request.budget else None,
        count=share.count,
        adjacency=request.adjacency,
    )
