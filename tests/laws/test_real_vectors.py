"""Random real vectors have their laws, to the bound on what floats make of them.

Statistics of many draws under fixed keys: each limit is passed with chance below 1e-9 by a sampler
that is right, and not by one whose scale is off by two per cent.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpfit.privacy.mechanisms.noise import ExactNoise, NoNoise
from dpfit.privacy.mechanisms.real_vectors import (
    gaussian_vector,
    laplace_vector,
    spherical_vector,
)
from dpfit.privacy.random_bits import BitSource, RunKey

CHANCE = 1e-10
LAWS = [gaussian_vector, laplace_vector, spherical_vector]
N = 40_000


def steps() -> Callable[[], int]:
    count = itertools.count()
    return lambda: next(count)


def exact(seed: int) -> ExactNoise:
    return ExactNoise(BitSource(RunKey.from_seed(seed)))


@pytest.mark.parametrize(
    ("draw", "law"), [(gaussian_vector, stats.norm), (laplace_vector, stats.laplace)]
)
def test_coordinates_have_their_law(draw: Callable, law: stats.rv_continuous) -> None:
    """Kolmogorov and Smirnov's distance, and the second moment."""
    values = draw(exact(1), N, steps()).values
    assert stats.kstest(values, law.cdf).pvalue > CHANCE
    deviation = math.sqrt(law.moment(4) - law.moment(2) ** 2) / math.sqrt(N)
    assert abs(np.mean(values**2) - law.moment(2)) < 6.5 * deviation


@pytest.fixture(scope="module")
def vectors() -> NDArray[np.float64]:
    """Draws of the l2 law in three dimensions."""
    noise, step = exact(2), steps()
    return np.array([spherical_vector(noise, 3, step).values for _ in range(6000)])


def test_lengths_of_the_l2_law_are_sums_of_exponentials(vectors: NDArray[np.float64]) -> None:
    """``|b|`` is Gamma distributed with as many degrees as there are coordinates."""
    lengths = np.linalg.norm(vectors, axis=1)
    assert stats.kstest(lengths, stats.gamma(3).cdf).pvalue > CHANCE
    assert abs(lengths.mean() - 3) < 6.5 * math.sqrt(3 / len(lengths))


def test_directions_of_the_l2_law_are_uniform(vectors: NDArray[np.float64]) -> None:
    """In three dimensions each coordinate of a direction is uniform on [-1, 1]; none are alike."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = vectors / lengths
    for along in (*np.eye(3), np.full(3, 1 / math.sqrt(3)), np.array([0.6, -0.8, 0.0])):
        uniform = stats.uniform(-1, 2)
        assert stats.kstest(directions @ along, uniform.cdf).pvalue > CHANCE
    products = directions[:, [0, 0, 1]] * directions[:, [1, 2, 2]]
    assert np.abs(products.mean(axis=0)).max() < 6.5 / math.sqrt(15 * len(vectors))


def test_length_and_direction_do_not_depend_on_each_other(vectors: NDArray[np.float64]) -> None:
    """Directions of the longest and of the shortest half have one law."""
    lengths = np.linalg.norm(vectors, axis=1)
    first = np.abs(vectors[:, 0]) / lengths
    longer = lengths > np.median(lengths)
    assert stats.ks_2samp(first[longer], first[~longer]).pvalue > CHANCE


@pytest.mark.parametrize("draw", LAWS)
def test_draws_are_fresh_and_without_noise_zero(draw: Callable) -> None:
    """Every draw has steps of its own; a run without noise has no vector and no error."""
    noise, step = exact(3), steps()
    first, second = draw(noise, 50, step).values, draw(noise, 50, step).values
    assert not set(first.tolist()) & set(second.tolist())
    assert not set(np.abs(first).tolist()) & set(np.abs(second).tolist())
    nothing = draw(NoNoise(), 50, steps())
    assert not nothing.values.any()
    assert nothing.error <= 2.0**-40


class Scripted:
    """Noise whose integers are given: the exact value is anywhere in ``[k, k + 1] / 2^bits``."""

    def __init__(self, normal: Iterator[list[int]], laplace: list[int]) -> None:
        self._normal, self._laplace = normal, laplace

    def integers(self, scale_bits: int, size: int, step: int) -> NDArray[np.int64]:
        assert scale_bits == 54
        return np.array(next(self._normal), np.int64)

    def laplace(self, scale_bits: int, size: int, step: int) -> NDArray[np.int64]:
        assert scale_bits == 54
        return np.array(self._laplace, np.int64)


def length_of(vector: list[Fraction]) -> float:
    return math.sqrt(sum(part * part for part in vector))


def root(value: Fraction) -> Fraction:
    """The square root to 200 bits."""
    return Fraction(math.isqrt(int(value * (1 << 400))), 1 << 200)


CASES = [
    [1 << 54, -(3 << 53)],
    [5, -7],
    [1 << 46, 3],
    [(1 << 57) + 1, 1 << 30],
    [-1, 0],
    [(1 << 48) + 12345, -(1 << 48)],
    [(1 << 59) + 1, 5],
    [7, 1 << 61],
]


@pytest.mark.parametrize("integers", CASES)
@pytest.mark.parametrize("ends", list(itertools.product((0, 1), repeat=2)))
def test_a_vector_is_as_near_its_exact_one_as_it_says(
    integers: list[int], ends: tuple[int, int]
) -> None:
    """At both ends of the cells in which the exact values may be; the bound is no length."""
    values = [Fraction(k + end, 1 << 54) for k, end in zip(integers, ends, strict=True)]
    noise = Scripted(iter([integers]), integers)
    for draw in (gaussian_vector, laplace_vector):
        noise = Scripted(iter([integers]), integers)
        vector = draw(noise, 2, steps())  # type: ignore[arg-type]
        off = [Fraction(x) - value for x, value in zip(vector.values.tolist(), values, strict=True)]
        largest = 2.0**-45 * max(1.0, np.linalg.norm(vector.values))
        assert length_of(off) <= vector.error <= largest


@pytest.mark.parametrize("lengths", CASES)
@pytest.mark.parametrize("direction", CASES)
@pytest.mark.parametrize("ends", list(itertools.product((0, 1), repeat=2)))
def test_a_spherical_vector_is_as_near_its_exact_one_as_it_says(
    lengths: list[int], direction: list[int], ends: tuple[int, int]
) -> None:
    """Also of directions from short normal vectors, whose errors are large."""
    noise = Scripted(iter([direction]), lengths)
    vector = spherical_vector(noise, 2, steps())  # type: ignore[arg-type]
    exactly = [Fraction(k + end, 1 << 54) for k, end in zip(direction, ends, strict=True)]
    length = sum(abs(Fraction(k + ends[0], 1 << 54)) for k in lengths)
    norm = root(sum((part * part for part in exactly), Fraction(0)))
    if norm == 0:
        return
    off = [
        Fraction(x) - part * length / norm
        for x, part in zip(vector.values.tolist(), exactly, strict=True)
    ]
    assert length_of(off) <= vector.error


def test_no_direction_is_no_vector() -> None:
    """A normal vector of zeros has no direction: nothing made of it is near anything."""
    noise = Scripted(iter([[0, 0]]), [5, 5])
    assert spherical_vector(noise, 2, steps()).error == math.inf  # type: ignore[arg-type]
