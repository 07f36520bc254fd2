"""What the three median regressions share: a private centre, and a model of what was found."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np

from dpfit.algorithms.default_rule import PublicScale
from dpfit.algorithms.hard_threshold import hard_threshold, support_of
from dpfit.algorithms.outcome import Outcome
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.point import Point
from dpfit.privacy.quantity import Quantity

CENTRE_PART: Final = Fraction(1, 10)
"""Of the whole budget: a tenth of an epsilon of 0.5 still finds a median among 2,000 records."""
MAIN_PART: Final = 1 - CENTRE_PART
CENTRE: Final = PlannedRelease(
    "quantile of the target", Quantity.TARGET_RANKS, 1, Fraction(0), chosen=1, pure_part=CENTRE_PART
)
_WITHOUT_EPSILON: Final = 8.0  # whose settings a run without a budget, or with a rho, has


def main_epsilon(scale: PublicScale) -> float:
    """What the centre leaves of an epsilon, for rules; of 8 where none is given."""
    whole = None if scale.budget is None else scale.budget.epsilon
    return float(MAIN_PART) * (_WITHOUT_EPSILON if whole is None else whole)


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
