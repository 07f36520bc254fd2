"""Ratings on their way from the readers to the private sums."""

from __future__ import annotations

import numpy as np

from dpfit.data.ratings_by_user import RatingsByUser
from dpfit.design.user_ratings import UserRatings


def private_ratings(
    ratings: RatingsByUser, value_range: tuple[float, float], *, n_users: int, n_items: int
) -> UserRatings:
    """The records of a completion: a user is one, with one value for each item at most.

    Parameters
    ----------
    ratings : RatingsByUser
        As read, from the first user on.
    value_range : (float, float)
        Public bounds of a rating, the lower first; values outside are clipped to them.
    n_users, n_items : int
        Public numbers, above every code; users beyond those read have no ratings.

    Raises
    ------
    ValueError
        A code is outside its range.
    """
    items = ratings.items
    if ratings.n_users > n_users or (len(items) and not 0 <= items.min() <= items.max() < n_items):
        raise ValueError("a code is outside its range")
    low, high = value_range
    indptr = np.full(n_users + 1, len(items), np.int64)
    indptr[: len(ratings.indptr)] = ratings.indptr
    return UserRatings(indptr, items, np.fmin(np.fmax(ratings.values, low), high), n_items)
