"""What a histogram can see of the Gaussian sampler.

The keys are fixed, so these tests never flake. Each bound would fail with probability below 1e-9
(families of tests: together) for a fresh key: 6.11 standard deviations two-sided, 6.5 for families
of up to ten, 6.8 for up to ninety. The exact law is proved in test_sampler_tables.py; here a gross
error anywhere in the chain shows.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom, poisson

from dpfit.privacy.mechanisms.gaussian import GaussianNoise
from dpfit.privacy.random_bits import BitSource, RunKey

SCALE_BITS = 40
LEVEL = 1e-9
ONE, TEN, NINETY = 6.11, 6.5, 6.8


def sample(size: int, *, seed: int = 2026, step: int = 0, first: int = 0) -> NDArray[np.int64]:
    source = GaussianNoise(BitSource(RunKey.from_seed(seed)))
    return source.integers(SCALE_BITS, size, step, first=first)


@pytest.fixture(
    scope="module",
    params=[5_000_000, pytest.param(50_000_000, marks=pytest.mark.slow)],
)
def values(request: pytest.FixtureRequest) -> NDArray[np.int64]:
    return sample(request.param)


def as_normal(values: NDArray[np.int64]) -> NDArray[np.float64]:
    """Midpoints of the grid cells, in standard deviations."""
    return np.ldexp(values + 0.5, -SCALE_BITS)


def correlation_bound(size: int, factor: float) -> float:
    return factor / sqrt(size)


def test_distribution_function(values: NDArray[np.int64]) -> None:
    """Dvoretzky-Kiefer-Wolfowitz: sup |F_n - F| <= sqrt(ln(2 / level) / 2 n)."""
    size = len(values)
    probability = ndtr(np.sort(as_normal(values)))
    ranks = np.arange(size + 1) / size
    distance = max(np.max(ranks[1:] - probability), np.max(probability - ranks[:-1]))
    assert distance <= sqrt(log(2 / LEVEL) / (2 * size))


def test_mean(values: NDArray[np.int64]) -> None:
    """Mean 0 with standard deviation 1 / sqrt(n)."""
    assert abs(as_normal(values).mean()) <= ONE / sqrt(len(values))


def test_variance(values: NDArray[np.int64]) -> None:
    """Variance 1 with standard deviation sqrt(2 / n): 0.4 % at 5e6, 0.12 % at 5e7."""
    variance = np.square(as_normal(values)).mean()
    assert abs(variance - 1) <= ONE * sqrt(2 / len(values))


def test_fourth_moment(values: NDArray[np.int64]) -> None:
    """E N^4 = 3, variance of N^4 is 96; a wrong tail shows here first."""
    fourth = (as_normal(values) ** 4).mean()
    assert abs(fourth - 3) <= ONE * sqrt(96 / len(values))


def test_every_bin(values: NDArray[np.int64]) -> None:
    """Counts of bins of width 2^-9 on (-5, 5) and both tails by exact binomial tails."""
    width_bits = 9
    half = 5 << width_bits
    bins = np.clip(values >> SCALE_BITS - width_bits, -half - 1, half) + half + 1
    counts = np.bincount(bins, minlength=2 * half + 2)
    edges = np.arange(-half, 1) / 2**width_bits
    lower = np.diff(np.concatenate([[0.0], ndtr(edges)]))
    probability = np.concatenate([lower, lower[::-1]])
    level = LEVEL / (2 * len(counts))
    assert (binom.cdf(counts, len(values), probability) > level).all()
    assert (binom.sf(counts - 1, len(values), probability) > level).all()


@pytest.mark.parametrize("edge", [3, 4, 5])
def test_tail_count(values: NDArray[np.int64], edge: int) -> None:
    """Number of |N| > edge between the binomial (nearly Poisson) tails of level 1e-9."""
    count = int((np.abs(as_normal(values)) > edge).sum())
    expected = 2 * ndtr(-edge) * len(values)
    assert poisson.cdf(count, expected) > LEVEL / 2
    assert poisson.sf(count - 1, expected) > LEVEL / 2


def test_low_bits_and_sign(values: NDArray[np.int64]) -> None:
    """The magnitude's 24 low bits and the sign are fair to 6.8 / (2 sqrt n), slow values' too.

    The density's slope biases bit b by less than 2^(b - 40) |z|, here under 2^-14.
    """
    for part in (values, values[np.abs(as_normal(values)) > 3.46875]):
        sign = part >> 63
        bits = [(part ^ sign) >> bit & 1 for bit in range(24)]
        for bit in (*bits, sign):
            assert abs(abs(bit.mean()) - 0.5) <= NINETY / (2 * sqrt(len(part)))


@pytest.mark.parametrize("lag", [1, 2, 3, 4, 64, 1 << 14, 1 << 15, 1 << 17])
def test_lags(values: NDArray[np.int64], lag: int) -> None:
    """Correlation of coordinates `lag` apart is 0 within 6.5 / sqrt n, squares' too."""
    normal = as_normal(values)
    square = (normal**2 - 1) / sqrt(2)
    for series in (normal, square):
        product = np.dot(series[:-lag], series[lag:]) / (len(series) - lag)
        assert abs(product) <= correlation_bound(len(series) - lag, TEN + 0.1)


@pytest.mark.parametrize(
    "other",
    [
        {"step": 1},
        {"step": 2**16},
        {"step": 2**31},
        {"seed": 2027},
        {"first": 5_000_000},
        {"first": 2**32},
        {"first": 2**39},
    ],
)
def test_other_draws_are_uncorrelated(other: dict[str, int]) -> None:
    """Another step, key or range of coordinates: correlation 0 within 6.5 / sqrt n."""
    size = 2_000_000
    one, two = as_normal(sample(size)), as_normal(sample(size, **other))
    assert abs(np.dot(one, two) / size) <= correlation_bound(size, TEN)
    assert not (one == two).any()


def test_slow_values_are_not_shared_between_steps() -> None:
    """Values beyond the table (|N| > 3.46) come from aux words, which depend on the step too."""
    slow = [v[np.abs(as_normal(v)) > 3.46875] for v in (sample(500_000, step=k) for k in (0, 1))]
    assert min(map(len, slow)) > 100
    assert not np.isin(slow[0], slow[1]).any()
