"""Ratings by user: repeated pairs, blocks."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpfit.design import user_ratings
from dpfit.design.user_ratings import by_user

PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.floats(-9, 9)), max_size=30)


@given(PAIRS)
def test_the_last_rating_of_a_pair_stays(rows: list[tuple[int, int, float]]) -> None:
    """What is kept is a dictionary filled in file order, sorted by user and item."""
    users, items, values = (
        (np.array(part) for part in zip(*rows, strict=True))
        if rows
        else (
            np.zeros(0, np.int64),
            np.zeros(0, np.int64),
            np.zeros(0),
        )
    )
    kept = by_user(users, items, values, n_users=5, n_items=4)
    expected = {(i, j): value for i, j, value in rows}
    owners = np.repeat(np.arange(5), np.diff(kept.indptr))
    found = list(zip(owners.tolist(), kept.items.tolist(), kept.values.tolist(), strict=True))
    assert found == [(i, j, expected[i, j]) for i, j in sorted(expected)]


@given(PAIRS, st.integers(1, 7), st.integers(1, 3))
def test_blocks_hold_every_user_once(
    rows: list[tuple[int, int, float]], ratings: int, users: int
) -> None:
    """Blocks of whole users follow each other, whatever their size, empty users included."""
    kept = by_user(
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.int64),
        np.array([row[2] for row in rows], np.float64),
        n_users=5,
        n_items=4,
    )
    with (
        patch.object(user_ratings, "_BLOCK_RATINGS", ratings),
        patch.object(user_ratings, "_BLOCK_USERS", users),
    ):
        blocks = list(kept.blocks())
    assert [block.first for block in blocks] == np.cumsum(
        [0, *(block.n_users for block in blocks[:-1])]
    ).tolist()
    assert sum(block.n_users for block in blocks) == 5
    assert np.concatenate([block.values for block in blocks]).tolist() == kept.values.tolist()
    counts = np.concatenate([block.counts for block in blocks])
    assert counts.tolist() == np.diff(kept.indptr).tolist()
    for block in blocks:
        assert block.users.tolist() == np.repeat(range(block.n_users), block.counts).tolist()
