"""dp-gd: noisy gradient descent for generalised linear models (Cai, Wang and Zhang, 2020).

Algorithm 1 of the paper, for few columns, with the guarantee put right and tight: the paper adds
the steps' epsilons and deltas and takes twice the sensitivity it needs, which costs a factor of 6
to 20 in noise; here the steps compose exactly. Clipped residuals replace its truncation of the
response, which bounds no gradient for a loss whose mean is unbounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpfit.algorithms.default_rule import PublicScale
from dpfit.algorithms.hard_threshold import hard_threshold, support_of
from dpfit.algorithms.noisy_descent import DescentSettings, noisy_descent
from dpfit.algorithms.outcome import Outcome
from dpfit.privacy.curator import Curator


@dataclass(frozen=True)
class DpGd(DescentSettings):
    """Noisy gradient descent; keeps s coefficients at the end, or all."""

    name = "dp-gd"

    def run(self, curator: Curator, report_progress: Callable[[int], None]) -> Outcome:
        """Descend without a threshold; keep the largest coefficients at the end, if asked."""
        point = noisy_descent(
            curator,
            self,
            project=lambda point, done: point,
            report_progress=report_progress,
        )
        theta = point.coefficients
        if self.sparsity is None:
            return Outcome(np.arange(len(theta)), theta, point.intercept, point.offset)
        theta = hard_threshold(theta, self.sparsity, joint=self.joint_rows)
        kept = support_of(theta)
        return Outcome(kept, theta[kept], point.intercept, point.offset)


def default_rule(scale: PublicScale, sparsity: int | None) -> DpGd:
    """Settings from public quantities.

    The noise that a model puts on the score of a unit row is ``N = 2 E T / (n mu)`` with
    ``E = eta tau``. Classes: N at most 1, ``E`` at most 30 (longer steps diverge on one-hot rows);
    values: N is 4 % of the target's range and ``eta`` below the contraction bound; counts: N is
    0.1 on the logarithm of the rate.

    Parameters
    ----------
    scale : PublicScale
        Public size of the problem.
    sparsity : int or None
        Coefficients to keep at the end.
    """
    signal = scale.rows_times_mu
    if not scale.classifies:
        tau = scale.value_clip
        steps, length = scale.value_steps(0.1 if scale.counts else 0.04, 20, 400)
    else:
        tau = 0.25
        steps = int(np.clip(np.ceil(signal / 60), 20, 200))
        length = min(signal / (2 * steps), 30.0)
    step_size = length / tau / scale.row_norm**2
    return DpGd(sparsity, steps, step_size, tau, contraction_of_rates=scale.contraction_of_rates)
