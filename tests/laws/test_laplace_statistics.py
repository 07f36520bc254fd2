"""What a histogram, and the independent digits of an exponential, can see of the Laplace sampler.

The keys are fixed, so these tests never flake. Each bound would fail with probability below 1e-9
(families of tests: together) for a fresh key: 6.11 standard deviations two-sided, 6.5 for families
of up to ten, 7.2 for up to two thousand. The exact law is proved in test_laplace_tables.py; here a
gross error anywhere in the chain shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, laplace, poisson

from dpfit.privacy.mechanisms.gaussian import GaussianNoise
from dpfit.privacy.mechanisms.laplace import LaplaceNoise
from dpfit.privacy.random_bits import BitSource, RunKey

SCALE_BITS = 40
LEVEL = 1e-9
ONE, TEN, THOUSANDS = 6.11, 6.5, 7.2
# Values beyond this always come from the remainder.
TABLE_END = 6.234375


def sample(size: int, *, seed: int = 2026, step: int = 0, first: int = 0) -> NDArray[np.int64]:
    source = LaplaceNoise(BitSource(RunKey.from_seed(seed)))
    return source.integers(SCALE_BITS, size, step, first=first)


@pytest.fixture(
    scope="module",
    params=[3_000_000, pytest.param(50_000_000, marks=pytest.mark.slow)],
)
def values(request: pytest.FixtureRequest) -> NDArray[np.int64]:
    return sample(request.param)


def as_real(values: NDArray[np.int64]) -> NDArray[np.float64]:
    """Midpoints of the grid cells, in units of the scale."""
    return np.ldexp(values + 0.5, -SCALE_BITS)


def magnitudes(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """floor(2^s |X|): a value is floor(2^s X), so a negative one is its complement."""
    return values ^ (values >> 63)


def digits(values: NDArray[np.int64]) -> Iterator[tuple[float, NDArray[np.bool_]]]:
    """Binary digits of floor(2^s |X|) with the probability that they are 1.

    |X| is standard exponential, whose digits are independent: digit i is 1 with probability
    1 / (1 + exp(2^i / 2^s)). Digits too rare to test are left out.
    """
    whole = magnitudes(values)
    for i in range(SCALE_BITS + 4):
        probability = 1 / (1 + np.exp(2.0 ** (i - SCALE_BITS)))
        if probability * len(values) > 200:
            yield float(probability), (whole >> i & 1).astype(np.bool_)


def test_every_digit(values: NDArray[np.int64]) -> None:
    """Each digit of the magnitude is 1 as often as the closed form says; the sign is fair."""
    counted = [(p, int(digit.sum())) for p, digit in digits(values)]
    counted.append((0.5, int((values < 0).sum())))
    assert len(counted) > SCALE_BITS + 2
    level = LEVEL / (2 * len(counted))
    for probability, ones in counted:
        assert binom.cdf(ones, len(values), probability) > level
        assert binom.sf(ones - 1, len(values), probability) > level


def test_digits_are_independent(values: NDArray[np.int64]) -> None:
    """Any two digits, and a digit and the sign: covariance 0 within 7.2 standard deviations."""
    values = values[:1_000_000]
    counted = [(0.5, values < 0), *digits(values)]
    standard = np.array([(d - p) / sqrt(p * (1 - p)) for p, d in counted], np.float32)
    correlation = standard @ standard.T / np.float32(len(values))
    np.fill_diagonal(correlation, 0.0)
    assert np.abs(correlation).max() <= THOUSANDS / sqrt(len(values))


def test_large_values_have_fair_low_digits(values: NDArray[np.int64]) -> None:
    """Beyond the table all comes from the remainder; its low 24 digits and sign are fair."""
    large = values[np.abs(as_real(values)) > TABLE_END]
    assert len(large) > 3000
    for digit in [large < 0, *(magnitudes(large) >> i & 1 for i in range(24))]:
        assert abs(digit.mean() - 0.5) <= (TEN + 0.3) / (2 * sqrt(len(large)))


def test_distribution_function(values: NDArray[np.int64]) -> None:
    """Dvoretzky-Kiefer-Wolfowitz: sup |F_n - F| <= sqrt(ln(2 / level) / 2 n)."""
    size = len(values)
    probability = laplace.cdf(np.sort(as_real(values)))
    ranks = np.arange(size + 1) / size
    distance = max(np.max(ranks[1:] - probability), np.max(probability - ranks[:-1]))
    assert distance <= sqrt(log(2 / LEVEL) / (2 * size))


@pytest.mark.parametrize(
    ("power", "moment", "next_moment"), [(1, 0, 2), (2, 2, 24), (4, 24, 40320)]
)
def test_moments(values: NDArray[np.int64], power: int, moment: float, next_moment: float) -> None:
    """E X^n = n! for even n and 0 for odd ones."""
    mean = (as_real(values) ** power).mean()
    assert abs(mean - moment) <= TEN * sqrt((next_moment - moment**2) / len(values))


def test_every_bin(values: NDArray[np.int64]) -> None:
    """Counts of bins of width 2^-8 on (-8, 8) and both tails by exact binomial tails."""
    width_bits = 8
    half = 8 << width_bits
    bins = np.clip(values >> SCALE_BITS - width_bits, -half - 1, half) + half + 1
    counts = np.bincount(bins, minlength=2 * half + 2)
    edges = np.arange(-half, 1) / 2**width_bits
    lower = np.diff(np.concatenate([[0.0], laplace.cdf(edges)]))
    probability = np.concatenate([lower, lower[::-1]])
    level = LEVEL / (2 * len(counts))
    assert (binom.cdf(counts, len(values), probability) > level).all()
    assert (binom.sf(counts - 1, len(values), probability) > level).all()


@pytest.mark.parametrize("edge", [6, 8, 10, 12])
def test_tail_count(values: NDArray[np.int64], edge: int) -> None:
    """Number of |X| > edge between the binomial (nearly Poisson) tails of level 1e-9."""
    count = int((np.abs(as_real(values)) > edge).sum())
    expected = np.exp(-edge) * len(values)
    assert poisson.cdf(count, expected) > LEVEL / 2
    assert poisson.sf(count - 1, expected) > LEVEL / 2


@pytest.mark.parametrize("lag", [1, 2, 64, 1 << 15])
def test_lags(values: NDArray[np.int64], lag: int) -> None:
    """Correlation of coordinates `lag` apart is 0 within 6.6 / sqrt n, magnitudes' too."""
    real = as_real(values)
    for series in (real / sqrt(2), np.abs(real) - 1):
        product = np.dot(series[:-lag], series[lag:]) / (len(series) - lag)
        assert abs(product) <= (TEN + 0.1) / sqrt(len(series) - lag)


@pytest.mark.parametrize("other", [{"step": 1}, {"step": 2**31}, {"seed": 2027}, {"first": 2**32}])
def test_other_draws_are_uncorrelated(other: dict[str, int]) -> None:
    """Another step, key or range of coordinates: correlation 0 within 6.5 / sqrt n."""
    size = 1_000_000
    one, two = as_real(sample(size)), as_real(sample(size, **other))
    assert abs(np.dot(one, two) / 2 / size) <= TEN / sqrt(size)
    assert not (one == two).any()
    slow = [v[np.abs(v) > TABLE_END] for v in (one, two)]
    assert min(map(len, slow)) > 1000
    assert not np.isin(slow[0], slow[1]).any()


def test_kinds_of_noise_share_words() -> None:
    """Why a step serves one mechanism: Gaussian and Laplace noise of one step go together."""
    gaussian = GaussianNoise(BitSource(RunKey.from_seed(2026)))
    other = np.ldexp(gaussian.integers(SCALE_BITS, 10_000, 0), -SCALE_BITS)
    assert np.corrcoef(other, as_real(sample(10_000)))[0, 1] > 0.3
