"""Peeling: its law, its privacy on the integer grid and its rule for ties."""

from __future__ import annotations

from itertools import count, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom

from dpfit.design.grid import Grid, RowMap
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.mechanisms.laplace import LaplaceNoise
from dpfit.privacy.mechanisms.noise import NoNoise
from dpfit.privacy.mechanisms.peeling import peel
from dpfit.privacy.mechanisms.strip_tables import STRIP_BITS, STRIP_LIMIT
from dpfit.privacy.peeling_release import plan_peeling
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.random_bits import BitSource, RunKey

LEVEL = 1e-9


def tail(z: NDArray[np.int64], scale: int) -> NDArray[np.float64]:
    """P(floor(scale X) >= z) = P(scale X >= z)."""
    far = 0.5 * np.exp(-np.abs(z) / scale)
    return np.where(z > 0, far, 1.0 - far)


def win_probability(scores: list[int], j: int, scale: int) -> float:
    """Chance that j has the largest of scores + floor(scale X), the lower index at ties."""
    z = np.arange(-40 * scale, 40 * scale)
    chance = tail(z, scale) - tail(z + 1, scale)
    for i, score in enumerate(scores):
        if i != j:  # i < j must be strictly below, i > j may be level
            chance = chance * (1.0 - tail(scores[j] + z - score + (i > j), scale))
    return float(chance.sum())


def order_probability(scores: tuple[int, ...], order: tuple[int, ...], scale: int) -> float:
    """Chance that peeling takes these columns in this order."""
    probability, left = 1.0, list(range(len(scores)))
    for j in order:
        position = left.index(j)
        probability *= win_probability([scores[i] for i in left], position, scale)
        left.remove(j)
    return probability


@pytest.mark.parametrize("scores", [(40, 0, 10), (64, 64, 0), (5, 5, 5)])
def test_real_noise_has_the_exact_law(scores: tuple[int, ...]) -> None:
    """Each set of two of three columns is peeled as often as its closed form says.

    The key is fixed; a fresh one fails with probability below 1e-9 (exact binomial tails).
    """
    noise, steps = LaplaceNoise(BitSource(RunKey.from_seed(11))), count()
    values, runs = np.array(scores, np.int64), 5_000
    left_out = [
        int(3 - peel(values, 2, lambda: noise.integers(STRIP_BITS, 3, next(steps))).sum())
        for _ in range(runs)
    ]
    counts = np.bincount(left_out, minlength=3)
    scale = 1 << STRIP_BITS
    law = np.zeros(3)
    for order in permutations(range(3), 2):
        law[3 - sum(order)] += order_probability(scores, order, scale)
    assert law.sum() == pytest.approx(1.0, abs=1e-9)
    assert (binom.cdf(counts, runs, law) > LEVEL / 6).all()
    assert (binom.sf(counts - 1, runs, law) > LEVEL / 6).all()


@pytest.mark.parametrize("scale", [1, 2, 7])
def test_a_round_is_as_private_as_charged_even_at_ties(scale: int) -> None:
    """Every order's odds move by at most e^(2 D_inf / b) a round, and by nearly that somewhere."""
    worst, scores, orders = 0.0, (2, 2, 1), list(permutations(range(3), 2))
    before = {order: order_probability(scores, order, scale) for order in orders}
    for move in product((-1, 0, 1), repeat=3):
        moved = tuple(q + m for q, m in zip(scores, move, strict=True))
        for order in orders:
            odds = np.log(order_probability(moved, order, scale) / before[order])
            worst = max(worst, abs(odds))
    assert worst <= 2 * (2 / scale) * (1 + 1e-9)
    far = 20 * scale
    least, most = (win_probability(list(q), 0, scale) for q in ((0, far), (1, far - 1)))
    assert np.log(most / least) == pytest.approx(2 / scale, rel=0.06)


def test_ties_go_to_the_lower_index_and_nobody_is_taken_twice() -> None:
    """With given noise the rounds are what the rule says."""
    rounds = iter([[0, 3, 3, 0], [9, 0, 0, 9], [0, -99, 0, 0]])
    chosen = peel(np.zeros(4, np.int64), 3, lambda: np.array(next(rounds)))
    assert chosen.tolist() == [0, 1, 2]  # 1, then 0, then 2 before 3
    assert next(rounds, None) is None


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=12), st.data())
def test_without_noise_it_chooses_what_the_one_shot_selection_does(
    scores: list[int], data: st.DataObject
) -> None:
    """The k largest, the first index among equals."""
    k = data.draw(st.integers(0, len(scores)))
    values, silent = np.array(scores, np.int64), NoNoise()
    peeled = peel(values, k, lambda: silent.laplace(6, len(values), 0))
    assert peeled.tolist() == silent.choose(values, k, 6, 0).tolist()


def test_no_noisy_score_wraps_around() -> None:
    """Scores below 1.5 x 2^62 and the longest deviate of the coarsest scale stay inside int64."""
    grid = Grid(1.0, RowMap.NORMALIZE, 20, True)
    planned = PlannedRelease("support", Quantity.SELECTION, 1000, 1, 1000, laplace=True)
    release = plan_peeling(planned, grid, unit_bits=20, rho=1e-6, adjacency=Adjacency.REPLACE_ONE)
    longest = (STRIP_LIMIT >> STRIP_BITS) << release.scale_bits
    assert release.scale_bits == 52
    assert 3 * 2**61 + longest < 2**63
