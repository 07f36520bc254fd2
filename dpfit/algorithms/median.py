"""What the three median regressions share: a private centre, and a model of what was found."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np

from dpfit.algorithms.default_rule import PublicScale
from dpfit.algorithms.hard_threshold import hard_threshold, support_of
from dpfit.algorithms.outcome import Outcome
from dpfit.privacy.conversion import pure_epsilon
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.point import Point
from dpfit.privacy.quantity import Quantity

CENTRE_PART: Final = Fraction(1, 10)
"""Of the whole budget: a tenth of an epsilon of 0.5 still finds a median among 2,000 records."""
MAIN_PART: Final = 1 - CENTRE_PART
CENTRE: Final = PlannedRelease(
    "quantile of the target", Quantity.TARGET_RANKS, 1, Fraction(0), chosen=1, pure_part=CENTRE_PART
)
_LEAST_WIDTH: Final = 1e-3
_WITHOUT_BUDGET: Final = 8.0  # the epsilon whose settings a run without a budget has


def main_epsilon(scale: PublicScale) -> float:
    """The pure epsilon that the centre leaves, for rules; of a rho, the one that it pays for."""
    budget = scale.budget
    if budget is None:
        return float(MAIN_PART) * _WITHOUT_BUDGET
    if budget.epsilon is None:
        return pure_epsilon(MAIN_PART * budget.total_rho)
    return float(MAIN_PART) * budget.epsilon


def width_for(quantile: float, of_median: float) -> float:
    """A smoothing for a quantile: targets are denser around the median than in the tails.

    With a median's width a model of the lowest tenth of hourly counts had 2 % of them below. The
    width shrinks with the product of the shares on both sides.
    """
    return max(4.0 * quantile * (1.0 - quantile) * of_median, _LEAST_WIDTH)


def moved_by_one(scale: PublicScale) -> float:
    """How far one record moves a sum of scores, in units of the largest score of a unit row."""
    return scale.record_length * (2.0 if scale.replaces else 1.0)


def sparse_outcome(point: Point, sparsity: int | None) -> Outcome:
    """The s largest coefficients of a released point, or all."""
    theta = point.coefficients
    if sparsity is None:
        return Outcome(np.arange(len(theta)), theta, point.intercept, point.offset)
    theta = hard_threshold(theta, sparsity)
    kept = support_of(theta)
    return Outcome(kept, theta[kept], point.intercept, point.offset)
