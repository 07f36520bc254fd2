"""dp-fw: private Frank-Wolfe over the l1 ball (Talwar, Thakurta and Zhang, 2015).

Each step moves toward the vertex ``+-C e_j`` along which the gradient falls most, chosen under
Gumbel noise, or under Laplace noise as published. The published scale charges add-remove slightly
too little and replace-one half; here a selection costs what its integer sensitivity says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

import numpy as np

from dpfit.algorithms.base import Setting
from dpfit.algorithms.default_rule import WIDE, PublicScale
from dpfit.algorithms.mean_rate import before_descent, released_rate
from dpfit.algorithms.outcome import Outcome
from dpfit.privacy.curator import Curator
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.point import Point
from dpfit.privacy.quantity import Quantity


@dataclass(frozen=True)
class DpFw:
    """The settings of a run, every one a function of public quantities.

    Attributes
    ----------
    iterations : int
        T, also the most coefficients that the model can have.
    l1_radius : float
        C, the l1 norm of the ball.
    residual_clip : float
        tau, the bound on ``|l'|``.
    from_mean_rate : bool
        Whether scores start at the logarithm of the released mean rate.
    laplace : bool
        Whether vertices are chosen under Laplace noise.
    """

    iterations: int
    l1_radius: float
    residual_clip: float
    from_mean_rate: bool = False
    laplace: bool = False

    name = "dp-fw"

    @property
    def steps(self) -> int:
        return self.iterations

    def settings(self) -> Mapping[str, Setting]:
        """All settings, as JSON values; what is off is left out."""
        return {name: value for name, value in asdict(self).items() if value is not False}

    def planned(self) -> list[PlannedRelease]:
        """All of the budget chooses vertices, but for what the start takes."""
        start, left = before_descent(self.from_mean_rate)
        times = self.iterations
        vertex = PlannedRelease("vertex", Quantity.SELECTION, times, left, 1, self.laplace)
        return [*start, vertex]

    def run(self, curator: Curator, report_progress: Callable[[int], None]) -> Outcome:
        """``theta = (1 - m) theta + m C s e_j`` with ``m = 2 / (t + 2)``; a vertex a step."""
        offset = released_rate(curator)[1] if self.from_mean_rate else 0.0
        chosen: set[int] = set()
        theta = np.zeros(curator.n_features + 1)  # the intercept's column is a vertex too
        for done in range(self.iterations):
            report_progress(done)
            point = Point(theta[:-1], float(theta[-1]), offset)
            column, sign = curator.steepest_vertex("vertex", point, clip=self.residual_clip)
            weight = 2.0 / (done + 2.0)
            theta[list(chosen)] *= 1.0 - weight  # no pass over all columns
            theta[column] += sign * weight * self.l1_radius
            chosen.add(column)
        report_progress(self.iterations)
        support = np.flatnonzero(theta[:-1])
        return Outcome(support, theta[support], float(theta[-1]), offset)


def default_rule(scale: PublicScale) -> DpFw:
    """T grows with the signal; C is what scores of unit rows need, over the row norm.

    100 for classes, 5 for values and 10 for rates; of these a fifth on wide data, where the noise
    of choosing among many columns leaves no more.

    Parameters
    ----------
    scale : PublicScale
        Public size of the problem.
    """
    steps = int(np.clip(np.rint(scale.rows_times_mu / 50), 10, 200))
    if scale.classifies:
        radius, tau = 100.0, 0.25
    else:
        radius, tau = 10.0 if scale.counts else 5.0, scale.value_clip
        if scale.n_features > WIDE:
            radius /= 5.0
    return DpFw(steps, radius / scale.row_norm, tau, from_mean_rate=scale.counts)
