"""The only door between private records and an algorithm.

The Curator owns the design, the targets and the noise. What it hands out was charged before, has
exact noise on every coordinate, and is all that an algorithm ever sees: whatever the algorithm does
with it is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.grid import Grid
from dpfit.design.local import IntegerPoint
from dpfit.design.unit_view import UnitView
from dpfit.losses.base import Loss
from dpfit.losses.exponential import exponential
from dpfit.privacy.block_votes import block_votes
from dpfit.privacy.gaussian_release import GaussianRelease
from dpfit.privacy.laplace_release import LaplaceRelease
from dpfit.privacy.logistic_sensitivity import largest_margin, refined_step
from dpfit.privacy.mechanisms.noise import Noise
from dpfit.privacy.mechanisms.peeling import peel
from dpfit.privacy.peeling_release import PeelingRelease
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.records import PrivateRecords
from dpfit.privacy.residuals import residual_integers
from dpfit.privacy.selection_release import SelectionRelease

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Scores: TypeAlias = float | Floats
"""One number, or one for each class."""

Release: TypeAlias = GaussianRelease | LaplaceRelease | SelectionRelease | PeelingRelease

_LONGEST_CENTRE: Final = 2.0  # in row norms: squares of integers stay below 2^53 with room
_SATURATED: Final = 2.0**61  # of a public point in the units of the sums
_MARGIN_BITS: Final = 53  # |margin| <= 2^53 by Cauchy-Schwarz: exact as an int64 and as a float64


@dataclass(frozen=True)
class Point:
    """A model to ask the gradient at, or a gradient.

    Attributes
    ----------
    coefficients : float64 array, shape (d,) or (d, k)
        On the records as the Curator holds them now, for each of k classes when there are several.
    intercept : float or float64 array, shape (k,)
        Coefficient of the constant column.
    offset : float or float64 array, shape (k,)
        Public numbers added to every margin.
    """

    coefficients: Floats
    intercept: Scores
    offset: Scores = 0.0


@dataclass(frozen=True)
class Centring:
    """A public map of records to length one: columns, what is taken off them, and a constant.

    Attributes
    ----------
    columns : int64 array, shape (k,)
        Sorted columns that stay.
    centre : float64 array, shape (k,)
        Taken off each of them, in units of the row norm K.
    constant : float
        Value of the constant column before the scaling, in units of K.
    """

    columns: Integers
    centre: Floats
    constant: float


class Curator:
    """Answers planned questions about private records, each with noise that was charged.

    Parameters
    ----------
    records : PrivateRecords
        The private rows on the integer grid, and their targets.
    loss : Loss
        Gives the residual.
    grid : Grid
        The public record map of the design.
    n_rows : int
        The public number of records, which divides the sums.
    releases : iterable of releases
        What was charged, by label.
    noise : Noise
        Exact noise under a key that was made after the charge was on disk.
    """

    def __init__(
        self,
        *,
        records: PrivateRecords,
        loss: Loss,
        grid: Grid,
        n_rows: int,
        releases: Iterable[Release],
        noise: Noise,
    ) -> None:
        self._design = records.design
        self._target = records.target
        self._offset = records.offset
        self._shares = records.shares
        self._loss = loss
        self._grid = grid
        self._n_rows = n_rows
        self._releases = {release.label: release for release in releases}
        self._left = {label: release.count for label, release in self._releases.items()}
        self._noise = noise
        self._step = 0
        self._view: UnitView | None = None

    @property
    def n_features(self) -> int:
        """The public number of columns that a gradient has now."""
        return self._design.n_features if self._view is None else self._view.n_features

    def zero_point(self, offset: Scores = 0.0) -> Point:
        """The model whose scores are all ``offset``."""
        if self._loss.n_scores == 1:
            return Point(np.zeros(self.n_features), 0.0, offset)
        shape = (self.n_features, self._loss.n_scores)
        return Point(np.zeros(shape), np.zeros(shape[1]), np.zeros(shape[1]) + offset)

    def column_means(self, label: str) -> tuple[Floats, Floats]:
        """Noisy means of the positive and of the negative parts of ``x_j / K``, one release.

        Taking the parts apart doubles the numbers but not the sensitivity: a record's vector of
        parts is non-negative and as long as the record.

        Returns
        -------
        tuple of float64 arrays of shape (d,)
            Means of ``max(x_j, 0) / K`` and of ``max(-x_j, 0) / K``.
        """
        release = self._take(label, Quantity.COLUMN_SUMS)
        sums = self._design.column_sums(release.unit, self._grid.integer_norm)
        means = self._noisy(release, sums).astype(np.float64) / release.unit / self._n_rows
        positive, negative = np.split(means, 2)
        return positive, negative

    def target_mean(self, label: str) -> float:
        """Noisy mean of the mapped target, one of the charged releases."""
        release = self._take(label, Quantity.TARGET_SUM)
        unit = release.unit
        parts = np.rint(np.fmin(np.fmax(self._target, 0.0), 1.0) * unit).astype(np.int64)
        total = np.clip(parts, 0, unit).sum(keepdims=True)
        return float(self._noisy(release, total)[0]) / unit / self._n_rows

    def class_means(self, label: str) -> Floats:
        """Noisy share of each class among the records, one of the charged releases, shape (k,)."""
        release = self._take(label, Quantity.CLASS_SUMS)
        counts = np.bincount(self._target.astype(np.int64), minlength=self._loss.n_scores)
        sums = counts.astype(np.int64) * release.unit
        return self._noisy(release, sums).astype(np.float64) / release.unit / self._n_rows

    def target_and_exposure_means(self, label: str) -> tuple[float, float]:
        """Noisy means of the mapped target and of ``e^offset``, one of the charged releases.

        Offsets of counts are relative to the largest exposure; a record without one has all of it.
        """
        release = self._take(label, Quantity.TARGET_AND_EXPOSURE_SUMS)
        unit = release.unit
        offset = np.zeros(len(self._target)) if self._offset is None else self._offset
        pairs = np.stack([self._target, exponential(offset)])
        parts = np.rint(np.fmin(np.fmax(pairs, 0.0), 1.0) * unit).astype(np.int64)
        sums = np.clip(parts, 0, unit).sum(axis=1)
        target, exposure = self._noisy(release, sums) / unit / self._n_rows
        return float(target), float(exposure)

    def noise_scale(self, label: str) -> float:
        """Standard deviation of the noise on a mean, in units of a record's largest share."""
        return self._releases[label].noise_multiplier / self._n_rows

    def centre(self, centring: Centring) -> None:
        """From now on records are ``(x_S / K - m, b)`` at length one. The map is public.

        Raises
        ------
        RuntimeError
            The centre is longer than twice a row can be, or the constant is no part of it: lengths
            would leave the exact integers on which the sensitivity rests.
        """
        length = float(np.linalg.norm(centring.centre))
        if not (length <= _LONGEST_CENTRE and 0.0 < centring.constant <= 1.0):
            raise RuntimeError("the centre or constant of the records is out of bounds")
        integers = np.rint(centring.centre * self._grid.integer_norm).astype(np.int64)
        constant = max(1, round(centring.constant * self._grid.integer_norm))
        rows = self._design.on_columns(centring.columns)
        self._view = UnitView(rows, integers, constant, self._grid.integer_norm)

    def gradient(
        self, label: str, point: Point, *, clip: float, columns: Integers | None = None
    ) -> Point:
        """The noisy mean gradient at a public point, one of the charged releases.

        Each record's part is ``clip(l'(m, y), tau) (x, b)``, on the integer grid; noise is on every
        coordinate. Integer wrap-around is addition modulo 2^64 and so post-processing.

        Parameters
        ----------
        label : str
            Which of the charged releases.
        point : Point
            Where to take the gradient.
        clip : float
            tau: residuals are clipped to [-tau, tau]. The charge does not depend on it.
        columns : int64 array, optional
            Public columns to release alone, beside the intercept's.

        Raises
        ------
        RuntimeError
            More was asked than was charged: a fault in the algorithm.
        """
        release = self._take(label, self._gradient_quantity(columns))
        clip, unit = self._clip_and_unit(release, point, clip)
        sums = self._gradient_sums(point, clip, unit)
        if columns is not None:
            if len(columns) > release.chosen or np.any(np.diff(columns) <= 0):
                raise RuntimeError("other columns asked than charged")
            sums = sums[np.append(columns, len(sums) - 1)]
        gradient = self._noisy(release, sums).astype(np.float64)
        gradient *= self._length(clip, unit)
        return Point(gradient[:-1], gradient[-1])

    def _clip_and_unit(
        self, release: GaussianRelease | LaplaceRelease, point: Point, clip: float
    ) -> tuple[float, int]:
        """As asked and charged, or finer where the loss bounds the gradients at this point.

        That bound reckons with margins that are nothing but ``x.theta``.
        """
        shifted = self._offset is not None or np.any(point.offset)
        if isinstance(release, LaplaceRelease) or not release.refined or shifted:
            return clip, release.unit
        squared_norm = self._grid.squared_norm
        margin = largest_margin(*quantised(point, squared_norm), self._grid)
        return refined_step(margin, clip, release.unit, release.squared_factor, squared_norm)

    def _gradient_quantity(self, columns: Integers | None) -> Quantity:
        if self._view is not None:
            return Quantity.UNIT_GRADIENT
        return Quantity.GRADIENT if columns is None else Quantity.PARTIAL_GRADIENT

    def support_after_step(
        self, label: str, point: Point, *, clip: float, step_size: float
    ) -> Integers:
        """Noisily largest coefficients after a gradient step, one of the charged selections.

        The scores are ``|A_j - G_j|`` with G the exact integer sums and A the public point in their
        units, so a score moves no more than a sum does.

        Returns
        -------
        int64 array, shape (k,)
            Sorted columns, k as charged.
        """
        release = self._take_selection(label, Quantity.SELECTION)
        sums = self._gradient_sums(point, clip, release.unit)[:-1]
        scaled = point.coefficients / (step_size * self._length(clip, release.unit))
        public = np.rint(np.clip(np.nan_to_num(scaled), -_SATURATED, _SATURATED)).astype(np.int64)
        scores = np.abs(public - sums)
        if isinstance(release, PeelingRelease):
            return peel(scores, release.chosen, lambda: self._fresh_laplace(release, len(scores)))
        return self._noise.choose(scores, release.chosen, release.scale_bits, self._next_step())

    def columns_by_vote(self, label: str) -> Integers:
        """Columns that most blocks of rows vote for, noisily; one of the charged selections.

        The public row positions fall into ``floor(sqrt(n))`` interleaved blocks, so that a sorted
        file does no harm, and each block votes by its own rows (Kifer, Smith and Thakurta, 2012).
        One record changes one block's votes. Records keep their positions under both neighbouring
        relations: add-remove zeroes a record out, it does not close the gap.

        Returns
        -------
        int64 array, shape (k,)
            Sorted columns, k as charged.
        """
        release = self._take_selection(label, Quantity.VOTES)
        votes = block_votes(
            self._design,
            self._target,
            self._loss,
            sparsity=release.chosen,
            n_blocks=math.isqrt(self._n_rows),
            integer_norm=self._grid.integer_norm,
        )
        scores = votes * release.unit
        return self._noise.choose(scores, release.chosen, release.scale_bits, self._next_step())

    def steepest_vertex(self, label: str, point: Point, *, clip: float) -> tuple[int, int]:
        """Noisily steepest signed coordinate, one of the charged selections.

        The scores are the sums and their negatives: a neighbour moves each as far as a sum.

        Returns
        -------
        tuple of int
            Column, the intercept's being ``n_features``, and the sign of the move.
        """
        release = self._take_selection(label, Quantity.SELECTION)
        sums = self._gradient_sums(point, clip, release.unit)
        if isinstance(release, PeelingRelease):
            signed = np.concatenate([sums, -sums])
            best = int(peel(signed, 1, lambda: self._fresh_laplace(release, len(signed)))[0])
        else:
            best = self._noise.choose_signed(sums, release.scale_bits, self._next_step())
        return (best, -1) if best < len(sums) else (best - len(sums), 1)

    def _gradient_sums(self, point: Point, clip: float, unit: int) -> Integers:
        rows = self._design if self._view is None else self._view
        return rows.gradient(self._residual_integers(point, clip, unit))

    def _length(self, clip: float, unit: int) -> float:
        """What one integer of a sum is of a mean gradient."""
        length = self._grid.unit if self._view is None else 1.0 / self._grid.integer_norm
        return length * clip / unit / self._n_rows

    def _take(self, label: str, quantity: Quantity) -> GaussianRelease | LaplaceRelease:
        """Use up one charged release of sums of the right kind."""
        release = self._spend(label, quantity)
        assert isinstance(release, GaussianRelease | LaplaceRelease)
        return release

    def _take_selection(self, label: str, quantity: Quantity) -> SelectionRelease | PeelingRelease:
        """Use up one charged selection.

        Its scores are compared, not noised, so they must not wrap around as sums may; the records
        were checked for that before the charge.
        """
        release = self._spend(label, quantity)
        assert isinstance(release, SelectionRelease | PeelingRelease)
        return release

    def _spend(self, label: str, quantity: Quantity) -> Release:
        release = self._releases[label]
        if release.quantity is not quantity or self._left[label] < 1:
            raise RuntimeError(f"a release of {quantity} was asked that was not charged")
        self._left[label] -= 1
        return release

    def _noisy(self, release: GaussianRelease | LaplaceRelease, sums: Integers) -> Integers:
        if isinstance(release, LaplaceRelease):
            return sums + self._fresh_laplace(release, len(sums))
        noise = self._noise.integers(release.scale_bits, sums.size, self._next_step())
        return sums + noise.reshape(sums.shape)

    def _fresh_laplace(self, release: LaplaceRelease | PeelingRelease, size: int) -> Integers:
        return self._noise.laplace(release.scale_bits, size, self._next_step())

    def _next_step(self) -> int:
        """A step number that no other noise of this run has: the same one would cancel it."""
        step, self._step = self._step, self._step + 1
        return step

    def _residual_integers(self, point: Point, clip: float, unit: int) -> Integers:
        """Each record's integer multipliers, within the limit that the charge reckons with."""
        limits = unit if self._view is None else self._view.limits(unit)
        residual = self._loss.residual(self._margins(point), self._target)
        return residual_integers(residual, clip, limits, self._shares)

    def _margins(self, point: Point) -> Floats:
        rows = self._design if self._view is None else self._view
        squared_norm = self._grid.squared_norm if self._view is None else self._view.squared_norm
        integer_point, bits = quantised(point, squared_norm)
        margins = rows.margins(integer_point).astype(np.float64)
        if self._view is None:
            margins *= math.ldexp(self._grid.unit, -bits)
        else:
            margins *= math.ldexp(1.0, -bits)
            margins = (margins.T / self._view.lengths).T
        margins += point.offset
        if self._offset is None:
            return margins
        with np.errstate(over="ignore"):  # every loss saturates
            return margins + self._offset


def quantised(point: Point, squared_norm: int) -> tuple[IntegerPoint, int]:
    """A public point on the finest grid 2^-bits for which every margin is exact.

    ``sqrt(K2) |theta_q| <= 2^53``, for each class, bounds every partial sum of a margin in any
    order, so margins are exact integers. What is not finite becomes zero.

    Parameters
    ----------
    point : Point
        Any floats.
    squared_norm : int
        K2, the bound on a record's squared integer norm.

    Returns
    -------
    tuple of IntegerPoint and int
        The integers ``rint(theta 2^bits)`` and ``bits``.
    """
    coefficients = point.coefficients
    support = np.flatnonzero(coefficients if coefficients.ndim == 1 else coefficients.any(axis=1))
    stacked = np.concatenate([coefficients[support], np.asarray(point.intercept)[None]])
    stacked = np.nan_to_num(stacked, posinf=0.0, neginf=0.0)
    largest = float(np.max(np.abs(stacked)))
    bits = 0
    if largest > 0.0:
        # log2 of sqrt(K2) |theta|, rounded up, with one bit for the rounding of the coefficients.
        norm = float(np.max(np.sqrt(np.sum((stacked / largest) ** 2, axis=0))))
        size = sum(math.frexp(part)[1] for part in (largest, norm, math.sqrt(squared_norm)))
        bits = _MARGIN_BITS - 1 - size
    integers = np.rint(np.ldexp(stacked, bits)).astype(np.int64)
    columns = integers[:-1]
    kept = np.flatnonzero(columns if columns.ndim == 1 else columns.any(axis=1))
    return IntegerPoint(support[kept], columns[kept], integers[-1]), bits
