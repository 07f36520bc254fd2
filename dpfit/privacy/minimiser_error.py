"""How far a computed minimiser may be from the real one, from public numbers alone."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from dpfit.design.grid import Grid
from dpfit.losses.smoothed import Smoothed
from dpfit.privacy.conversion import round_up, sqrt_up
from dpfit.privacy.objective import Objective

_FINEST: Final = 2.0**-26  # of the target's range over K: far below any use of a coefficient
_ROOM: Final = 4.0  # for the gradient that the solver leaves and for the floats of the noise
_SUMS: Final = 2.0**-48  # relative, of a few floats that are added to the exact sums


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


def distance_to_reach(objective: Objective, grid: Grid, n_rows: int, bits: int) -> Fraction:
    """E: how far from the real minimiser a computed one may be."""
    reachable = _ROOM * gradient_error(objective.loss, grid, n_rows, bits) / objective.ridge
    return Fraction(max(_FINEST, round_up(Fraction(reachable))))
