"""Median regression by noisy subgradients.

The published algorithm (Chen, Miao and Tang, 2020, algorithm 3) moves all coordinates by noisy
directional derivatives, one disjoint batch of records a sweep, and then sets the intercept to the
mean error of the last batch, without noise: that number can be recomputed from the batch and the
published coefficients to the last digit, so no epsilon holds. It starts at the least-squares
solution, again without noise; the smaller of the two derivatives has lost the sign of the step; and
a sweep over coordinates costs epsilon times the l1 norm of a row. Here the intercept is a
coordinate like the others, the start is zero around a private quantile of the target, the
subgradient keeps its sign, and one release holds all coordinates (methods, 3.4). Disjoint batches
compose in parallel; with a delta, Gaussian noise on all records at each of T steps is sqrt(T) times
smaller and is the default.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dpfit.algorithms.base import Setting
from dpfit.algorithms.default_rule import PublicScale, count_of_steps
from dpfit.algorithms.median import (
    CENTRE,
    MAIN_PART,
    main_epsilon,
    moved_by_one,
    sparse_outcome,
)
from dpfit.algorithms.noisy_descent import stepped
from dpfit.algorithms.outcome import Outcome
from dpfit.losses.absolute import Absolute
from dpfit.privacy.curator import Curator
from dpfit.privacy.events import MinimiserLaw
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.point import Point
from dpfit.privacy.quantity import Quantity

FULL: Final = "full"
DISJOINT: Final = "disjoint"
_STEP: Final = 3.0
_MOST_STEPS: Final = 200
_REACH: Final = 0.5
_NOISE_OF_STEP: Final = 0.5
_NOISE_OF_BATCH: Final = 0.15


@dataclass(frozen=True)
class MedianCd:
    """Subgradient steps of length ``step_size / sqrt(t + 1)``; the later half is averaged.

    Attributes
    ----------
    sparsity : int or None
        Coefficients to keep at the end.
    quantile : float
        A half is the median.
    iterations : int
        T.
    step_size : float
        In the target's range over the squared row norm.
    batches : str
        ``full`` takes all records at each step, ``disjoint`` every T-th.
    noise : str
        ``gaussian``, or ``l1`` for disjoint batches.
    n_features : int
        d: the l1 law has noise for all columns.
    """

    sparsity: int | None
    quantile: float
    iterations: int
    step_size: float
    batches: str
    noise: str
    n_features: int

    name = "median-cd"

    @property
    def steps(self) -> int:
        return self.iterations

    def settings(self) -> Mapping[str, Setting]:
        values = asdict(self)
        del values["n_features"]
        return values

    def planned(self) -> list[PlannedRelease]:
        """A tenth of the budget for the centre, the rest for the subgradients."""
        disjoint, laplace = self.batches == DISJOINT, self.noise == MinimiserLaw.L1.value
        gradient = PlannedRelease(
            "gradient",
            Quantity.BATCH_GRADIENT if disjoint else Quantity.GRADIENT,
            self.iterations,
            Fraction(0) if laplace else Fraction(1),
            chosen=self.n_features,
            laplace=laplace,
            pure_part=MAIN_PART if laplace else Fraction(0),
        )
        return [CENTRE, gradient]

    def run(self, curator: Curator, report_progress: Callable[[int], None]) -> Outcome:
        """Centre, descend, average; keep the largest coefficients, if asked."""
        centre = curator.target_quantile(CENTRE.label, self.quantile)
        point = curator.zero_point(centre - 0.5)
        ask = curator.batch_gradient if self.batches == DISJOINT else curator.gradient
        clip = Absolute(self.quantile).largest_residual
        later = np.zeros(curator.n_features + 1)
        for done in range(self.iterations):
            report_progress(done)
            gradient = ask("gradient", point, clip=clip)
            point = stepped(point, gradient, self.step_size / math.sqrt(done + 1.0))
            if 2 * done >= self.iterations - 1:
                later += np.append(point.coefficients, point.intercept)
        report_progress(self.iterations)
        later /= self.iterations - self.iterations // 2
        return sparse_outcome(Point(later[:-1], later[-1], point.offset), self.sparsity)


def default_rule(
    scale: PublicScale,
    sparsity: int | None,
    quantile: float,
    *,
    noise: str | None = None,
    batches: str | None = None,
) -> MedianCd:
    """Settings from public quantities.

    T is as large as the noise of a step allows, up to 200 steps on all records (0.5 of the largest
    gradient) and up to 60 batches (0.15). Steps shrink where their noise would carry w farther than
    0.5 of the range.

    Parameters
    ----------
    scale : PublicScale
        Public size of the problem.
    sparsity : int or None
        Coefficients to keep at the end.
    quantile : float
        A half is the median.
    noise, batches : str, optional
        As the user asked.
    """
    size = scale.n_features + 1
    gaussian, l1 = MinimiserLaw.GAUSSIAN.value, MinimiserLaw.L1.value
    if noise is None:
        noise = l1 if scale.mu is None and scale.budget is not None else gaussian
    if batches is None:
        batches = DISJOINT if noise == l1 else FULL
    if scale.budget is None:
        steps, length = _MOST_STEPS, 0.0
    elif batches == FULL:
        assert scale.mu is not None
        of_one = moved_by_one(scale) * math.sqrt(size) / (scale.n_rows * scale.mu)
        steps = count_of_steps((_NOISE_OF_STEP / of_one) ** 2, 20, _MOST_STEPS)
        length = of_one * math.sqrt(steps)
    else:
        law = math.sqrt(2.0) * size / main_epsilon(scale)
        if noise == gaussian and scale.mu is not None:
            law = math.sqrt(size) / scale.mu
        of_one = moved_by_one(scale) * law / scale.n_rows
        steps = count_of_steps(_NOISE_OF_BATCH / of_one, 5, 60)
        length = of_one * steps
    # Noise of steps 1 / sqrt(t) adds up to about the root of the sum of 1 / t.
    carried = length * math.sqrt(1.0 + math.log(steps))
    step = min(_STEP, _REACH / carried) if carried > 0.0 else _STEP
    step /= scale.row_norm**2
    return MedianCd(sparsity, quantile, steps, step, batches, noise, scale.n_features)
