"""The only door between private records and an algorithm.

The Curator owns the design, the targets and the noise. What it hands out was charged before, has
exact noise on every coordinate, and is all that an algorithm ever sees: whatever the algorithm does
with it is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.grid import Grid
from dpfit.design.local import IntegerPoint
from dpfit.losses.base import Loss
from dpfit.privacy.gradient_release import GradientRelease

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_MARGIN_BITS = 53  # |margin| <= 2^53 by Cauchy-Schwarz: exact as an int64 and as a float64


class Design(Protocol):
    """The two products over the private rows; in memory, out of core or on a cluster."""

    @property
    def n_features(self) -> int: ...

    def margins(self, point: IntegerPoint) -> Integers: ...

    def gradient(self, residuals: Integers) -> Integers: ...


class Noise(Protocol):
    """``floor(2^scale_bits N)`` for every coordinate of one step."""

    def integers(self, scale_bits: int, size: int, step: int) -> Integers: ...


class NoNoise:
    """The noise of a non-private run."""

    def integers(self, scale_bits: int, size: int, step: int) -> Integers:
        return np.zeros(size, np.int64)


@dataclass(frozen=True)
class Point:
    """A model to ask the gradient at.

    Attributes
    ----------
    coefficients : float64 array, shape (d,)
        On rows as the record map leaves them.
    intercept : float
        Coefficient of the constant column.
    """

    coefficients: Floats
    intercept: float


class Curator:
    """Answers a planned number of noisy gradient questions over private records.

    Parameters
    ----------
    design : Design
        The private rows on the integer grid.
    target : float64 array, shape (n,)
        The private targets, mapped to [0, 1].
    loss : Loss
        Gives the residual.
    grid : Grid
        The public record map of the design.
    n_rows : int
        The public number of records, which divides the sums.
    release : GradientRelease
        What was charged.
    residual_clip : float
        tau: residuals are clipped to [-tau, tau].
    noise : Noise
        Exact noise under a key that was made after the charge was on disk.
    """

    def __init__(
        self,
        *,
        design: Design,
        target: Floats,
        loss: Loss,
        grid: Grid,
        n_rows: int,
        release: GradientRelease,
        residual_clip: float,
        noise: Noise,
    ) -> None:
        self._design = design
        self._target = target
        self._loss = loss
        self._grid = grid
        self._n_rows = n_rows
        self._release = release
        self._clip = residual_clip
        self._noise = noise
        self._asked = 0

    @property
    def n_features(self) -> int:
        """d, the public number of columns."""
        return self._design.n_features

    def noisy_gradient(self, point: Point) -> Point:
        """The noisy mean gradient at a public point, one of the charged releases.

        Each record's part is ``clip(l'(m, y), tau) (x, b)``, on the integer grid; noise is on every
        coordinate. Integer wrap-around is addition modulo 2^64 and so post-processing.

        Raises
        ------
        RuntimeError
            More was asked than was charged: a fault in the algorithm.
        """
        if self._asked >= self._release.count:
            raise RuntimeError("more releases asked than charged")
        step, self._asked = self._asked, self._asked + 1
        total = self._design.gradient(self._residual_integers(point))
        total += self._noise.integers(self._release.scale_bits, len(total), step)
        unit = self._grid.unit * self._clip / self._release.residual_integer / self._n_rows
        gradient = total.astype(np.float64) * unit
        return Point(gradient[:-1], float(gradient[-1]))

    def _residual_integers(self, point: Point) -> Integers:
        """Each record's residual on the grid; the last operation is the integer bound R_int."""
        integer_point, bits = quantised(point, self._grid)
        unit = math.ldexp(self._grid.unit, -bits)
        margins = self._design.margins(integer_point).astype(np.float64) * unit
        residual = self._loss.residual(margins, self._target)
        bound = self._release.residual_integer
        clipped = np.fmin(np.fmax(residual, -self._clip), self._clip)  # fmax turns NaN into -tau
        integers = np.rint(clipped * (bound / self._clip)).astype(np.int64)
        return np.clip(integers, -bound, bound)


def quantised(point: Point, grid: Grid) -> tuple[IntegerPoint, int]:
    """A public point on the finest grid 2^-bits for which every margin is exact.

    ``sqrt(K2) |theta_q| <= 2^53`` bounds every partial sum of a margin in any order, so margins are
    exact integers. A point that is not finite becomes zero in the coordinates that are not.

    Returns
    -------
    tuple of IntegerPoint and int
        The integers ``rint(theta 2^bits)`` and ``bits``.
    """
    stacked = np.nan_to_num(np.append(point.coefficients, point.intercept), posinf=0.0, neginf=0.0)
    largest = float(np.max(np.abs(stacked)))
    if largest == 0.0:
        return IntegerPoint(np.zeros(0, np.int64), np.zeros(0, np.int64), 0), 0
    # log2 of sqrt(K2) |theta|, rounded up, with one bit for the rounding of the coefficients.
    norm = float(np.sqrt(np.sum((stacked / largest) ** 2)))
    size = sum(math.frexp(part)[1] for part in (largest, norm, math.sqrt(grid.squared_norm)))
    bits = _MARGIN_BITS - 1 - size
    integers = np.rint(np.ldexp(stacked, bits)).astype(np.int64)
    support = np.flatnonzero(integers[:-1])
    return IntegerPoint(support, integers[support], int(integers[-1])), bits
