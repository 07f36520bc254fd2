"""Each user's own regression: right, and the same bits wherever the user stands."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

from dpfit.design import user_ratings
from dpfit.design.local_ridge import fitted, pair_products, solve_block
from dpfit.design.user_ratings import UserRatings
from user_ratings import Triplets, records

N_ITEMS = 60
WIDE = (-100.0, 100.0)  # clips nothing
RNG = np.random.default_rng(3)
FEATURES = np.hstack([np.ones((N_ITEMS, 1)), RNG.standard_normal((N_ITEMS, 10))])
RIDGES = np.linspace(0.5, 6.0, 11)


def random_ratings(n_users: int, seed: int = 0) -> UserRatings:
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((n_users, N_ITEMS)) < rng.random((n_users, 1)))
    values = rng.standard_normal(len(users)) * 3.0
    return records(Triplets(users, items, values), (n_users, N_ITEMS), WIDE)


def solved(ratings: UserRatings, threshold: float | None = None) -> np.ndarray:
    products = pair_products(FEATURES)
    parts = [
        solve_block(block, block.values, FEATURES, products, RIDGES, threshold=threshold)
        for block in ratings.blocks()
    ]
    return np.concatenate(parts)


def test_it_is_ridge_regression() -> None:
    """For each user as numpy solves it, an empty one at zero."""
    ratings = random_ratings(40)
    for i, found in enumerate(solved(ratings)):
        own = slice(ratings.indptr[i], ratings.indptr[i + 1])
        rows = FEATURES[ratings.items[own]]
        gram = rows.T @ rows + np.diag(RIDGES)
        expected = np.linalg.solve(gram, rows.T @ ratings.values[own])
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_huber_weights_shrink_the_influence_of_outliers() -> None:
    """Reweighting comes close to where Huber's objective is least."""
    ratings = random_ratings(40)
    block = ratings.block(0, 40)

    def objective(coefficients: np.ndarray) -> np.ndarray:
        size = np.abs(block.values - fitted(block, coefficients, FEATURES))
        losses = np.where(size <= 1.0, size**2 / 2, size - 0.5)
        return block.sums(losses) + (RIDGES * coefficients**2).sum(axis=1) / 2

    plain, robust = solved(ratings), solved(ratings, 1.0)
    assert (objective(robust) <= objective(plain) + 1e-12).all()
    for step in np.random.default_rng(1).standard_normal((20, *robust.shape)):
        gain = objective(robust) - objective(robust + 0.05 * step)
        assert (gain < 0.05 * np.maximum(objective(robust), 1.0)).all()


@pytest.mark.parametrize("threshold", [None, 1.0])
def test_bits_do_not_depend_on_who_stands_beside(threshold: float | None) -> None:
    """Any part of the users, in any blocks, gets the coefficients it had among all."""
    ratings = random_ratings(200)
    expected = solved(ratings, threshold)
    with (
        patch.object(user_ratings, "_BLOCK_RATINGS", 700),
        patch.object(user_ratings, "_BLOCK_USERS", 13),
    ):
        np.testing.assert_array_equal(expected, solved(ratings, threshold))
    kept = np.flatnonzero(np.arange(200) % 3 != 1)
    owners = np.repeat(np.arange(200), np.diff(ratings.indptr))
    part = np.isin(owners, kept)
    left = Triplets(
        np.searchsorted(kept, owners[part]),
        ratings.items[part].astype(np.int64),
        ratings.values[part],
    )
    fewer = records(left, (len(kept), N_ITEMS), WIDE)
    np.testing.assert_array_equal(expected[kept], solved(fewer, threshold))
