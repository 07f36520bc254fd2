"""Smooth forms of the absolute loss, for methods that need a minimiser which moves little.

Each is ``phi(r) + tilt r`` of the error ``r = y - score``, where ``phi`` is near ``|r|`` and
``tilt = 2 q - 1`` makes the minimiser a quantile q. The score function ``phi'`` stays within
[-1, 1].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np

from dpfit.losses.base import Floats

_FLOAT_ERROR: Final = 2.0**-48  # 16 roundings of numbers near 1


@dataclass(frozen=True)
class Smoothed(ABC):
    """What the two forms share.

    Attributes
    ----------
    quantile : float
        q, between 0 and 1.
    width : float
        Where the loss turns from a parabola to a line, on the scale of the mapped target.
    """

    quantile: float
    width: float

    name: ClassVar[str]

    @property
    def tilt(self) -> float:
        """``2 q - 1``, as floats round it."""
        return 2.0 * self.quantile - 1.0

    @property
    def largest_score(self) -> Fraction:
        """The bound on ``|phi' + tilt|``."""
        return 1 + abs(Fraction(self.tilt))

    @property
    def score_error(self) -> float:
        """A bound on the rounding errors of :meth:`score` as floats compute it from the margin.

        Where the score still moves with the error, the margin is no larger than a few units; its
        own roundings are amplified by the curvature, at most ``1 / width``.
        """
        return _FLOAT_ERROR * (1.0 + (4.0 + self.width) / self.width)

    @abstractmethod
    def score(self, error: Floats) -> Floats:
        """``phi'(r) + tilt``."""

    @abstractmethod
    def curvature(self, error: Floats) -> Floats:
        """``phi''(r)``, where it exists."""

    @abstractmethod
    def weight(self, error: Floats) -> Floats:
        """``phi'(r) / r``: the curvature of the parabola that touches ``phi`` from above at r.

        A least-squares problem with these weights is one step of reweighting, which never ends
        above where it began (Hunter and Lange, 2000).
        """


class HuberSmoothed(Smoothed):
    """Huber's function: ``r^2 / (2 g)`` for ``|r| <= g``, else ``|r| - g / 2``; g the width."""

    name = "huber"

    @property
    def largest_curvature(self) -> Fraction:
        return 1 / Fraction(self.width)

    def score(self, error: Floats) -> Floats:
        return np.fmin(np.fmax(error / self.width, -1.0), 1.0) + self.tilt

    def curvature(self, error: Floats) -> Floats:
        return np.where(np.abs(error) <= self.width, 1.0 / self.width, 0.0)

    def weight(self, error: Floats) -> Floats:
        return 1.0 / np.fmax(np.abs(error), self.width)


class LogSmoothed(Smoothed):
    """``|r| - e ln(1 + |r| / e)``, the loss that reweighted least squares minimise; e the width.

    Reweighting by ``1 / (|r| + e)`` has this fixed point (Hunter and Lange, 2000).
    """

    name = "log"

    def score(self, error: Floats) -> Floats:
        return error / (np.abs(error) + self.width) + self.tilt

    def curvature(self, error: Floats) -> Floats:
        return self.width / (np.abs(error) + self.width) ** 2

    def weight(self, error: Floats) -> Floats:
        return 1.0 / (np.abs(error) + self.width)
