"""The law of the selected sets, against closed forms of the exponential mechanism.

The keys are fixed, so these tests never flake; for a fresh key each test fails with probability
below 1e-9 (counts by exact binomial tails, shared out over the bins). Band and block do not matter
for the law: test_top_k_exact.py shows that they change no choice.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, permutations
from math import exp

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, nchypergeom_wallenius

from dpfit.privacy.mechanisms.top_k import GumbelTopK
from dpfit.privacy.random_bits import BitSource, RunKey

LEVEL = 1e-9


@pytest.fixture(
    scope="module",
    params=[10_000, pytest.param(500_000, marks=pytest.mark.slow)],
)
def n_draws(request: pytest.FixtureRequest) -> int:
    size: int = request.param
    return size


@cache
def draws(
    scores: tuple[int, ...], k: int, scale_bits: int, n_draws: int, *, signed: bool = False
) -> NDArray[np.int64]:
    """One selection in each of the steps 0, 1, ..."""
    selector = GumbelTopK(BitSource(RunKey.from_seed(2026)))
    values = np.array(scores, np.int64)
    select = selector.select_signed if signed else selector.select
    return np.array([select(values, k, scale_bits, step) for step in range(n_draws)])


def check_counts(counts: NDArray[np.int64], probability: NDArray[np.float64]) -> None:
    """Every count lies between the binomial tails of its probability."""
    total = counts.sum()
    level = LEVEL / (2 * len(counts))
    assert abs(probability.sum() - 1) < 1e-9
    assert (binom.cdf(counts, total, probability) > level).all()
    assert (binom.sf(counts - 1, total, probability) > level).all()


def set_probability(weights: list[float], chosen: tuple[int, ...]) -> float:
    """Draws without replacement, each proportional to the weights left, in any order."""
    probability = 0.0
    for order in permutations(chosen):
        share, left = 1.0, sum(weights)
        for j in order:
            share *= weights[j] / left
            left -= weights[j]
        probability += share
    return probability


CASES = [
    ((3, 2, 0, 0), 2, 1),
    ((3, 2, 0, 0), 1, 1),
    ((3, 2, 0, 0), 3, 1),
    ((0, -1, -1, -(2**62)), 2, 0),
    ((1 << 40, 0, -1 << 38, 1 << 39, 5), 2, 39),
]


@pytest.mark.parametrize(("scores", "k", "scale_bits"), CASES)
def test_every_set(scores: tuple[int, ...], k: int, scale_bits: int, n_draws: int) -> None:
    """Each set's frequency is its probability under the exponential mechanism."""
    weights = [exp((q - max(scores)) / 2**scale_bits) for q in scores]
    sets = list(combinations(range(len(scores)), k))
    codes = (1 << draws(scores, k, scale_bits, n_draws)).sum(axis=1)
    counts = np.array([(codes == sum(1 << j for j in chosen)).sum() for chosen in sets])
    assert counts.sum() == n_draws
    check_counts(counts, np.array([set_probability(weights, chosen) for chosen in sets]))


def test_signed_vertices(n_draws: int) -> None:
    """k = 1 over +q and -q: probabilities proportional to exp(+-q / beta)."""
    scores = (3, -2, 0)
    weights = np.exp(np.array([3, -2, 0, -3, 2, 0]) / 2)
    counts = np.bincount(draws(scores, 1, 1, n_draws, signed=True)[:, 0], minlength=6)
    check_counts(counts, weights / weights.sum())


@pytest.mark.parametrize("scale_bits", [0, 1])
def test_two_groups(scale_bits: int) -> None:
    """How many of 30 better scores are among 40 chosen of 120: Wallenius' hypergeometric law."""
    scores = (1,) * 30 + (0,) * 90
    chosen = draws(scores, 40, scale_bits, 10_000)
    counts = np.bincount((chosen < 30).sum(axis=1), minlength=31)
    law = nchypergeom_wallenius(120, 30, 40, exp(2.0**-scale_bits))
    check_counts(counts, law.pmf(np.arange(31)))


def test_every_position_is_alike() -> None:
    """Equal scores over several blocks: every stretch of positions is chosen equally often.

    Sampling without replacement varies less than the binomial law it is checked by.
    """
    size, k = 100_000, 500
    selector = GumbelTopK(BitSource(RunKey.from_seed(2026)), block=1 << 12)
    scores = np.zeros(size, np.int64)
    chosen = np.concatenate([selector.select(scores, k, 0, step) for step in range(300)])
    counts = np.bincount(chosen * 250 // size, minlength=250)
    check_counts(counts, np.full(250, 1 / 250))
    for divisor in (2, 3, 64):
        counts = np.bincount(chosen % divisor, minlength=divisor)
        expected = np.bincount(np.arange(size) % divisor, minlength=divisor) / size
        check_counts(counts, expected)


@pytest.mark.parametrize("lag", [1, 2, 16, 1 << 14])
def test_steps_are_independent(n_draws: int, lag: int) -> None:
    """The winners of steps t and t + lag: all pairs at the product of their probabilities."""
    scores = (3, 2, 0, 0)
    winners = draws(scores, 1, 1, n_draws)[:, 0]
    weights = np.exp(np.array(scores) / 2)
    share = weights / weights.sum()
    # Two disjoint halves of the pairs, so that no draw occurs twice in a count.
    starts = np.arange(n_draws - lag)
    starts = starts[starts // lag % 2 == 0]
    pairs = winners[starts] * 4 + winners[starts + lag]
    check_counts(np.bincount(pairs, minlength=16), np.outer(share, share).ravel())


@pytest.mark.parametrize("behind", [4, 8])
def test_far_behind(behind: int, n_draws: int) -> None:
    """A candidate `behind` beta behind wins against one other with odds e^-behind."""
    wins = draws((behind, 0), 1, 0, n_draws).sum()
    loss = 1 / (1 + exp(-behind))
    check_counts(np.array([n_draws - wins, wins]), np.array([loss, 1 - loss]))
