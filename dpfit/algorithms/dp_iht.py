"""dp-iht: noisy iterative hard thresholding (Cai, Wang and Zhang, 2020, Algorithms 3 and 4).

The paper peels off one coordinate at a time under Laplace noise and adds up epsilons over the
steps. Here, by default, each step chooses its support in one shot under Gumbel noise, whose law is
that of the exponential mechanism without replacement, and adds Gaussian noise to the chosen
coordinates only; all composes as zCDP, for 7 to 30 times less noise than printed. The other
selection is the paper's peeling, with Laplace noise on the values too, charged as zCDP as well: at
the same budget its selection has 1.6 times the scale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from dpfit.algorithms.default_rule import WIDE, PublicScale
from dpfit.algorithms.noisy_descent import DescentSettings, stepped
from dpfit.algorithms.outcome import Outcome
from dpfit.privacy.curator import Curator
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.quantity import Quantity

_SELECTION_PART: Final = {"one-shot": Fraction(1, 2), "peeling": Fraction(4, 5)}


@dataclass(frozen=True)
class DpIht(DescentSettings):
    """Noisy iterative hard thresholding: the support has s columns at each step.

    Attributes
    ----------
    selection : str
        ``one-shot`` or ``peeling``.
    """

    sparsity: int  # needed here
    selection: str = "one-shot"

    name = "dp-iht"

    def planned(self) -> list[PlannedRelease]:
        """What chooses supports, and what reads the values on them.

        Half each in one shot. Peeling has four parts of five: a round costs four times what a value
        does at the same scale, so both get the paper's one scale b, and the wrong columns harm more
        than their noisy values.
        """
        times, size, laplace = self.iterations, self.sparsity, self.selection == "peeling"
        *start, gradient = super().planned()
        choice = _SELECTION_PART[self.selection] * gradient.budget_part
        values = gradient.budget_part - choice
        return [
            *start,
            PlannedRelease("support", Quantity.SELECTION, times, choice, size, laplace),
            PlannedRelease("values", Quantity.PARTIAL_GRADIENT, times, values, size, laplace),
        ]

    def run(self, curator: Curator, report_progress: Callable[[int], None]) -> Outcome:
        """Choose, then step on what was chosen, T times from zero."""
        point, step_size = self.start(curator)
        for done in range(self.iterations):
            report_progress(done)
            support = curator.support_after_step(
                "support", point, clip=self.residual_clip, step_size=step_size
            )
            gradient = curator.gradient("values", point, clip=self.residual_clip, columns=support)
            on_support = replace(point, coefficients=point.coefficients[support])
            moved = stepped(on_support, gradient, step_size)
            coefficients = np.zeros(curator.n_features)
            coefficients[support] = moved.coefficients
            point = replace(moved, coefficients=coefficients)
        report_progress(self.iterations)
        support = np.flatnonzero(point.coefficients)
        return Outcome(support, point.coefficients[support], point.intercept, point.offset)


def default_rule(scale: PublicScale, sparsity: int) -> DpIht:
    """Thirty steps on few columns; on wide data few, since each selection pays for s rounds.

    Parameters
    ----------
    scale : PublicScale
        Public size of the problem.
    sparsity : int
        s.
    """
    signal = scale.rows_times_mu
    few_columns = scale.n_features <= WIDE
    steps = 30 if few_columns else int(np.clip(np.rint(signal / 1500), 2, 6))
    tau = 0.25
    length = min(signal / (2 * steps), 30.0 if few_columns else 100.0)
    if not scale.classifies:
        tau = scale.value_clip
        length = scale.longest_plain_step(0.1, steps)
    step_size, longest = length / tau / scale.row_norm**2, scale.contraction_of_rates
    return DpIht(sparsity, steps, step_size, tau, contraction_of_rates=longest)
