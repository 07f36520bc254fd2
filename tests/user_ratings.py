"""Small matrices of ratings for tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfit.data import ratings_by_user
from dpfit.data.ratings import RatingBlock
from dpfit.data.ratings_by_user import RatingsByUser
from dpfit.design.user_ratings import UserRatings
from dpfit.fitting.matrix_fit import MatrixFit
from dpfit.fitting.matrix_request import MatrixRequest
from dpfit.privacy.rating_records import private_ratings


@dataclass(frozen=True)
class Triplets:
    """Ratings in file order."""

    user: NDArray[np.int64]
    item: NDArray[np.int64]
    value: NDArray[np.float64]

    def by_user(self, n_users: int) -> RatingsByUser:
        """As the readers leave them; of a repeated pair the last rating counts."""
        block = RatingBlock(self.user, self.item, self.value, "-", None, None)
        return ratings_by_user._by_user([block], 0, n_users, "last")


def triplets(users: list[dict[int, float]]) -> Triplets:
    """Ratings of users given as items with their values."""
    rows = [(i, j, value) for i, user in enumerate(users) for j, value in user.items()]
    user, item, value = zip(*rows, strict=True) if rows else ((), (), ())
    return Triplets(np.array(user, np.int64), np.array(item, np.int64), np.array(value, np.float64))


def collected(
    users: list[dict[int, float]], n_items: int, value_range: tuple[float, float] = (1.0, 5.0)
) -> UserRatings:
    """The same as private records."""
    return records(triplets(users), (len(users), n_items), value_range)


def records(
    ratings: Triplets, shape: tuple[int, int], value_range: tuple[float, float] = (1.0, 5.0)
) -> UserRatings:
    """The private records of a matrix of that shape."""
    n_users, n_items = shape
    by_user = ratings.by_user(n_users)
    return private_ratings(by_user, value_range, n_users=n_users, n_items=n_items)


def matrix_fit(request: MatrixRequest, ratings: Triplets, shape: tuple[int, int]) -> MatrixFit:
    """A completion of a matrix of that shape, planned."""
    n_users, n_items = shape
    return MatrixFit(request, ratings.by_user(n_users), n_items=n_items, source="films.csv")


def planted(
    n_users: int, n_items: int, rank: int, noise: float, share: float, seed: int = 5
) -> tuple[Triplets, NDArray[np.float64]]:
    """A low-rank matrix with biases, seen in part and with noise; and its truth."""
    rng = np.random.default_rng(seed)
    truth = 3.0 + 0.4 * rng.standard_normal((n_users, 1)) + 0.4 * rng.standard_normal(n_items)
    truth = truth + rng.standard_normal((n_users, rank)) @ rng.standard_normal((rank, n_items)) * (
        0.5 / rank**0.5
    )
    users, items = np.nonzero(rng.random(truth.shape) < share)
    values = truth[users, items] + noise * rng.standard_normal(len(users))
    return Triplets(users, items, values), truth
