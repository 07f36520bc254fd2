"""Gradient steps with noise, each followed by a projection: the loop that several papers share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.privacy.curator import Curator, Point

Floats: TypeAlias = NDArray[np.float64]

_LARGEST: Final = 1e150  # squares of it stay finite


def noisy_descent(
    curator: Curator,
    *,
    iterations: int,
    step_size: float,
    residual_clip: float,
    project: Callable[[Floats], Floats],
    report_progress: Callable[[int], None],
) -> Point:
    """``theta_t = project(theta_{t-1} - eta (gradient + noise))`` from ``theta_0 = 0``.

    Parameters
    ----------
    curator : Curator
        Answers ``iterations`` questions for the release ``gradient``.
    iterations : int
        T.
    step_size : float
        eta.
    residual_clip : float
        tau.
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
    for done in range(iterations):
        report_progress(done)
        gradient = curator.gradient("gradient", point, clip=residual_clip)
        with np.errstate(over="ignore", invalid="ignore"):
            moved = saturated(point.coefficients - step_size * gradient.coefficients)
            intercept = saturated(np.array([point.intercept - step_size * gradient.intercept]))
        point = Point(project(moved), float(intercept[0]))
    report_progress(iterations)
    return point


def saturated(values: Floats) -> Floats:
    """Finite whatever the step: a diverged model is a poor one, not a crash after the charge."""
    return np.fmin(np.fmax(values, -_LARGEST), _LARGEST)  # fmax turns NaN into a bound
