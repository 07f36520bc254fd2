"""Random real vectors as floats that stand for exact ones.

The samplers give ``floor(2^54 X)`` of an exact X. A float made of it is a pure function of X whose
distance from X is bounded, so what is computed from the float is a function of the exact X with a
bounded error; :mod:`dpfit.privacy.minimiser_release` pays for that error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.privacy.mechanisms.noise import Noise

Floats: TypeAlias = NDArray[np.float64]

_BITS: Final = 54
_RELATIVE: Final = 2.0**-46
_EACH: Final = 2.0**-52
_SHORTEST: Final = 2.0**-6  # of the root of their size: normal vectors below it are drawn again


def gaussian_vector(noise: Noise, size: int, next_step: Callable[[], int]) -> Floats:
    """Independent standard normal coordinates, each off by at most 2^-53 and 2^-53 of itself.

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


def laplace_vector(noise: Noise, size: int, next_step: Callable[[], int]) -> Floats:
    """Independent Laplace coordinates of scale 1, each off by at most 2^-53 and 2^-53 of itself."""
    return _middles(noise.laplace(_BITS, size, next_step()))


def spherical_vector(noise: Noise, size: int, next_step: Callable[[], int]) -> Floats:
    """A vector with density proportional to ``exp(-|b|_2)``.

    Its length is a sum of ``size`` exponential variables and its direction that of a normal vector,
    which does not depend on that vector's length: short ones are drawn again, so that the errors of
    their coordinates are small against the vector's length.
    """
    length = math.fsum(np.abs(laplace_vector(noise, size, next_step)))
    if length == 0.0:  # without noise
        return np.zeros(size)
    while True:
        direction = gaussian_vector(noise, size, next_step)
        norm = math.sqrt(math.fsum(direction * direction))
        if norm >= _SHORTEST * math.sqrt(size):
            return direction * (length / norm)


def error_bound(vector: Floats) -> float:
    """A bound on the l2 distance of any of these vectors from the exact one it stands for.

    Both parts count: a short vector has the errors of its coordinates, a long one its roundings.
    """
    return _RELATIVE * float(np.linalg.norm(vector)) + _EACH * len(vector) if vector.any() else 0.0


def _middles(integers: NDArray[np.int64]) -> Floats:
    """The middle of each interval that an exact value was cut to; zero without noise."""
    if not integers.any():
        return np.zeros(len(integers))
    return np.ldexp(integers.astype(np.float64) + 0.5, -_BITS)
