"""From noisy sums to metrics, each with the interval that the noise alone makes uncertain.

Post-processing: nothing here saw a record.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

CONFIDENCE: Final = 0.95
_NORMAL: Final = 1.959963984540054  # its quantile at 0.975
_LAPLACE: Final = math.log(20.0)  # of |x| at 0.95, in scales
_SURE: Final = 4.0  # standard deviations from which a class's size can be divided by


@dataclass(frozen=True)
class NoisyMetric:
    """A metric as released.

    Attributes
    ----------
    name : str
        Of the metric.
    value : float or None
        Within the range that it can have; None where the interval is that whole range, so that the
        noise leaves nothing known.
    low, high : float
        Hold the metric of the records without noise with :data:`CONFIDENCE`.
    """

    name: str
    value: float | None
    low: float
    high: float


@dataclass(frozen=True)
class SumNoise:
    """The noise on each sum, in records.

    Attributes
    ----------
    scale : float
        Standard deviation of a Gaussian, scale of a Laplace law.
    laplace : bool
        Which of the two.
    """

    scale: float
    laplace: bool

    @property
    def deviation(self) -> float:
        """Standard deviation."""
        return self.scale * (math.sqrt(2.0) if self.laplace else 1.0)

    @property
    def reach(self) -> float:
        """What it stays within, with :data:`CONFIDENCE`."""
        return self.scale * (_LAPLACE if self.laplace else _NORMAL)


def mean_metric(
    name: str, total: float, n_rows: int, noise: SumNoise, *, largest: float = 1.0
) -> NoisyMetric:
    """The mean of a number in [0, 1] over the records, in units of its largest value."""
    return _around(name, total / n_rows, noise.reach / n_rows, largest)


def root_metric(name: str, squared: NoisyMetric) -> NoisyMetric:
    """The root of a metric."""
    value = None if squared.value is None else math.sqrt(squared.value)
    return NoisyMetric(name, value, math.sqrt(squared.low), math.sqrt(squared.high))


def auc_metric(counts: Floats, noise: SumNoise) -> NoisyMetric:
    """The area under the ROC curve of binned scores; equal bins count half.

    With a and b records of the two classes in each bin it is ``sum_i b_i (A_i + a_i / 2) / (A B)``,
    A_i those of the first class below. Its interval is the delta method's; where the size of a
    class drowns in noise it is everything.

    Parameters
    ----------
    counts : float64 array, shape (2 n_bins,)
        Noisy counts of the first class by bin, then of the second.
    noise : SumNoise
        On each.
    """
    a, b = np.split(counts, 2)
    sizes = np.array([a.sum(), b.sum()])
    if np.any(sizes <= _SURE * noise.deviation * math.sqrt(len(a))) or np.any(sizes < 1.0):
        return NoisyMetric("AUC", None, 0.0, 1.0)
    below = np.cumsum(a) - a / 2.0
    above = b.sum() - np.cumsum(b) + b / 2.0
    value = float(b @ below) / float(sizes.prod())
    slopes = np.concatenate([above - value * sizes[1], below - value * sizes[0]]) / sizes.prod()
    reach = _NORMAL * noise.deviation * math.sqrt(float(slopes @ slopes))
    return _around("AUC", value, reach)


def _around(name: str, share: float, reach: float, largest: float = 1.0) -> NoisyMetric:
    """A share and its interval, within [0, 1], in units of the largest value."""
    value, low, high = (min(max(s, 0.0), 1.0) for s in (share, share - reach, share + reach))
    known = low > 0.0 or high < 1.0
    return NoisyMetric(name, value * largest if known else None, low * largest, high * largest)


def listed(metrics: Sequence[NoisyMetric]) -> dict[str, dict[str, float | None]]:
    """For JSON."""
    return {
        one.name.replace(" ", "_"): {"value": one.value, "low": one.low, "high": one.high}
        for one in metrics
    }
