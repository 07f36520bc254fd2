"""dp-gd: noisy gradient descent for generalised linear models (Cai, Wang and Zhang, 2020).

Algorithm 1 of the paper, for few columns, with the guarantee put right and tight: the paper adds
the steps' epsilons and deltas and takes twice the sensitivity it needs, which costs a factor of 6
to 20 in noise; here the steps compose exactly. Clipped residuals replace its truncation of the
response, which bounds no gradient for a loss whose mean is unbounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dpfit.algorithms.base import Setting
from dpfit.algorithms.default_rule import PublicScale
from dpfit.algorithms.hard_threshold import largest_magnitude
from dpfit.algorithms.noisy_descent import noisy_descent
from dpfit.algorithms.outcome import Outcome
from dpfit.privacy.curator import Curator
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.quantity import Quantity

_CONTRACTION: Final = 1.8  # eta for the squared loss, whose curvature on unit rows is at most 1.01


@dataclass(frozen=True)
class DpGd:
    """The settings of a run, every one a function of public quantities.

    Attributes
    ----------
    sparsity : int or None
        Coefficients to keep at the end; None keeps all.
    iterations : int
        T, the number of noisy gradients.
    step_size : float
        eta.
    residual_clip : float
        tau, the bound on ``|l'|``.
    """

    sparsity: int | None
    iterations: int
    step_size: float
    residual_clip: float

    name = "dp-gd"

    @property
    def steps(self) -> int:
        return self.iterations

    def settings(self) -> Mapping[str, Setting]:
        """All settings, as JSON values."""
        return asdict(self)

    def planned(self) -> list[PlannedRelease]:
        """All of the budget goes to the gradients."""
        return [PlannedRelease("gradient", Quantity.GRADIENT, self.iterations, Fraction(1))]

    def run(self, curator: Curator, report_progress: Callable[[int], None]) -> Outcome:
        """Descend without a threshold; keep the largest coefficients at the end, if asked."""
        point = noisy_descent(
            curator,
            iterations=self.iterations,
            step_size=self.step_size,
            residual_clip=self.residual_clip,
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
