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

from dpfit.privacy.curator import Centring, Curator, Point
from dpfit.privacy.planned_release import PlannedRelease

MOMENTUM: Final = 0.8
CONSTANT: Final = 0.1  # of the row norm: the free intercept column
LONGEST_SQUARED_STEP: Final = 16.0  # largest eta; heavy ball on unit rows is stable below 18
_LOGISTIC_STEP: Final = 1000.0  # largest E; longer steps diverge on dense centred data (measured)
_NOISELESS_STEP: Final = 100.0  # E without noise, where N sets no length


@dataclass(frozen=True)
class HeavyBall:
    """Settings of a descent.

    Attributes
    ----------
    loss : str
        ``logistic`` or ``squared``.
    residual_clip : float
        tau.
    score_noise : float
        N, the noise on the score of a unit row.
    rows_times_mu : float
        ``n mu`` of the whole budget; infinity without privacy.
    """

    loss: str
    residual_clip: float
    score_noise: float
    rows_times_mu: float

    def step_size(self, planned: PlannedRelease) -> float:
        """eta of a release that has its part of the whole budget."""
        tau = self.residual_clip
        longest = _LOGISTIC_STEP if self.loss == "logistic" else LONGEST_SQUARED_STEP * tau
        if self.loss == "logistic" and math.isinf(self.rows_times_mu):
            longest = _NOISELESS_STEP
        rows_times_mu = self.rows_times_mu * math.sqrt(planned.budget_part)
        return min(self.score_noise * rows_times_mu / (2 * planned.count), longest) / tau

    def descend(
        self,
        curator: Curator,
        planned: PlannedRelease,
        centring: Centring,
        start: Point,
        report_progress: Callable[[int], None],
    ) -> Point:
        """All steps of one planned release, on freshly centred rows.

        Parameters
        ----------
        curator : Curator
            Answers ``planned.count`` questions for that release.
        planned : PlannedRelease
            Gradients over centred rows of length one.
        centring : Centring
            The public map of the records.
        start : Point
            Where to begin, on these columns.
        report_progress : callable
            Called with the number of steps done, before each step and at the end.
        """
        step = self.step_size(planned)
        curator.centre(centring)
        theta, intercept = start.coefficients, start.intercept
        velocity, drift = np.zeros_like(theta), 0.0
        for done in range(planned.count):
            report_progress(done)
            here = Point(theta, intercept, start.offset)
            gradient = curator.gradient(planned.label, here, clip=self.residual_clip)
            velocity = MOMENTUM * velocity + gradient.coefficients
            drift = MOMENTUM * drift + gradient.intercept
            theta = theta - step * (1.0 - MOMENTUM) * velocity
            intercept -= step * (1.0 - MOMENTUM) * drift
        report_progress(planned.count)
        return Point(theta, intercept, start.offset)


def count_of_steps(value: float, least: int, most: int) -> int:
    """``value`` rounded up, between the bounds; the upper one without noise."""
    return most if math.isinf(value) else min(max(math.ceil(value), least), most)
