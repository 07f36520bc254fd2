"""The only door between private records and an evaluation.

It adds up what each record contributes to the metrics and hands the sums out once, with the noise
that was charged for them.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.privacy.charged_releases import ChargedReleases
from dpfit.privacy.mechanisms.noise import Noise
from dpfit.privacy.metric_release import LABEL, MetricRelease
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.record_metrics import RecordMetrics
from dpfit.privacy.share_integers import share_integers
from dpfit.privacy.stays_here import StaysHere

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


class MetricSums(StaysHere):
    """Exact integer sums over private records, block by block.

    Parameters
    ----------
    metrics : RecordMetrics
        What a record adds.
    release : MetricRelease
        What will be charged: its unit is what 1 becomes.

    Attributes
    ----------
    n_rows : int
        Records so far; read off the data.
    """

    def __init__(self, metrics: RecordMetrics, release: MetricRelease) -> None:
        self._metrics = metrics
        self._release = release
        self._sums = np.zeros(len(metrics.names) + metrics.n_cells, np.int64)
        self.n_rows = 0

    def add(self, scores: Floats, target: Floats) -> None:
        """Take up more records: a public model's scores, and targets in [0, 1] or of classes."""
        with np.errstate(over="ignore", invalid="ignore"):
            self._sums += record_sums(self._metrics, scores, target, self._release.unit)
        self.n_rows += len(target)

    def noisy(self, noise: Noise) -> Floats:
        """The sums in records, with the noise that was charged; once.

        Returns
        -------
        float64 array, shape (m + n_cells,)
            Sums of the numbers, then the cells' counts.
        """
        charged = ChargedReleases([self._release], noise)
        release = charged.take_sum(LABEL, Quantity.METRICS)
        sums, self._sums = self._sums, np.zeros(0, np.int64)
        if not len(sums):
            raise RuntimeError("the sums were handed out before")
        return charged.noisy(release, sums).astype(np.float64) / release.unit


def record_sums(metrics: RecordMetrics, scores: Floats, target: Floats, unit: int) -> Integers:
    """Sums of integers of records, each with m numbers from 0 to the unit and one cell of a unit.

    Adding is modulo 2^64; the last operation on a record's number is its integer bound.
    """
    numbers = share_integers(metrics.shares(scores, target), unit).sum(axis=0)
    if not metrics.n_cells:
        return np.asarray(numbers)
    cells = np.clip(metrics.cells(scores, target), 0, metrics.n_cells - 1)
    return np.concatenate([numbers, np.bincount(cells, minlength=metrics.n_cells) * unit])
