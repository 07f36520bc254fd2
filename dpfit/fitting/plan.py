"""What a run will do and cost, from the request and the public facts alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from dpfit.algorithms.default_rule import PublicScale
from dpfit.algorithms.dp_ight import DpIght, default_rule
from dpfit.design.grid import Grid, grid_bits
from dpfit.fitting.request import FitRequest
from dpfit.losses.base import Loss
from dpfit.losses.logistic import Logistic
from dpfit.losses.squared import Squared
from dpfit.privacy.events import Event, NonPrivateEvent
from dpfit.privacy.gradient_release import GradientRelease, plan_gradient
from dpfit.privacy.public_facts import PublicFacts

FINEST_BITS: Final = 20  # of a row's integers; finer than any noise that a budget can buy


@dataclass(frozen=True)
class FitPlan:
    """A run, fixed in every number.

    Attributes
    ----------
    algorithm : DpIght
        With all its settings.
    loss : Loss
        As chosen or inferred.
    grid : Grid
        The record map.
    release : GradientRelease
        The mechanism.
    events : sequence of Event
        The charge.
    facts : PublicFacts
        Declared and assumed.
    noise_scale : float
        Standard deviation of the noise on each coordinate of the mean gradient; 0 without privacy.
    """

    algorithm: DpIght
    loss: Loss
    grid: Grid
    release: GradientRelease
    events: Sequence[Event]
    facts: PublicFacts
    noise_scale: float


def finest_grid(request: FitRequest) -> Grid:
    """The record map before the number of records may coarsen it."""
    return Grid(request.row_norm, request.row_map, FINEST_BITS, request.intercept)


def plan_fit(request: FitRequest, facts: PublicFacts, loss: Loss) -> FitPlan:
    """Fix the settings, the mechanism and the charge.

    Raises
    ------
    PrivacyError
        The budget is too small for the number of iterations.
    """
    n_rows, n_features = facts.integer("rows"), facts.integer("features")
    row_bits, residual_bits = grid_bits(n_rows)
    grid = replace(finest_grid(request), bits=row_bits)
    scale = PublicScale(
        n_rows=n_rows,
        n_features=n_features,
        loss=loss.name,
        row_norm=request.row_norm,
        squared_mu=request.budget.squared_mu if request.budget else None,
        adjacency=request.adjacency,
    )
    algorithm = _with_wishes(default_rule(scale, request.sparsity), request)
    release = _release(request, grid, residual_bits, algorithm.iterations)
    noise = 0.0
    if request.budget is not None:
        unit = grid.unit * algorithm.residual_clip / release.residual_integer / n_rows
        noise = math.ldexp(unit, release.scale_bits)
    events: list[Event] = [NonPrivateEvent(label="gradient")]
    if request.private:
        events = [release.event()]
    return FitPlan(algorithm, loss, grid, release, events, facts, noise)


def charge_ahead(request: FitRequest) -> list[Event]:
    """The charge as far as it is known before the data: one release for the whole budget.

    The final plan spends the same budget up to the rounding of its grid. This is for a refusal
    before hours of reading; the reservation checks the exact charge again.
    """
    if not request.private:
        return [NonPrivateEvent(label="gradient")]
    return [_release(request, finest_grid(request), FINEST_BITS, 1).event()]


def loss_named(name: str) -> Loss:
    """The loss of that command-line name."""
    return Logistic() if name == "logistic" else Squared()


def _with_wishes(rule: DpIght, request: FitRequest) -> DpIght:
    return replace(
        rule,
        iterations=request.iterations or rule.iterations,
        step_size=request.step_size or rule.step_size,
        residual_clip=request.residual_clip or rule.residual_clip,
    )


def _release(request: FitRequest, grid: Grid, residual_bits: int, count: int) -> GradientRelease:
    if request.budget is None:
        return GradientRelease(grid, 1 << residual_bits, 0, count)
    return plan_gradient(
        grid,
        residual_bits=residual_bits,
        squared_mu=request.budget.squared_mu,
        count=count,
        adjacency=request.adjacency,
    )
