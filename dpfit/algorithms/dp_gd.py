"""dp-gd: noisy gradient descent for generalised linear models (Cai, Wang and Zhang, 2020).

Algorithm 1 of the paper, for few columns, with the guarantee put right and tight: the paper adds
the steps' epsilons and deltas and takes twice the sensitivity it needs, which costs a factor of 6
to 20 in noise; here the steps compose exactly. Clipped residuals replace its truncation of the
response, which bounds no gradient for a loss whose mean is unbounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpfit.algorithms.default_rule import PublicScale
from dpfit.algorithms.hard_threshold import largest_magnitude
from dpfit.algorithms.noisy_descent import DescentSettings, noisy_descent
from dpfit.algorithms.outcome import Outcome
from dpfit.privacy.curator import Curator

_CONTRACTION: Final = 1.8  # eta for the squared loss, whose curvature on unit rows is at most 1.01


@dataclass(frozen=True)
class DpGd(DescentSettings):
    """Noisy gradient descent; keeps s coefficients at the end, or all."""

    name = "dp-gd"

    def run(self, curator: Curator, report_progress: Callable[[int], None]) -> Outcome:
        """Descend without a threshold; keep the largest coefficients at the end, if asked."""
        point = noisy_descent(
            curator,
            self,
            project=lambda coefficients: coefficients,
            report_progress=report_progress,
        )
        kept = np.arange(len(point.coefficients))
        if self.sparsity is not None:
            kept = largest_magnitude(point.coefficients, self.sparsity)
        return Outcome(kept, point.coefficients[kept], point.intercept)


def default_rule(scale: PublicScale, sparsity: int | None) -> DpGd:
    """Settings from public quantities.

    The noise that a model puts on the score of a unit row is ``N = 2 E T / (n mu)`` with
    ``E = eta tau``. Logistic: N at most 1, ``E`` at most 30 (longer steps diverge on one-hot rows);
    squared: N is 4 % of the target's range and ``eta`` below the contraction bound.

    Parameters
    ----------
    scale : PublicScale
        Public size of the problem.
    sparsity : int or None
        Coefficients to keep at the end.
    """
    signal = scale.rows_times_mu
    if scale.loss == "squared":
        tau = 0.2
        steps = int(np.clip(np.ceil(0.04 * signal / (2 * tau * _CONTRACTION)), 20, 400))
        length = min(0.04 * signal / (2 * steps), tau * _CONTRACTION)
    else:
        tau = 0.25
        steps = int(np.clip(np.ceil(signal / 60), 20, 200))
        length = min(signal / (2 * steps), 30.0)
    return DpGd(sparsity, steps, length / tau / scale.row_norm**2, tau)
