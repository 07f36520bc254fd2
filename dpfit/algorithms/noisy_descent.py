"""Gradient steps with noise, each followed by a projection: the loop that several papers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfit.algorithms.base import Setting
from dpfit.algorithms.mean_rate import before_descent, curvature_of, released_rate
from dpfit.privacy.curator import Curator
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.point import Point
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
    contraction_of_rates : float or None
        Of counts: eta times the curvature, at most. Scores start at the logarithm of the released
        mean rate, which also bounds the curvature.
    joint_rows : bool
        Whether the classes of a multinomial model share their s columns.
    """

    sparsity: int | None
    iterations: int
    step_size: float
    residual_clip: float
    contraction_of_rates: float | None = field(default=None, kw_only=True)
    joint_rows: bool = field(default=False, kw_only=True)

    @property
    def steps(self) -> int:
        return self.iterations

    def settings(self) -> Mapping[str, Setting]:
        """All settings, as JSON values; what is off is left out."""
        values = asdict(self)
        if self.contraction_of_rates is None:
            del values["contraction_of_rates"]
        return {name: value for name, value in values.items() if value is not False}

    def planned(self) -> list[PlannedRelease]:
        """All of the budget goes to the gradients, but for what the start takes."""
        start, left = before_descent(self.contraction_of_rates is not None)
        gradient = PlannedRelease(
            "gradient",
            Quantity.GRADIENT,
            self.iterations,
            left,
            residual_clip=self.residual_clip,
        )
        return [*start, gradient]

    def start(self, curator: Curator) -> tuple[Point, float]:
        """Where the descent begins, and eta."""
        if self.contraction_of_rates is None:
            return curator.zero_point(0.0), self.step_size
        mean, offset = released_rate(curator)
        longest = self.contraction_of_rates / curvature_of(mean)
        return curator.zero_point(offset), min(self.step_size, longest)


def noisy_descent(
    curator: Curator,
    settings: DescentSettings,
    *,
    project: Callable[[Point, int], Point],
    report_progress: Callable[[int], None],
) -> Point:
    """``theta_t = project(theta_{t-1} - eta (gradient + noise))`` from ``theta_0 = 0``.

    Scores begin at zero too, or at the logarithm of the released mean rate if the settings say so.

    Parameters
    ----------
    curator : Curator
        Answers T questions for the release ``gradient``.
    settings : DescentSettings
        T, eta and tau.
    project : callable
        Applied to the model after each step, with the number of steps done.
    report_progress : callable
        Called with the number of steps done, before each step and at the end.

    Returns
    -------
    Point
        The last iterate.
    """
    point, step_size = settings.start(curator)
    for done in range(settings.iterations):
        report_progress(done)
        gradient = curator.gradient("gradient", point, clip=settings.residual_clip)
        point = project(stepped(point, gradient, step_size), done + 1)
    report_progress(settings.iterations)
    return point


def stepped(point: Point, gradient: Point, step_size: float) -> Point:
    """``point - eta gradient``, finite whatever eta is.

    A diverged model is a poor one, not a crash after the charge.
    """
    return Point(
        _moved(point.coefficients, gradient.coefficients, step_size),
        _moved(point.intercept, gradient.intercept, step_size),
        point.offset,
    )


def _moved(values: ArrayLike, slopes: ArrayLike, step_size: float) -> Floats:
    """In one new array: over all columns a step would else take longer than its noise."""
    with np.errstate(over="ignore", invalid="ignore"):
        moved = np.atleast_1d(np.multiply(slopes, -step_size))
        moved += values
    np.clip(moved, -_LARGEST, _LARGEST, out=moved)
    np.copyto(moved, -_LARGEST, where=np.isnan(moved))
    return moved.reshape(np.shape(slopes))[()]  # a number where there was one
