"""Scores of a quantile: no record moves one by more than it is charged, and the best is near."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dense_rows import dense_design
from dpfit.design.grid import Grid, RowMap
from dpfit.losses.absolute import Absolute
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.curator import Curator
from dpfit.privacy.mechanisms.noise import ExactNoise, NoNoise
from dpfit.privacy.private_records import PrivateRecords
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.random_bits import BitSource, RunKey
from dpfit.privacy.selection_release import SelectionRelease, score_sensitivity
from dpfit.privacy.target_ranks import rank_scores, records_at_each, value_of

UNIT = 1000
STEPS = 1 << 14
VALUES = [0.0, 0.25, 0.25 + 0.3 / STEPS, 0.5, 1.0]
SENSITIVITY = score_sensitivity(Quantity.TARGET_RANKS, Grid(1.0, RowMap.CLIP, 20, True))


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.77])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_neighbour_moves_a_score_by_more_than_a_unit(quantile: float, n: int) -> None:
    """All small tables with ties; a replaced record, and one left out of the counts."""
    moved = {adjacency: 0 for adjacency in Adjacency}
    for target in itertools.product(VALUES, repeat=n):
        scores = rank_scores(records_at_each(np.array(target)), quantile, n, UNIT)
        fewer = rank_scores(records_at_each(np.array(target[1:])), quantile, n, UNIT)
        gap = int(np.abs(scores - fewer).max())
        moved[Adjacency.ADD_REMOVE] = max(moved[Adjacency.ADD_REMOVE], gap)
        for value in VALUES:
            other = rank_scores(records_at_each(np.array([value, *target[1:]])), quantile, n, UNIT)
            gap = int(np.abs(scores - other).max())
            moved[Adjacency.REPLACE_ONE] = max(moved[Adjacency.REPLACE_ONE], gap)
    for adjacency in Adjacency:
        assert moved[adjacency] <= UNIT * SENSITIVITY.under(adjacency)
    assert moved[Adjacency.REPLACE_ONE] == UNIT or n == 1


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=30),
    st.floats(0.01, 0.99),
    st.integers(1, 1 << 20),
)
def test_scores_count_the_records_on_the_wrong_side(
    target: list[float], quantile: float, unit: int
) -> None:
    """Against counts by definition; the largest score is at a quantile."""
    scores = rank_scores(records_at_each(np.array(target)), quantile, len(target), unit)
    places = np.rint(np.array(target) * STEPS)
    wanted = round(quantile * len(target) * unit)
    for candidate in {0, STEPS, STEPS // 3, *(int(place) for place in places)}:
        below, up_to = int((places < candidate).sum()), int((places <= candidate).sum())
        wrong = max(below * unit - wanted, wanted - up_to * unit, 0)
        assert scores[candidate] == -wrong
    best = int(np.argmax(scores))
    assert (places < best).sum() * unit <= wanted <= (places <= best).sum() * unit


@given(st.lists(st.floats() | st.just(np.nan), min_size=1, max_size=5))
def test_any_float_is_some_place(target: list[float]) -> None:
    """NaN and infinity count once, at an end of the range: no record counts twice or not at all."""
    scores = rank_scores(records_at_each(np.array(target)), 0.5, len(target), UNIT)
    assert scores.min() >= -UNIT * len(target)
    assert scores[0] <= 0
    assert scores[STEPS] <= 0
    assert scores.max() == 0


@pytest.mark.parametrize("quantile", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("noisy", [False, True])
def test_the_released_value_is_near_the_quantile(quantile: float, noisy: bool) -> None:
    """Through the Curator: no further off in rank than the noise allows, 1e-9 apart."""
    n = 3000
    target = np.random.default_rng(0).beta(2, 5, n)
    scale_bits = 14
    release = SelectionRelease("it", Quantity.TARGET_RANKS, SENSITIVITY, UNIT, scale_bits, 1, 1)
    curator = Curator(
        records=PrivateRecords(
            dense_design(np.ones((n, 1)), Grid(1.0, RowMap.CLIP, 20, True)), target
        ),
        loss=Absolute(),
        grid=Grid(1.0, RowMap.CLIP, 20, True),
        n_rows=n,
        releases=[release],
        noise=ExactNoise(BitSource(RunKey.from_seed(3))) if noisy else NoNoise(),
    )
    value = curator.target_quantile("it", quantile)
    # A candidate r records off wins by a Gumbel gap: 2^14 candidates, ln(1e9 2^14) = 31 scales.
    room = 31 * (1 << scale_bits) / UNIT if noisy else 1
    assert abs(np.mean(target <= value) * n - quantile * n) <= room + 20
    assert value_of(STEPS) == 1.0
    assert value_of(0) == 0.0


def test_the_count_that_is_wanted_is_of_the_public_number() -> None:
    """Under add-remove n stays where a record goes: only then do scores move by one unit."""
    scores = rank_scores(records_at_each(np.full(3, 0.5)), 0.9, 10, UNIT)
    assert scores[STEPS] == -(9 * UNIT - 3 * UNIT)
