"""What a histogram, and the independent digits of an exponential, can see of the strip sampler.

The keys are fixed, so these tests never flake. Each bound would fail with probability below 1e-9
(families of tests: together) for a fresh key: 6.5 standard deviations for families of up to ten,
6.6 for sixteen, 6.8 for up to ninety, 7.2 for up to two thousand. The exact law is proved in
test_strips_tables.py; here a gross error anywhere in the chain shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import log, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, poisson

from strip_laws import LAPLACE, NORMAL, Case, each_law, each_law_with

SCALE_BITS = 40
LEVEL = 1e-9
TEN, SIXTEEN, NINETY, THOUSANDS = 6.5, 6.6, 6.8, 7.2

only_laplace = pytest.mark.parametrize("case", [LAPLACE], ids=["laplace"])


def sample(
    case: Case,
    size: int,
    *,
    scale_bits: int = SCALE_BITS,
    seed: int = 2026,
    step: int = 0,
    first: int = 0,
) -> NDArray[np.int64]:
    return case.noise(seed).integers(scale_bits, size, step, first=first)


# A law's sample serves test after test.
kept_sample = lru_cache(maxsize=2)(sample)


@pytest.fixture(params=[5_000_000, pytest.param(50_000_000, marks=pytest.mark.slow)])
def values(case: Case, request: pytest.FixtureRequest) -> NDArray[np.int64]:
    return kept_sample(case, request.param)


def as_real(values: NDArray[np.int64], scale_bits: int = SCALE_BITS) -> NDArray[np.float64]:
    """Midpoints of the grid cells, in units of the scale."""
    return np.ldexp(values + 0.5, -scale_bits)


def magnitudes(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """floor(2^s |X|): a value is floor(2^s X), so a negative one is its complement."""
    return values ^ (values >> 63)


@each_law
def test_distribution_function(case: Case, values: NDArray[np.int64]) -> None:
    """Dvoretzky-Kiefer-Wolfowitz: sup |F_n - F| <= sqrt(ln(2 / level) / 2 n)."""
    size = len(values)
    probability = case.cdf(np.sort(as_real(values)))
    ranks = np.arange(size + 1) / size
    distance = max(np.max(ranks[1:] - probability), np.max(probability - ranks[:-1]))
    assert distance <= sqrt(log(2 / LEVEL) / (2 * size))


@each_law_with("moment", "moments")
def test_moments(case: Case, values: NDArray[np.int64], moment: tuple[int, int, int]) -> None:
    """E X^n within 6.5 standard deviations; the variance to 0.4 %, a wrong tail in n = 4 first."""
    power, expected, next_moment = moment
    mean = (as_real(values) ** power).mean()
    assert abs(mean - expected) <= TEN * sqrt((next_moment - expected**2) / len(values))


@each_law
def test_every_bin(case: Case, values: NDArray[np.int64]) -> None:
    """Counts of bins of width 2^-9 or 2^-8 and of both tails by exact binomial tails."""
    width_bits, end = case.bins
    half = end << width_bits
    bins = np.clip(values >> SCALE_BITS - width_bits, -half - 1, half) + half + 1
    counts = np.bincount(bins, minlength=2 * half + 2)
    edges = np.arange(-half, 1) / 2**width_bits
    lower = np.diff(np.concatenate([[0.0], case.cdf(edges)]))
    probability = np.concatenate([lower, lower[::-1]])
    level = LEVEL / (2 * len(counts))
    assert (binom.cdf(counts, len(values), probability) > level).all()
    assert (binom.sf(counts - 1, len(values), probability) > level).all()


@each_law_with("edge", "edges")
def test_tail_count(case: Case, values: NDArray[np.int64], edge: int) -> None:
    """Number of |X| > edge between the binomial (nearly Poisson) tails of level 1e-9."""
    count = int((np.abs(as_real(values)) > edge).sum())
    expected = 2 * case.cdf(-edge) * len(values)
    assert poisson.cdf(count, expected) > LEVEL / 2
    assert poisson.sf(count - 1, expected) > LEVEL / 2


@each_law
def test_low_bits_and_sign(case: Case, values: NDArray[np.int64]) -> None:
    """The magnitude's 24 low bits and the sign are fair to 6.8 / (2 sqrt n).

    So they are beyond the table, where all comes from the remainder. The density's slope biases
    bit b by less than 2^(b - 40) times its relative size, here under 2^-14.
    """
    far = values[np.abs(as_real(values)) > case.table_end]
    assert len(far) > case.cdf(-case.table_end) * len(values)  # half of what is expected
    for part in (values, far):
        ones = [np.count_nonzero(magnitudes(part) & 1 << bit) for bit in range(24)]
        for count in (*ones, np.count_nonzero(part < 0)):
            assert abs(count / len(part) - 0.5) <= NINETY / (2 * sqrt(len(part)))


@each_law
@pytest.mark.parametrize("lag", [1, 2, 3, 4, 64, 1 << 14, 1 << 15, 1 << 17])
def test_lags(case: Case, values: NDArray[np.int64], lag: int) -> None:
    """Correlation of coordinates `lag` apart is 0 within 6.6 / sqrt n, their sizes' too."""
    for series in case.scores(as_real(values)):
        product = np.dot(series[:-lag], series[lag:]) / (len(series) - lag)
        assert abs(product) <= SIXTEEN / sqrt(len(series) - lag)


@each_law
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
def test_other_draws_are_uncorrelated(case: Case, other: dict[str, int]) -> None:
    """Another step, key or range of coordinates: correlation 0 within 6.5 / sqrt n.

    No value is met again, nor anywhere among those beyond the table, which come from aux words;
    with 54 bits even millions of pairs are not equal by chance.
    """
    size, bits = 2_000_000, 54
    draws = [sample(case, size, scale_bits=bits), sample(case, size, scale_bits=bits, **other)]
    assert not (draws[0] == draws[1]).any()
    one, two = (case.scores(as_real(draw, bits))[0] for draw in draws)
    assert abs(np.dot(one, two) / size) <= TEN / sqrt(size)
    slow = [draw[np.abs(as_real(draw, bits)) > case.table_end][:2000] for draw in draws]
    assert min(map(len, slow)) > case.cdf(-case.table_end) * size  # half of what is expected
    assert not np.isin(slow[0], slow[1]).any()


# --- independent digits --------------------------------------------------------------------


def digits(values: NDArray[np.int64]) -> Iterator[tuple[float, NDArray[np.bool_]]]:
    """Binary digits of floor(2^s |X|), X Laplace, with the probability that they are 1.

    |X| is standard exponential, whose digits are independent: digit i is 1 with probability
    1 / (1 + exp(2^i / 2^s)). Digits too rare to test are left out.
    """
    whole = magnitudes(values)
    for i in range(SCALE_BITS + 4):
        probability = 1 / (1 + np.exp(2.0 ** (i - SCALE_BITS)))
        if probability * len(values) > 200:
            yield float(probability), (whole & 1 << i) != 0


@only_laplace
def test_every_digit(values: NDArray[np.int64]) -> None:
    """Each digit of the magnitude is 1 as often as the closed form says; the sign is fair."""
    counted = [(p, np.count_nonzero(digit)) for p, digit in digits(values)]
    counted.append((0.5, np.count_nonzero(values < 0)))
    assert len(counted) > SCALE_BITS + 2
    level = LEVEL / (2 * len(counted))
    for probability, ones in counted:
        assert binom.cdf(ones, len(values), probability) > level
        assert binom.sf(ones - 1, len(values), probability) > level


@only_laplace
def test_digits_are_independent(values: NDArray[np.int64]) -> None:
    """Any two digits, and a digit and the sign: covariance 0 within 7.2 standard deviations."""
    values = values[:1_000_000]
    counted = [(0.5, values < 0), *digits(values)]
    standard = np.array([(d - np.float32(p)) / np.float32(sqrt(p * (1 - p))) for p, d in counted])
    correlation = standard @ standard.T / np.float32(len(values))
    np.fill_diagonal(correlation, 0.0)
    assert np.abs(correlation).max() <= THOUSANDS / sqrt(len(values))


def test_kinds_of_noise_share_words() -> None:
    """Why a step serves one mechanism: Gaussian and Laplace noise of one step go together."""
    one, two = (as_real(sample(case, 10_000)) for case in (NORMAL, LAPLACE))
    assert np.corrcoef(one, two)[0, 1] > 0.3
