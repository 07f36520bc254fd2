"""two-stage: a support by sample and aggregate, then a private fit on it.

The two-stage method of Kifer, Smith and Thakurta (COLT 2012), corrected. Blocks of rows vote for
columns; the s columns with most votes are chosen under Gumbel noise instead of by a test of the
support's stability. The fit on them is a noisy heavy-ball descent instead of objective
perturbation, on rows brought to length one on the chosen columns. Half of rho pays for the votes,
half for the descent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dpfit.algorithms.base import Setting
from dpfit.algorithms.default_rule import PublicScale, count_of_steps
from dpfit.algorithms.heavy_ball import (
    CONSTANT,
    MOMENTUM,
    HeavyBall,
    longest_step,
)
from dpfit.algorithms.mean_rate import before_descent, curvature_of, released_rate
from dpfit.algorithms.outcome import Outcome
from dpfit.algorithms.tuning import COUNT_NOISE, VALUE_NOISE
from dpfit.privacy.centring import Centring
from dpfit.privacy.curator import Curator
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.quantity import Quantity

_VOTE_PART: Final = Fraction(1, 2)


@dataclass(frozen=True)
class TwoStage:
    """The settings of a run, every one a function of public quantities.

    Attributes
    ----------
    sparsity : int
        s, the columns chosen.
    scale : PublicScale
        Public size of the problem.
    iterations : int
        T of the descent.
    residual_clip : float
        tau.
    score_noise : float
        N, the noise on the score of a unit row.
    """

    sparsity: int
    scale: PublicScale
    iterations: int
    residual_clip: float
    score_noise: float

    name = "two-stage"

    @property
    def steps(self) -> int:
        return self.iterations

    def settings(self) -> dict[str, Setting]:
        """All settings, as JSON values."""
        return {
            "sparsity": self.sparsity,
            "iterations": self.iterations,
            "residual_clip": self.residual_clip,
            "score_noise": self.score_noise,
            "momentum": MOMENTUM,
            "budget_parts": {one.label: float(one.budget_part) for one in self.planned()},
        }

    def planned(self) -> list[PlannedRelease]:
        """One selection by votes, the mean rate of counts, and the descent."""
        start, left = before_descent(self.scale.counts)
        descent = left - _VOTE_PART
        return [
            PlannedRelease("votes", Quantity.VOTES, 1, _VOTE_PART, self.sparsity),
            *start,
            PlannedRelease("descent", Quantity.UNIT_GRADIENT, self.iterations, descent),
        ]

    def run(self, curator: Curator, report_progress: Callable[[int], None]) -> Outcome:
        """Choose by votes, then descend on what was chosen.

        Parameters
        ----------
        curator : Curator
            Answers the planned questions.
        report_progress : callable
            Called with the number of gradients taken.
        """
        votes, *start, descent = self.planned()
        columns = curator.columns_by_vote(votes.label)
        centring = Centring(columns, np.zeros(len(columns)), CONSTANT)
        offset, curvature = 0.0, 1.0
        if start:
            mean, offset = released_rate(curator)
            curvature = curvature_of(mean)
        curator.centre(centring)
        ball = HeavyBall(self.scale, self.residual_clip, self.score_noise, curvature)
        point = ball.descend(curator, descent, curator.zero_point(offset), report_progress)
        return Outcome(columns, point.coefficients, point.intercept, point.offset, centring)


def default_rule(scale: PublicScale, sparsity: int) -> TwoStage:
    """Those of dp-screen's descent: N is 1, or 7 % of the target's range.

    Parameters
    ----------
    scale : PublicScale
        Public size of the problem.
    sparsity : int
        s.
    """
    signal = scale.rows_times_mu
    if scale.classifies:
        steps, tau, noise = count_of_steps(signal / 2000, 40, 200), 0.25, 1.0
    elif scale.counts:
        steps, tau, noise = 100, scale.value_clip, COUNT_NOISE
    else:
        tau, noise = scale.value_clip, VALUE_NOISE
        descent = signal * float(1 - _VOTE_PART) ** 0.5
        steps = count_of_steps(noise * descent / (2 * longest_step(scale, tau, 1.0)), 40, 400)
    return TwoStage(sparsity, scale, steps, tau, noise)
