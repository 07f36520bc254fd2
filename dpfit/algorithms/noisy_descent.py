"""Gradient steps with noise, each followed by a projection: the loop that several papers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.algorithms.base import Setting
from dpfit.privacy.curator import Curator, Point
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.quantity import Quantity

Floats: TypeAlias = NDArray[np.float64]

_LARGEST: Final = 1e150  # squares of it stay finite


@dataclass(frozen=True)
class DescentSettings:
    """The settings of a descent, every one a function of public quantities.

    Attributes
    ----------
    sparsity : int or None
        s, coefficients to keep; None keeps all, where the algorithm allows it.
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

    @property
    def steps(self) -> int:
        return self.iterations

    def settings(self) -> Mapping[str, Setting]:
        """All settings, as JSON values."""
        return asdict(self)

    def planned(self) -> list[PlannedRelease]:
        """All of the budget goes to the gradients."""
        return [PlannedRelease("gradient", Quantity.GRADIENT, self.iterations, Fraction(1))]


def noisy_descent(
    curator: Curator,
    settings: DescentSettings,
    *,
    project: Callable[[Floats], Floats],
    report_progress: Callable[[int], None],
) -> Point:
    """``theta_t = project(theta_{t-1} - eta (gradient + noise))`` from ``theta_0 = 0``.

    Parameters
    ----------
    curator : Curator
        Answers T questions for the release ``gradient``.
    settings : DescentSettings
        T, eta and tau.
    project : callable
        Applied to the coefficients after each step; the intercept is left alone.
    report_progress : callable
        Called with the number of steps done, before each step and at the end.

    Returns
    -------
    Point
        The last iterate.
    """
    point = Point(np.zeros(curator.n_features), 0.0)
    for done in range(settings.iterations):
        report_progress(done)
        gradient = curator.gradient("gradient", point, clip=settings.residual_clip)
        with np.errstate(over="ignore", invalid="ignore"):
            moved = saturated(point.coefficients - settings.step_size * gradient.coefficients)
            intercept = saturated(
                np.array([point.intercept - settings.step_size * gradient.intercept])
            )
        point = Point(project(moved), float(intercept[0]))
    report_progress(settings.iterations)
    return point


def saturated(values: Floats) -> Floats:
    """Finite whatever the step: a diverged model is a poor one, not a crash after the charge."""
    return np.fmin(np.fmax(values, -_LARGEST), _LARGEST)  # fmax turns NaN into a bound
