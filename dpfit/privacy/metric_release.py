"""The release of all metrics of an evaluation: one vector, its sensitivity and its charge."""

from __future__ import annotations

from fractions import Fraction
from typing import Final, TypeAlias

from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.gaussian_release import GaussianRelease, finest_unit
from dpfit.privacy.laplace_release import LaplaceRelease
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.record_metrics import RecordMetrics

MetricRelease: TypeAlias = GaussianRelease | LaplaceRelease

LABEL: Final = "metrics"
_UNIT_BITS: Final = 20
_SCALE_BITS: Final = range(6, 55)


def sensitivity(metrics: RecordMetrics) -> PerAdjacency[int]:
    """Squared l2 sensitivity of the sums, and their l1 sensitivity, per unit: they are equal.

    A record adds m numbers in [0, 1] and counts in one cell. Replacing it moves each number by at
    most 1 and two counts by 1; zeroing it out takes away the numbers and one count.
    """
    numbers, cell = len(metrics.names), int(metrics.n_cells > 0)
    return PerAdjacency(replace_one=numbers + 2 * cell, add_remove=numbers + cell)


def plan_metrics(
    metrics: RecordMetrics, budget: Budget | None, adjacency: Adjacency
) -> MetricRelease:
    """The release that spends the whole budget: Gaussian noise, or Laplace's for a pure epsilon.

    Parameters
    ----------
    metrics : RecordMetrics
        What is summed.
    budget : Budget or None
        None plans a release without noise.
    adjacency : Adjacency
        The neighbouring relation under which the budget is meant.

    Raises
    ------
    PrivacyError
        The budget leaves no number grid.
    """
    factor = sensitivity(metrics)
    if budget is not None and budget.epsilon is not None and budget.pure:
        share = (Fraction(budget.epsilon) / factor.under(adjacency)) ** 2
        unit, bits = finest_unit(share, _UNIT_BITS, _SCALE_BITS)
        return LaplaceRelease(LABEL, factor, factor, unit, bits, 1, quantity=Quantity.METRICS)
    allowed = None if budget is None else budget.squared_mu / factor.under(adjacency)
    unit, bits = finest_unit(allowed, _UNIT_BITS, _SCALE_BITS)
    return GaussianRelease(LABEL, Quantity.METRICS, factor, unit, bits, 1)
