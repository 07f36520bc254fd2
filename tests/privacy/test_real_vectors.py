"""Floats that stand for exact random vectors are as near to them as they say."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dpfit.privacy.conversion import sqrt_up
from dpfit.privacy.mechanisms.noise import NoNoise
from dpfit.privacy.mechanisms.real_vectors import (
    RealVector,
    gaussian_vector,
    laplace_vector,
    spherical_vector,
)

Integers = NDArray[np.int64]
TOP = Fraction(1, 1 << 54)


class _Scripted(NoNoise):
    """Hands out given integers, as many as asked."""

    def __init__(self, normal: list[int], laplace: list[int]) -> None:
        self._normal, self._laplace = normal, laplace

    def integers(self, scale_bits: int, size: int, step: int) -> Integers:
        return np.array(self._normal)

    def laplace(self, scale_bits: int, size: int, step: int) -> Integers:
        return np.array(self._laplace)


def _distance(vector: RealVector, exact: list[Fraction]) -> float:
    pairs = zip(vector.values.tolist(), exact, strict=True)
    return sqrt_up(sum(((Fraction(near) - x) ** 2 for near, x in pairs), Fraction(0)))


CASES = ([1, 0], [-1, 3], [2**20, -(2**19)], [2**53 + 1, -(2**54) + 3], [2**59 + 1, 5], [7, 2**61])


@pytest.mark.parametrize("integers", CASES)
@pytest.mark.parametrize("draw", [gaussian_vector, laplace_vector])
def test_coordinates(
    draw: Callable[[_Scripted, int, Callable[[], int]], RealVector], integers: list[int]
) -> None:
    """Both ends of the interval that each integer stands for lie within the error."""
    vector = draw(_Scripted(integers, integers), 2, lambda: 0)
    for end in (0, 1):
        exact = [(integer + end) * TOP for integer in integers]
        assert _distance(vector, exact) <= vector.error


@pytest.mark.parametrize("normal", CASES)
@pytest.mark.parametrize("laplace", CASES)
def test_a_direction_with_a_length(normal: list[int], laplace: list[int]) -> None:
    """The error covers short directions, whose last digits are few, and short lengths."""
    vector = spherical_vector(_Scripted(normal, laplace), 2, lambda: 0)
    for first, second, end in ((0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)):
        direction = [(normal[0] + first) * TOP, (normal[1] + second) * TOP]
        norm = Fraction(sqrt_up(sum((x * x for x in direction), Fraction(0))))
        if norm == 0:
            continue
        length = sum((abs((integer + end) * TOP) for integer in laplace), Fraction(0))
        assert _distance(vector, [x * length / norm for x in direction]) <= vector.error


def test_no_direction_is_no_vector() -> None:
    """A normal vector of zeros has no direction: nothing made of it is near anything."""
    assert spherical_vector(_Scripted([0, 0], [5, 5]), 2, lambda: 0).error == np.inf
    assert spherical_vector(NoNoise(), 2, lambda: 0).error < 1e-14
