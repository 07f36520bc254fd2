"""Median regression by reweighted least squares and output perturbation.

The published algorithm (Chen, Miao and Tang, 2020, algorithm 2) adds Laplace noise of scale

    c = 8 (sqrt(d v) + B) / (n e min(2 / (2 (sqrt(d v) + B) + e), lambda))

to the coefficients. There is no epsilon in it, v is the radius of the fitted coefficients and so a
statistic of the data, and one step with common weights was analysed where all weights move. A
replaced record can move the coefficients by up to 7 times c (measured). Here the object is the
fixed point of the reweighting: the minimiser of

    sum_i |r_i| - e ln(1 + |r_i| / e) + (ridge / 2) |w|^2,

which reweighting by ``1 / (|r_i| + e)`` reaches with the factor 1/2 that the published iteration
lacks. It is ridge-strongly convex with slopes within S, so replacing a record moves w by at most
``D = 2 S |z| / ridge`` in the l2 norm: the W-norm of the derivation (methods, 3.3), divided by the
root of the ridge that all coordinates share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpfit.algorithms.default_rule import PublicScale
from dpfit.algorithms.median import CENTRE, MAIN_PART, main_epsilon, moved_by_one, width_for
from dpfit.algorithms.median_minimiser import MINIMISER, ON_GRID, MinimiserSettings, on_grid
from dpfit.losses.absolute import Absolute
from dpfit.losses.smoothed import LogSmoothed
from dpfit.privacy.events import MinimiserLaw
from dpfit.privacy.objective import Objective
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.quantity import Quantity

_SMOOTHING: Final = 0.05
_NOISE: Final = 0.07  # l2 norm of the noise on w, of the range


@dataclass(frozen=True)
class MedianIrls(MinimiserSettings):
    """Adds noise to the minimiser of a strongly convex objective.

    Gaussian and l1 noise are exact integers on the grid; l2 noise is a real vector before it.
    """

    name = "median-irls"

    @property
    def objective(self) -> Objective:
        return Objective(LogSmoothed(self.quantile, self.smoothing), self.ridge)

    def planned(self) -> list[PlannedRelease]:
        """A tenth of the budget for the centre, the rest for the minimiser."""
        law, objective = MinimiserLaw(self.noise), self.objective
        if law is MinimiserLaw.L2:
            shift = PlannedRelease(
                "vector added to the minimiser",
                Quantity.MINIMISER_SHIFT,
                1,
                Fraction(0),
                pure_part=MAIN_PART - ON_GRID,
                objective=objective,
                law=law,
            )
            return [CENTRE, shift, on_grid(law, objective)]
        laplace = law is MinimiserLaw.L1
        minimiser = PlannedRelease(
            MINIMISER,
            Quantity.MINIMISER,
            1,
            Fraction(0) if laplace else Fraction(1),
            pure_part=MAIN_PART if laplace else Fraction(0),
            laplace=laplace,
            objective=objective,
        )
        return [CENTRE, minimiser]


def default_rule(
    scale: PublicScale, sparsity: int | None, quantile: float, *, noise: str | None = None
) -> MedianIrls:
    """Settings from public quantities.

    The smoothing of a median is the paper's. The ridge makes the noise on w 0.07 long, of the
    target's range: more ridge shrinks the model, less drowns it.

    Parameters
    ----------
    scale : PublicScale
        Public size of the problem.
    sparsity : int or None
        Coefficients to keep at the end.
    quantile : float
        A half is the median.
    noise : str, optional
        As the user asked.
    """
    size, mu = scale.n_features + 1, scale.mu
    lengths = {MinimiserLaw.L2.value: size / main_epsilon(scale)}
    lengths[MinimiserLaw.L1.value] = math.sqrt(2.0) * lengths[MinimiserLaw.L2.value]
    if mu is not None:
        lengths[MinimiserLaw.GAUSSIAN.value] = math.sqrt(size) / mu
    if noise is None:
        noise = min(lengths, key=lambda law: lengths[law])
    # Without a budget there is no Gaussian length, and no noise either.
    length = lengths.get(noise, min(lengths.values()))
    ridge = Absolute(quantile).largest_residual * moved_by_one(scale) * length / _NOISE
    return MedianIrls(sparsity, quantile, width_for(quantile, _SMOOTHING), ridge, noise)
