"""Median regression by objective perturbation.

The published algorithm (Chen, Miao and Tang, 2020, algorithm 1) minimises a smoothed absolute loss
plus a ridge plus a random linear term b, with a density of b in proportion to
``exp(-(epsilon / 4) |b|_1)``, and claims epsilon-differential privacy. The density of the minimiser
is that of b times the determinant of the map between them, and the published proof leaves the
determinant out: with 1,000 records, ridge 0.01 and smoothing 0.1 an epsilon of 0.5 is really 1.269
(measured, and the bound is attained). Here the determinant is charged,

    epsilon = sensitivity / scale + ln(1 + |z|^2 / (smoothing ridge)),

where replacing a record z = (x, constant) moves b by at most ``2 S |z|`` in the law's norm and S
bounds the slope of the loss (methods, 3.2, O1 and O2; for the l2 law Chaudhuri, Monteleoni and
Sarwate, 2011, whose two-eigenvalue bound a record of rank one halves). With Gaussian b (O3) the
determinant's part is pure and the rest a Gaussian curve with a larger delta (:mod:`.accountant`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpfit.algorithms.default_rule import PublicScale
from dpfit.algorithms.median import CENTRE, MAIN_PART, main_epsilon, moved_by_one, width_for
from dpfit.algorithms.median_minimiser import ON_GRID, MinimiserSettings, on_grid
from dpfit.losses.smoothed import HuberSmoothed
from dpfit.privacy.conversion import gaussian_mu, log1p_up
from dpfit.privacy.events import MinimiserLaw
from dpfit.privacy.objective import Objective
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.quantity import Quantity

_SMOOTHING: Final = 0.1
_REACH: Final = 3.0
_LEAST_RIDGE: Final = 1e-3  # in records: less is no help, and a harder problem
_CURVATURE: Final = 0.3  # of epsilon, for the determinant
_LARGEST_EXPONENT: Final = 700.0


@dataclass(frozen=True)
class MedianObjective(MinimiserSettings):
    """Perturbs an objective once and releases its minimiser.

    Attributes
    ----------
    curvature_part : float
        Of the budget, for the determinant under a Gaussian law.
    """

    curvature_part: float

    name = "median-objective"

    @property
    def objective(self) -> Objective:
        return Objective(HuberSmoothed(self.quantile, self.smoothing), self.ridge)

    def planned(self) -> list[PlannedRelease]:
        """A tenth of the budget for the centre, a hundredth for the last digits, the rest for b."""
        law, term = MinimiserLaw(self.noise), Quantity.OBJECTIVE_TERM
        if law is MinimiserLaw.GAUSSIAN:
            pure, gaussian = min(Fraction(self.curvature_part), MAIN_PART), 1 - ON_GRID**2
        else:
            pure, gaussian = MAIN_PART - ON_GRID, Fraction(0)
        b = PlannedRelease(
            "linear term of the objective",
            term,
            1,
            gaussian,
            pure_part=pure,
            objective=self.objective,
            law=law,
        )
        return [CENTRE, b, on_grid(law, self.objective)]


def default_rule(
    scale: PublicScale,
    sparsity: int | None,
    quantile: float,
    *,
    smoothing: float | None = None,
    ridge: float | None = None,
    noise: str | None = None,
) -> MedianObjective:
    """Settings from public quantities; what is given decides what follows from it.

    The smoothing of a median is a tenth of the range, and the ridge gives the determinant 0.3 of
    epsilon: best of 0.03, 0.1, 0.3 and of 0.1, 0.3, 0.5 over two tables and heavy tails. The ridge
    is also large enough for b alone to move w by at most 3, of the range. With a delta the law is
    the one whose b is shorter.

    Parameters
    ----------
    scale : PublicScale
        Public size of the problem.
    sparsity : int or None
        Coefficients to keep at the end.
    quantile : float
        A half is the median.
    smoothing, ridge, noise : optional
        As the user asked.
    """
    epsilon = main_epsilon(scale)
    needed = scale.record_length**2 / math.expm1(min(_CURVATURE * epsilon, _LARGEST_EXPONENT))
    lengths = _lengths_of_term(scale, (1.0 - _CURVATURE) * epsilon)
    if noise is None:
        noise = min(lengths, key=lambda law: lengths[law])
    if smoothing is None:
        smoothing = width_for(quantile, _SMOOTHING)
        if ridge is not None:
            smoothing = min(max(smoothing, needed / ridge), 1.0)
    if ridge is None:
        ridge = max(needed / smoothing, lengths.get(noise, 0.0) / _REACH, _LEAST_RIDGE)
    part = 0.0
    if noise == MinimiserLaw.GAUSSIAN.value:
        spent = float(log1p_up(Fraction(scale.record_length**2 / (smoothing * ridge))))
        # A little more: the charge is rounded up, and a given ridge may leave nothing beside it.
        part = min(spent / epsilon * float(MAIN_PART) * (1.0 + 1e-9), float(MAIN_PART))
    return MedianObjective(sparsity, quantile, smoothing, ridge, noise, part)


def _lengths_of_term(scale: PublicScale, epsilon: float) -> dict[str, float]:
    """Mean l2 length of b under each law that the budget allows."""
    budget, size = scale.budget, scale.n_features + 1
    moved = moved_by_one(scale)
    lengths = {MinimiserLaw.L2.value: moved * size / epsilon}
    if budget is not None and budget.delta is not None:
        mu = gaussian_mu(epsilon, budget.delta / (4.0 if scale.replaces else 2.0))
        lengths[MinimiserLaw.GAUSSIAN.value] = moved * math.sqrt(size) / mu
    return lengths
