"""How far a computed minimiser may be from the real one, from public numbers alone."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from dpfit.design.grid import Grid
from dpfit.losses.smoothed import Smoothed
from dpfit.privacy.conversion import sqrt_up
from dpfit.privacy.objective import Objective

_FINEST: Final = 2.0**-26  # of the target's range over K: far below any use of a coefficient
_ROOM: Final = 4.0  # half for the gradient that the solver leaves, half for the floats of the noise
_SUMS: Final = 2.0**-48  # relative, of a few floats that are added to the exact sums
_NOISE: Final = 2.0**-31
_LONGEST: Final = (2, 50)  # of size + 1 exponential variables of scale 1


def record_length(grid: Grid) -> Fraction:
    """The bound on a record's l2 norm in units of K, its constant included, rounded up."""
    return Fraction(sqrt_up(Fraction(grid.squared_norm, grid.integer_norm**2)))


def gradient_error(loss: Smoothed, grid: Grid, n_rows: int, bits: int) -> float:
    """A bound on the l2 error of a gradient over that many records.

    Each record's score is off by its float roundings and by half a unit of ``2 bits`` bits, and
    is multiplied by a row of length at most that of a record.

    Parameters
    ----------
    loss : Smoothed
        Gives the scores.
    grid : Grid
        The record map.
    n_rows : int
        Number of records.
    bits : int
        As :func:`.minimise.minimise` takes it.
    """
    unit = float(loss.largest_score) * (2.0 ** (-2 * bits) + _SUMS)
    return n_rows * float(record_length(grid)) * (unit + loss.score_error)


def distance_to_reach(
    objective: Objective, grid: Grid, n_rows: int, bits: int, noise: Fraction, size: int
) -> Fraction:
    """E: how far from the real minimiser a computed one may be.

    Parameters
    ----------
    objective : Objective
        What is minimised.
    grid : Grid
        The record map.
    n_rows, bits : int
        As :func:`gradient_error` takes them.
    noise : Fraction
        Scale of the random vector in or on the minimiser, as it moves that; zero for none.
    size : int
        Coordinates. Of a vector that is longer than ``2 size + 50`` scales, or whose direction
        was drawn shorter than 2^-17 of a usual one, the floats may be further off: one in 10^9.
    """
    reachable = Fraction(_ROOM * gradient_error(objective.loss, grid, n_rows, bits))
    of_noise = Fraction(_NOISE) * noise * (_LONGEST[0] * size + _LONGEST[1])
    return max(Fraction(_FINEST), reachable / Fraction(objective.ridge), of_noise)


def reaches(objective: Objective, grid: Grid, n_rows: int, bits: int, radius: float) -> bool:
    """Whether gradients over that many records are exact sums, and near enough for a radius."""
    exact = n_rows * grid.integer_norm << bits < 1 << 62
    error = gradient_error(objective.loss, grid, n_rows, bits) / objective.ridge
    return exact and _ROOM * error <= radius * (1.0 + _SUMS)
