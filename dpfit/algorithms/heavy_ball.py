"""Heavy-ball descent with noise on rows of length one: what several algorithms fit with.

What the noise does to the score of a unit row is ``N = 2 E T / (n mu)``, with ``E`` the step times
the clip; a rule fixes N, and E follows, up to where steps diverge.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpfit.algorithms.default_rule import PublicScale
from dpfit.privacy.curator import Curator
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.point import Point

MOMENTUM: Final = 0.8
CONSTANT: Final = 0.1  # of the row norm: the free intercept column
_LONGEST_ETA: Final = 16.0  # over the curvature; heavy ball on unit rows is stable below 18
_LONGEST_E: Final = 1000.0  # for classes; longer steps diverge on dense centred data (measured)
_NOISELESS_E: Final = 100.0  # for classes without noise, where N sets no length
_E_ON_FEW_COLUMNS: Final = 100.0  # on up to as many, whose rows point in few directions


@dataclass(frozen=True)
class HeavyBall:
    """Settings of a descent.

    Attributes
    ----------
    scale : PublicScale
        Public size of the problem.
    residual_clip : float
        tau.
    score_noise : float
        N, the noise on the score of a unit row.
    curvature : float
        Of the loss of a value, which bounds eta; there is no such bound for classes.
    """

    scale: PublicScale
    residual_clip: float
    score_noise: float
    curvature: float

    def step_size(self, planned: PlannedRelease, n_columns: int) -> float:
        """eta of a release that has its part of the whole budget, on so many columns."""
        rows_times_mu = self.scale.rows_times_mu * math.sqrt(planned.budget_part)
        length = self.score_noise * rows_times_mu / (2 * planned.count)
        longest = longest_step(self.scale, self.residual_clip, self.curvature)
        if self.scale.classifies:
            longest = min(longest, max(_E_ON_FEW_COLUMNS, n_columns))
        return min(length, longest) / self.residual_clip

    def descend(
        self,
        curator: Curator,
        planned: PlannedRelease,
        start: Point,
        report_progress: Callable[[int], None],
        *,
        kept: NDArray[np.bool_] | None = None,
    ) -> Point:
        """All steps of one planned release, on rows that the Curator was told to centre.

        Parameters
        ----------
        curator : Curator
            Answers ``planned.count`` questions for that release.
        planned : PlannedRelease
            Gradients over centred rows of length one.
        start : Point
            Where to begin, on these columns.
        report_progress : callable
            Called with the number of steps done, before each step and at the end.
        kept : bool array, as the coefficients, optional
            The others stay zero.
        """
        step = self.step_size(planned, len(start.coefficients))
        theta, intercept = start.coefficients, start.intercept
        velocity, drift = np.zeros_like(theta), np.zeros_like(intercept)
        for done in range(planned.count):
            report_progress(done)
            here = Point(theta, intercept, start.offset)
            gradient = curator.gradient(planned.label, here, clip=self.residual_clip)
            velocity = MOMENTUM * velocity + gradient.coefficients
            drift = MOMENTUM * drift + gradient.intercept
            theta = theta - step * (1.0 - MOMENTUM) * velocity
            if kept is not None:
                theta[~kept] = 0.0
            intercept = intercept - step * (1.0 - MOMENTUM) * drift
        report_progress(planned.count)
        return Point(theta, intercept, start.offset)


def longest_step(scale: PublicScale, tau: float, curvature: float) -> float:
    """The largest E that is stable for the loss."""
    if not scale.classifies:
        return _LONGEST_ETA * tau / curvature
    return _NOISELESS_E if math.isinf(scale.rows_times_mu) else _LONGEST_E
