"""A start for the log link: the rate that explains all counts without any column."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from dpfit.privacy.curator import Curator
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.quantity import Quantity

TARGET_PART: Final = Fraction(1, 50)
MEAN_RATE: Final = PlannedRelease("mean rate", Quantity.TARGET_AND_EXPOSURE_SUMS, 1, TARGET_PART)
_LEAST: Final = 1e-9  # of the top of the range of counts
_RATES_ABOVE_MEAN: Final = 4.0  # what the rate of a row may be over the mean, for stable steps


def before_descent(counts: bool) -> tuple[list[PlannedRelease], Fraction]:
    """What an algorithm asks before its steps, and the part of the budget that is left."""
    return ([MEAN_RATE], 1 - TARGET_PART) if counts else ([], Fraction(1))


def released_rate(curator: Curator) -> tuple[float, float]:
    """Released mean count, over the top of its range, and logarithm of the mean rate.

    The rate is that count over the released mean exposure.

    A mean below the standard deviation of its noise counts as that: it tells no more.
    """
    least = min(max(curator.noise_scale(MEAN_RATE.label), _LEAST), 1.0)
    target, exposure = curator.target_and_exposure_means(MEAN_RATE.label)
    mean, exposure = min(max(target, least), 1.0), min(max(exposure, least), 1.0)
    return mean, math.log(mean / exposure)


def curvature_of(mean: float) -> float:
    """Bound on the curvature of a rate's loss on unit rows: a rate somewhat above the mean."""
    return _RATES_ABOVE_MEAN * mean
