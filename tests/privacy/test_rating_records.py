"""Ratings from blocks to users."""

from __future__ import annotations

import numpy as np
import pytest

from dpfit.privacy.rating_records import RatingCollector
from user_ratings import Triplets, triplets


def test_values_are_clipped_and_the_last_of_a_pair_counts() -> None:
    """Across blocks too: the last in file order, whatever stood before."""
    collector = RatingCollector((1.0, 5.0))
    collector.add(triplets([{0: 1e308, 1: 2.0}, {1: -np.inf}]))
    collector.add(triplets([{1: 4.0}]))
    ratings = collector.build(3, 2)
    assert ratings.indptr.tolist() == [0, 2, 3, 3]
    assert ratings.values.tolist() == [5.0, 4.0, 1.0]


@pytest.mark.parametrize(("user", "item"), [(3, 0), (0, 2), (-1, 0), (0, -1), (2**31, 0)])
def test_codes_out_of_range_are_refused(user: int, item: int) -> None:
    """A code that is no user or item is a fault of the reader."""
    collector = RatingCollector((1.0, 5.0))
    block = Triplets(np.array([user]), np.array([item]), np.array([3.0]))

    def build() -> None:
        collector.add(block)
        collector.build(3, 2)

    with pytest.raises(ValueError, match="range"):
        build()


def test_nothing_is_a_matrix_too() -> None:
    """No ratings at all: users without any."""
    ratings = RatingCollector((1.0, 5.0)).build(2, 3)
    assert ratings.indptr.tolist() == [0, 0, 0]
    assert ratings.n_users == 2
