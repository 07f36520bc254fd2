"""DP-IGHT: noisy gradient steps with a hard threshold after each (Wang and Gu, IJCAI 2019).

Algorithm 1 of the paper with the guarantee put right: its printed noise is calibrated to a gradient
sensitivity of ``sqrt(2) G / n``, which is that of no neighbouring relation; here every step is
charged by its exact integer sensitivity (``2 G / n`` under replace-one) and the steps are composed
exactly. Residuals are clipped, which bounds the gradient for every loss without bounding the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.algorithms.default_rule import WIDE, PublicScale
from dpfit.algorithms.hard_threshold import hard_threshold, support_of
from dpfit.algorithms.noisy_descent import DescentSettings, noisy_descent
from dpfit.algorithms.outcome import Outcome
from dpfit.privacy.curator import Curator
from dpfit.privacy.point import Point

Integers: TypeAlias = NDArray[np.int64]

_NOISE_SHARE: Final = 0.07  # of the target's range, on a prediction


@dataclass(frozen=True)
class DpIght(DescentSettings):
    """DP-IGHT: keeps s coefficients; the intercept is not thresholded.

    Attributes
    ----------
    threshold : str
        When: ``each`` step, as published; the ``final`` one only; or ``decreasing``, with none in
        the first half of the steps and then sparsities that fall geometrically from d to s.
    projection_radius : float or None
        C: after the threshold the model, its intercept's coefficient included, is scaled down to
        the l2 norm C. None leaves it.
    """

    sparsity: int  # needed here
    threshold: str = "each"
    projection_radius: float | None = None

    name = "dp-ight"

    def run(self, curator: Curator, report_progress: Callable[[int], None]) -> Outcome:
        """Fit: ``theta_t = P_C(H_s(theta_{t-1} - eta (gradient + noise)))`` from ``theta_0 = 0``.

        Parameters
        ----------
        curator : Curator
            Answers exactly ``iterations`` gradient questions.
        report_progress : callable
            Called with the number of steps done, before each step and at the end.

        Returns
        -------
        Outcome
            The last iterate, at most ``sparsity`` non-zero coefficients.
        """
        kept = self.sparsities(curator.n_features)

        def project(point: Point, done: int) -> Point:
            theta = hard_threshold(point.coefficients, int(kept[done - 1]), joint=self.joint_rows)
            return within_ball(replace(point, coefficients=theta), self.projection_radius)

        point = noisy_descent(curator, self, project=project, report_progress=report_progress)
        support = support_of(point.coefficients)
        return Outcome(support, point.coefficients[support], point.intercept, point.offset)

    def sparsities(self, n_features: int) -> Integers:
        """Coefficients kept after each step, shape (T,); the last is s."""
        steps = self.iterations
        if self.threshold == "each":
            return np.full(steps, self.sparsity)
        kept = np.full(steps, n_features)
        if self.threshold == "decreasing":
            falling = steps - steps // 2
            share = np.arange(1, falling + 1) / falling
            fallen = n_features * (self.sparsity / n_features) ** share
            kept[-falling:] = np.maximum(np.rint(fallen), self.sparsity)
        kept[-1] = self.sparsity
        return kept


def within_ball(point: Point, radius: float | None) -> Point:
    """The nearest model of l2 norm at most ``radius``, the intercept's coefficient included."""
    if radius is None:
        return point
    length = float(np.linalg.norm(np.append(point.coefficients, point.intercept)))
    if length <= radius:
        return point
    scale = radius / length
    return Point(point.coefficients * scale, point.intercept * scale, point.offset)


def default_rule(scale: PublicScale, sparsity: int, threshold: str = "each") -> DpIght:
    """Settings chosen from public quantities, as measured best over text and census data.

    With unit rows and ``E = eta tau``: for ``d <= max(4 s, 10^4)`` 30 steps of ``E = 30``; for wide
    data, where no column is shared by many rows, few large steps, ``T = clip(n mu / 700, 3, 10)``
    and ``E = min(n mu / (2 T), 300)``, since what a model's score suffers from the noise is
    ``2 E T / (n mu)`` and larger steps diverge under the threshold. For the squared loss, whose
    curvature on unit rows is at most 1.01, ``eta < 2 / 1.01`` keeps a step a contraction, and T
    grows until the noise on a prediction is 7 % of the target's range. Without noise steps cost
    nothing, so there are many. On wide data without a threshold at each step, 40 steps whose noise
    on a score is 1.

    Parameters
    ----------
    scale : PublicScale
        Public size of the problem.
    sparsity : int
        s.
    threshold : str
        When it is applied.
    """
    signal = scale.rows_times_mu
    if scale.mu is None:
        tau, steps, length = _noiseless(scale, sparsity)
    elif not scale.classifies:
        tau = scale.value_clip
        steps, length = scale.value_steps(0.1 if scale.counts else _NOISE_SHARE, 10, 300)
    elif _few_columns(scale, sparsity):
        tau, steps, length = 0.25, 30, 30.0
    elif threshold != "each":
        tau, steps = 0.25, 40
        length = signal / (2 * steps)
    else:
        tau = 0.25
        steps = int(np.clip(np.rint(signal / 700), 3, 10))
        length = min(signal / (2 * steps), 300.0)
    # theta scales as 1/K and the gradient as K, so the step that does the same scales as 1/K^2.
    step_size = length / tau / scale.row_norm**2
    return DpIght(
        sparsity,
        steps,
        step_size,
        tau,
        contraction_of_rates=scale.contraction_of_rates,
        threshold=threshold,
    )


def _noiseless(scale: PublicScale, sparsity: int) -> tuple[float, int, float]:
    if not scale.classifies:
        tau = scale.value_clip
        return tau, 300, scale.longest_plain_step(1.0, 300)
    return 0.25, 200, 30.0 if _few_columns(scale, sparsity) else 100.0


def _few_columns(scale: PublicScale, sparsity: int) -> bool:
    """Whether columns may be shared by many rows, as one-hot ones are: long steps diverge there."""
    return scale.n_features <= max(4 * sparsity, WIDE)
