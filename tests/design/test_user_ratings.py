"""Ratings by user: blocks."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpfit.design import user_ratings
from user_ratings import Triplets, records

PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.floats(-9, 9)), max_size=30)


@given(PAIRS, st.integers(1, 7), st.integers(1, 3))
def test_blocks_hold_every_user_once(
    rows: list[tuple[int, int, float]], ratings: int, users: int
) -> None:
    """Blocks of whole users follow each other, whatever their size, empty users included."""
    given = Triplets(
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.int64),
        np.array([row[2] for row in rows], np.float64),
    )
    kept = records(given, (5, 4), (-9.0, 9.0))
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
