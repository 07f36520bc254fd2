"""The only door between private records and an algorithm.

The Curator owns the design and the targets. What it hands out was charged before, went through
:mod:`.charged_releases`, which noises every sum and every score, and is all that an algorithm ever
sees: whatever the algorithm does with it is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.grid import Grid
from dpfit.design.rows_view import RowSpace
from dpfit.errors import NotConvergedError
from dpfit.losses.base import Loss
from dpfit.privacy.block_votes import block_votes
from dpfit.privacy.centring import Centring
from dpfit.privacy.charged_releases import ChargedReleases, Release, SumRelease
from dpfit.privacy.gaussian_release import GaussianRelease
from dpfit.privacy.logistic_sensitivity import largest_margin, refined_step
from dpfit.privacy.mechanisms.noise import Noise
from dpfit.privacy.minimise import FittedRecords, minimise
from dpfit.privacy.objective import Objective
from dpfit.privacy.owner_gradient import OwnerGradientSums
from dpfit.privacy.owner_release import RESIDUAL_BITS, OwnerRule
from dpfit.privacy.point import Point, Scores, quantised
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.questions import (
    ClassCounts,
    ColumnSums,
    GradientSums,
    Records,
    ScoreSum,
    TargetAndExposureSums,
    TargetCounts,
    TargetSum,
)
from dpfit.privacy.record_metrics import RecordMetrics
from dpfit.privacy.target_ranks import rank_scores, value_of

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_EXACT: Final = 2.0**50  # of a float's integers: each of two roundings is below an eighth
_SATURATED: Final = 2.0**61  # of a public point in the units of the sums


class Curator:
    """Answers planned questions about private records, each with noise that was charged.

    Parameters
    ----------
    records : Records
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
    owners : OwnerRule, optional
        Which records are one unit, where the guarantee is for those.
    """

    def __init__(
        self,
        *,
        records: Records,
        loss: Loss,
        grid: Grid,
        n_rows: int,
        releases: Iterable[Release],
        noise: Noise,
        owners: OwnerRule | None = None,
    ) -> None:
        self._records = records.on_grid(grid)
        self._space = RowSpace.of_grid(grid, records.n_features)
        self._centred = False
        self._loss = loss
        self._grid = grid
        self._n_rows = n_rows
        self._owners = owners
        self._charged = ChargedReleases(releases, noise)

    @property
    def n_features(self) -> int:
        """The public number of columns that a gradient has now."""
        return self._space.n_features

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
        release = self._charged.take_sum(label, Quantity.COLUMN_SUMS)
        sums = self._records.total(ColumnSums(release.unit, self._grid.integer_norm))
        means = self._charged.noisy(release, sums).astype(np.float64) / release.unit / self._n_rows
        positive, negative = np.split(means, 2)
        return positive, negative

    def target_mean(self, label: str) -> float:
        """Noisy mean of the mapped target, one of the charged releases."""
        release = self._charged.take_sum(label, Quantity.TARGET_SUM)
        total = self._records.total(TargetSum(release.unit))
        return float(self._charged.noisy(release, total)[0]) / release.unit / self._n_rows

    def target_quantile(self, label: str, quantile: float) -> float:
        """A quantile of the mapped target, one of the charged selections.

        The exponential mechanism over a public grid of values: a candidate's score is how many
        records would have to change sides for it to be the quantile (:mod:`.target_ranks`).
        """
        release = self._charged.take_choice(label, Quantity.TARGET_RANKS)
        held = self._records.total(TargetCounts())
        scores = rank_scores(held, quantile, self._n_rows, release.unit)
        return value_of(int(self._charged.choose(release, scores)[0]))

    def minimiser(self, label: str, objective: Objective, centre: float) -> Point:
        """The minimiser of an objective, with the random vectors and the noise that were charged.

        Parameters
        ----------
        label : str
            Of the release on the grid.
        objective : Objective
            As charged.
        centre : float
            Public; the mapped target is measured from it.

        Returns
        -------
        Point
            Its offset is the centre's.

        Raises
        ------
        NotConvergedError
            The minimiser was not found within the radius that the charge reckons with. That says
            something about the records, as an exit status may.
        RuntimeError
            Another objective was asked than was charged: a fault in the algorithm.
        """
        release = self._charged.take_minimiser(label, objective)
        here = self._records.here()
        size = here.n_features + 1
        term = self._charged.random_vector(Quantity.OBJECTIVE_TERM, size)
        fitted = FittedRecords(here.design, self._grid, here.target - centre, here.shares)
        minimum = minimise(
            fitted, objective, term.values, bits=release.bits, within=release.radius / 2
        )
        shift = self._charged.random_vector(Quantity.MINIMISER_SHIFT, size)
        distance = minimum.distance + term.error / objective.ridge + shift.error
        if not distance <= release.radius:
            raise NotConvergedError(
                "the minimiser was not found to the accuracy that was charged for",
                hint="a larger --ridge or --smoothing makes the problem easier; the charge stays",
            )
        integers = np.rint(np.clip((minimum.point + shift.values) / release.step, -_EXACT, _EXACT))
        noisy = self._charged.noisy(release.noise, integers.astype(np.int64))
        point = noisy.astype(np.float64) * (release.step / self._grid.row_norm)
        return Point(point[:-1], point[-1], centre - 0.5)

    def score(
        self,
        label: str,
        metrics: RecordMetrics,
        which: int,
        point: Point,
        centring: Centring | None,
    ) -> float:
        """Noisy mean of a bounded loss of a released model, one of the charged releases.

        Parameters
        ----------
        label : str
            Of the release.
        metrics : RecordMetrics
            What a record may add.
        which : int
            The place of the loss among it.
        point : Point
            The model, on all columns or on those of the centring.
        centring : Centring or None
            The map of records that it goes with.
        """
        release = self._charged.take_sum(label, Quantity.SCORE)
        space = RowSpace.of_grid(self._grid, self._records.n_features)
        records = self._records.on_grid(self._grid)
        if centring is not None:
            space = centring.space(self._grid)
            records = self._records.centred(centring, self._grid)
        integers, bits = quantised(point, space.squared_norm)
        question = ScoreSum(metrics, which, integers, bits, point.offset, release.unit)
        total = self._charged.noisy(release, records.total(question))
        return float(total[0]) / release.unit / self._n_rows

    def class_means(self, label: str) -> Floats:
        """Noisy share of each class among the records, one of the charged releases, shape (k,)."""
        release = self._charged.take_sum(label, Quantity.CLASS_SUMS)
        sums = self._records.total(ClassCounts(self._loss.n_scores)) * release.unit
        return self._charged.noisy(release, sums).astype(np.float64) / release.unit / self._n_rows

    def target_and_exposure_means(self, label: str) -> tuple[float, float]:
        """Noisy means of the mapped target and of ``e^offset``, one of the charged releases.

        Offsets of counts are relative to the largest exposure; a record without one has all of it.
        """
        release = self._charged.take_sum(label, Quantity.TARGET_AND_EXPOSURE_SUMS)
        sums = self._records.total(TargetAndExposureSums(release.unit))
        target, exposure = self._charged.noisy(release, sums) / release.unit / self._n_rows
        return float(target), float(exposure)

    def noise_scale(self, label: str) -> float:
        """Standard deviation of the noise on a mean, in units of a record's largest share."""
        rows = self._owners.max_rows if self._owners else 1  # a unit's share is that of so many
        return rows * self._charged.noise_multiplier(label) / self._n_rows

    def centre(self, centring: Centring) -> None:
        """From now on records are ``(x_S / K - m, b)`` at length one. The map is public."""
        self._space = centring.space(self._grid)
        self._records = self._records.centred(centring, self._grid)
        self._centred = True

    def gradient(
        self, label: str, point: Point, *, clip: float, columns: Integers | None = None
    ) -> Point:
        """The noisy mean gradient at a public point, one of the charged releases.

        Each record's part is ``w clip(l'(m, y), tau) z`` on the integer grid, with w its weight
        over the largest and z its row ``(x, b)``, or the centred one of length one. Noise is on
        every coordinate. Integer wrap-around is addition modulo 2^64 and so post-processing. Over
        units the parts of each one's records are added first, and their sum is clipped.

        Parameters
        ----------
        label : str
            Which of the charged releases.
        point : Point
            Where to take the gradient.
        clip : float
            tau: residuals are clipped to [-tau, tau], of k classes to the l2 norm tau. The charge
            does not depend on it.
        columns : int64 array, optional
            Public columns to release alone, beside the intercept's.

        Raises
        ------
        RuntimeError
            More, or on more columns, was asked than was charged: a fault in the algorithm.
        """
        release = self._charged.take_sum(label, self._gradient_quantity(columns))
        clip, unit = self._clip_and_unit(release, point, clip)
        sums = self._gradient_sums(point, clip, unit)
        if columns is not None:
            if len(columns) > release.chosen or np.any(np.diff(columns) <= 0):
                raise RuntimeError("other columns asked than charged")
            sums = sums[np.append(columns, len(sums) - 1)]
        gradient = self._charged.noisy(release, sums).astype(np.float64)
        gradient *= self._length(clip, unit)
        return Point(gradient[:-1], gradient[-1])

    def batch_gradient(self, label: str, point: Point, *, clip: float) -> Point:
        """The noisy mean gradient over the next batch of records, one of the charged releases.

        Batches are the public row positions modulo the number of releases: each record is in one
        and is charged once, whatever the other batches released (parallel composition).
        """
        batch = self._charged.batch(label)
        release = self._charged.take_sum(label, Quantity.BATCH_GRADIENT)
        sums = self._gradient_sums(point, clip, release.unit, batch=(release.count, batch))
        noisy = self._charged.noisy(release, sums).astype(np.float64)
        noisy *= self._length(clip, release.unit) * release.count
        return Point(noisy[:-1], noisy[-1])

    def _clip_and_unit(self, release: SumRelease, point: Point, clip: float) -> tuple[float, int]:
        """As asked and charged, or finer where the loss bounds the gradients at this point.

        That bound reckons with margins that are nothing but ``x.theta``.
        """
        shifted = self._records.has_offset or np.any(point.offset)
        if not isinstance(release, GaussianRelease) or not release.refined or shifted:
            return clip, release.unit
        squared_norm = self._grid.squared_norm
        margin = largest_margin(*quantised(point, squared_norm), self._grid)
        return refined_step(margin, clip, release.unit, release.squared_factor, squared_norm)

    def _gradient_quantity(self, columns: Integers | None) -> Quantity:
        if self._owners is not None:
            return Quantity.OWNER_GRADIENT
        if self._centred:
            return Quantity.UNIT_GRADIENT
        return Quantity.GRADIENT if columns is None else Quantity.PARTIAL_GRADIENT

    def support_after_step(
        self, label: str, point: Point, *, clip: float, step_size: float
    ) -> Integers:
        """Noisily largest coefficients after a gradient step, one of the charged selections.

        The scores are ``|G_j - A_j|`` with G the exact integer sums and A the public point in their
        units, so a score moves no more than a sum does.

        Returns
        -------
        int64 array, shape (k,)
            Sorted columns, k as charged.
        """
        release = self._charged.take_choice(label, Quantity.SELECTION)
        sums = self._gradient_sums(point, clip, release.unit)[:-1]
        held = np.flatnonzero(point.coefficients)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # of absurd steps
            scaled = point.coefficients[held] / (step_size * self._length(clip, release.unit))
        public = np.rint(np.clip(np.nan_to_num(scaled), -_SATURATED, _SATURATED)).astype(np.int64)
        sums[held] -= public
        return self._charged.choose(release, np.abs(sums, out=sums))

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
        release = self._charged.take_choice(label, Quantity.VOTES)
        here = self._records.here()
        votes = block_votes(
            here.design,
            here.target,
            self._loss,
            sparsity=release.chosen,
            n_blocks=math.isqrt(self._n_rows),
            integer_norm=self._grid.integer_norm,
        )
        return self._charged.choose(release, votes * release.unit)

    def steepest_vertex(self, label: str, point: Point, *, clip: float) -> tuple[int, int]:
        """Noisily steepest signed coordinate, one of the charged selections.

        The scores are the sums and their negatives: a neighbour moves each as far as a sum.

        Returns
        -------
        tuple of int
            Column, the intercept's being ``n_features``, and the sign of the move.
        """
        release = self._charged.take_choice(label, Quantity.SELECTION)
        sums = self._gradient_sums(point, clip, release.unit)
        best = self._charged.choose_signed(release, sums)
        return (best, -1) if best < len(sums) else (best - len(sums), 1)

    def _gradient_sums(
        self, point: Point, clip: float, unit: int, batch: tuple[int, int] | None = None
    ) -> Integers:
        integers, bits = quantised(point, self._space.squared_norm)
        if self._owners is None:
            question = GradientSums(self._loss, integers, bits, point.offset, clip, unit, batch)
            return self._records.total(question)
        fine = 1 << RESIDUAL_BITS
        rows = GradientSums(self._loss, integers, bits, point.offset, clip, fine)
        return self._records.total(OwnerGradientSums(rows, self._grid, self._owners.clip, unit))

    def _length(self, clip: float, unit: int) -> float:
        """What one integer of a sum is of a mean gradient."""
        length = self._space.unit
        if self._owners is not None:  # the unit stands for C rows, not for one of their integers
            length *= self._owners.clip * self._grid.integer_norm
        return length * clip / unit / self._n_rows
