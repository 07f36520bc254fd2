"""Ratings on their way to the private sums."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from dpfit.data.ratings_by_user import RatingsByUser
from dpfit.privacy.rating_records import private_ratings
from user_ratings import Triplets, records, triplets


def test_values_are_clipped_and_the_last_of_a_pair_counts() -> None:
    """The last in file order, whatever stood before; users who are only declared have none."""
    given = [triplets([{0: 1e308, 1: 2.0}, {1: -1e308}]), triplets([{1: 4.0}])]
    user, item, value = (
        np.concatenate([getattr(part, name) for part in given])
        for name in ("user", "item", "value")
    )
    ratings = records(Triplets(user, item, value), (3, 2))
    assert ratings.indptr.tolist() == [0, 2, 3, 3]
    assert ratings.values.tolist() == [5.0, 4.0, 1.0]
    assert ratings.items.dtype == np.int32


@pytest.mark.parametrize(("users", "item"), [(4, 0), (1, 2), (1, -1)])
def test_codes_out_of_range_are_refused(users: int, item: int) -> None:
    """A code that is no user or item is a fault of the reader."""
    block = Triplets(np.array([0]), np.array([item]), np.array([3.0]))
    with pytest.raises(ValueError, match="range"):
        private_ratings(block.by_user(users), (1.0, 5.0), n_users=3, n_items=2)


def test_nothing_is_a_matrix_too() -> None:
    """No ratings at all: users without any."""
    ratings = records(triplets([]), (2, 3))
    assert ratings.indptr.tolist() == [0, 0, 0]
    assert ratings.n_users == 2


def test_parts_held_in_memory_are_all_kept() -> None:
    """However many parts the ratings come in."""

    class Parts:
        n_users = 2

        def parts(self) -> Iterator[RatingsByUser]:
            whole = triplets([{0: 1.0, 1: 2.0}, {1: 3.0}]).by_user(2)
            yield whole.part(0, 1)
            yield whole.part(1, 2)

    ratings = private_ratings(Parts(), (1.0, 5.0), n_users=2, n_items=2)
    assert ratings.indptr.tolist() == [0, 2, 3]
    assert (ratings.items.tolist(), ratings.values.tolist()) == ([0, 1, 1], [1.0, 2.0, 3.0])
