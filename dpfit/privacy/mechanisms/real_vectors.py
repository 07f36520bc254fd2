"""Random real vectors as floats that stand for exact ones.

The samplers give ``floor(2^54 X)`` of an exact X. A float made of it is a pure function of X whose
distance from X is bounded, so what is computed from the float is a function of the exact X with a
bounded error; :mod:`dpfit.privacy.minimiser_release` pays for that error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.privacy.mechanisms.noise import Noise

Floats: TypeAlias = NDArray[np.float64]

_BITS: Final = 54
_ERROR: Final = 2.0**-50  # of a coordinate, of an absolute one; eight times what two roundings do


@dataclass(frozen=True)
class RealVector:
    """Floats near an exact random vector.

    Attributes
    ----------
    values : float64 array, shape (size,)
        The floats.
    error : float
        A bound on their l2 distance from the exact vector.
    """

    values: Floats
    error: float

    def times(self, scale: float) -> RealVector:
        """The vector times a positive number; the rounding is within the error's reserve."""
        return RealVector(scale * self.values, scale * self.error)


def gaussian_vector(noise: Noise, size: int, next_step: Callable[[], int]) -> RealVector:
    """Independent standard normal coordinates.

    Parameters
    ----------
    noise : Noise
        The run's exact noise.
    size : int
        Length.
    next_step : callable
        Gives each draw its own step number.
    """
    return _middles(noise.integers(_BITS, size, next_step()))


def laplace_vector(noise: Noise, size: int, next_step: Callable[[], int]) -> RealVector:
    """Independent Laplace coordinates of scale 1."""
    return _middles(noise.laplace(_BITS, size, next_step()))


def spherical_vector(noise: Noise, size: int, next_step: Callable[[], int]) -> RealVector:
    """A vector with density proportional to ``exp(-|b|_2)``.

    Its length is a sum of ``size`` exponential variables and its direction that of a normal vector.
    No normal vector is drawn again, however short: floats would decide which, and bend the law. A
    short one has a large error instead.
    """
    length = math.fsum(np.abs(laplace_vector(noise, size, next_step).values))
    direction = gaussian_vector(noise, size, next_step)
    norm = math.sqrt(math.fsum(direction.values * direction.values))
    if norm == 0.0:  # without noise; with it, never within any radius
        return RealVector(np.zeros(size), math.inf if length else _ERROR * size)
    error = _ERROR * (size + length) + 2.0 * length * direction.error / norm
    return RealVector(direction.values * (length / norm), error)


def _middles(integers: NDArray[np.int64]) -> RealVector:
    """The middle of each interval that an exact value was cut to; zero without noise.

    Each is off by at most 2^-53 and 2^-53 of itself.
    """
    values = np.zeros(len(integers))
    if integers.any():
        values = np.ldexp(integers.astype(np.float64) + 0.5, -_BITS)
    norm = float(np.linalg.norm(values))
    return RealVector(values, _ERROR * (math.sqrt(len(integers)) + norm))
