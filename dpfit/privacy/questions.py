"""Sums over private records, as questions that can be put wherever the records stand.

Un-noised: only the Curator may look at the answers. A question is made of public numbers, and each
answer is a sum of integers over records, so answers of parts of the records add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.grid import Grid
from dpfit.design.integer_point import IntegerPoint
from dpfit.losses.base import Loss
from dpfit.losses.exponential import exponential
from dpfit.privacy.centring import Centring
from dpfit.privacy.charged_releases import Release
from dpfit.privacy.point import Scores
from dpfit.privacy.private_records import PrivateRecords
from dpfit.privacy.record_metrics import RecordMetrics
from dpfit.privacy.residuals import residual_integers
from dpfit.privacy.share_integers import share_integers
from dpfit.privacy.target_ranks import records_at_each

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


class Question(Protocol):
    """A sum of integers over records, modulo 2^64."""

    def __call__(self, records: PrivateRecords) -> Integers:
        """The sum over these records."""
        ...


class Records(Protocol):
    """Private records, wherever they stand."""

    @property
    def n_features(self) -> int:
        """The public number of columns."""
        ...

    @property
    def has_offset(self) -> bool:
        """Whether scores have an offset column."""
        ...

    def on_grid(self, grid: Grid) -> Records:
        """These records, their rows as the record map left them."""
        ...

    def centred(self, centring: Centring, grid: Grid) -> Records:
        """These records, their rows centred and of length one."""
        ...

    def total(self, question: Question) -> Integers:
        """The answer over all records."""
        ...

    def check(self, releases: Sequence[Release], n_scores: int, grid: Grid, source: str) -> None:
        """Refuse, before the charge, what would fail after it."""
        ...

    def here(self) -> PrivateRecords:
        """All of them, in this process.

        Raises
        ------
        RuntimeError
            They are elsewhere.
        """
        ...


@dataclass(frozen=True)
class ColumnSums:
    """Of positive, then of negative parts of the rows in units, shape (2 d,)."""

    unit: int
    integer_norm: int

    def __call__(self, records: PrivateRecords) -> Integers:
        return records.design.column_sums(self.unit, self.integer_norm)


@dataclass(frozen=True)
class TargetSum:
    """Of the mapped target in units, shape (1,)."""

    unit: int

    def __call__(self, records: PrivateRecords) -> Integers:
        return np.asarray(share_integers(records.target, self.unit).sum(keepdims=True))


@dataclass(frozen=True)
class TargetAndExposureSums:
    """Of the mapped target and of ``e^offset`` in units, shape (2,).

    A record without an offset has the largest exposure.
    """

    unit: int

    def __call__(self, records: PrivateRecords) -> Integers:
        offset = records.offset
        exposure = np.ones(len(records.target)) if offset is None else exponential(offset)
        parts = np.stack([records.target, exposure])
        return np.asarray(share_integers(parts, self.unit).sum(axis=1))


@dataclass(frozen=True)
class ClassCounts:
    """Records of each class, shape (k,)."""

    n_classes: int

    def __call__(self, records: PrivateRecords) -> Integers:
        return np.bincount(records.target.astype(np.int64), minlength=self.n_classes)


@dataclass(frozen=True)
class TargetCounts:
    """Records at each candidate for a quantile of the target."""

    def __call__(self, records: PrivateRecords) -> Integers:
        return records_at_each(records.target)


@dataclass(frozen=True)
class GradientSums:
    """Of the rows times their multipliers; the constant's come last, shape (d + 1,) or (d + 1, k).

    Attributes
    ----------
    loss : Loss
        Gives the residual.
    point : IntegerPoint
        Where, in units of ``2^-bits``.
    bits : int
        Of the point.
    offset : float or float64 array, shape (k,)
        Public, added to every margin.
    clip : float
        Bound on a residual.
    unit : int
        What that bound becomes.
    batch : (int, int) or None
        A number of batches and which one; the other records count zero.
    """

    loss: Loss
    point: IntegerPoint
    bits: int
    offset: Scores
    clip: float
    unit: int
    batch: tuple[int, int] | None = None

    def __call__(self, records: PrivateRecords) -> Integers:
        return records.rows.gradient(self.multipliers(records))

    def multipliers(self, records: PrivateRecords) -> Integers:
        """Each record's own, within the limit that the charge reckons with."""
        margins = _margins(records, self.point, self.bits, self.offset)
        residual = self.loss.residual(margins, records.target)
        limits = records.rows.limits(self.unit)
        integers = residual_integers(residual, self.clip, limits, records.shares)
        if self.batch:
            count, number = self.batch
            positions = np.arange(records.first, records.first + len(integers))
            integers[positions % count != number] = 0
        return integers


@dataclass(frozen=True)
class ScoreSum:
    """Of one bounded number of each record under a public model, in units, shape (1,).

    Attributes
    ----------
    metrics : RecordMetrics
        Gives the number, in [0, 1].
    which : int
        Its place among them.
    point, bits, offset
        The model, as of :class:`GradientSums`.
    unit : int
        What 1 becomes.
    """

    metrics: RecordMetrics
    which: int
    point: IntegerPoint
    bits: int
    offset: Scores
    unit: int

    def __call__(self, records: PrivateRecords) -> Integers:
        scores = _margins(records, self.point, self.bits, self.offset)
        with np.errstate(over="ignore", invalid="ignore"):
            shares = self.metrics.shares(scores, records.target)[:, self.which]
        return np.asarray(share_integers(shares, self.unit).sum(keepdims=True))


def _margins(records: PrivateRecords, point: IntegerPoint, bits: int, offset: Scores) -> Floats:
    margins = records.rows.real_margins(point, bits)
    margins += offset
    if records.offset is None:
        return margins
    with np.errstate(over="ignore"):  # every loss saturates
        return margins + records.offset
