"""Two synthetic neighbouring matrices of ratings that are as far apart as users can be.

Every user rates every item in the middle of the range. The canary is the last user, who rates three
of four items at the top and the others at the bottom, so that every residual is at its bound
whatever constant of their own a user has: there with the opposite ratings in the first world, or
under add-remove only in the second. Other users without a pattern leave no factors that could
explain the canary's. With fewer items than ``--max-per-user`` a user weighs less than is charged.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from dpfit.audit.stand_ins import Floats
from dpfit.audit.worlds import SOURCE
from dpfit.data.ratings_by_user import RatingsByUser
from dpfit.fitting.matrix_fit import MatrixFit
from dpfit.fitting.matrix_request import MatrixRequest
from dpfit.privacy.adjacency import Adjacency

_BOTTOM: Final = 4  # one item of so many


def matrix_worlds(request: MatrixRequest, users: int, items: int) -> tuple[MatrixFit, MatrixFit]:
    """A completion of each world, planned.

    Parameters
    ----------
    request : MatrixRequest
        The configuration; the numbers of users and items are replaced.
    users, items : int
        Public size of both.

    Raises
    ------
    PrivacyError
        As the configuration's own run.
    """
    request = replace(request, n_users=users, n_items=items)
    low, high = request.value_range
    ratings = np.full((users, items), (low + high) / 2.0)
    canary = canary_ratings(request.value_range, items)
    present = np.vstack([ratings[:-1], canary])
    if request.adjacency is Adjacency.ADD_REMOVE:
        return _fit(request, ratings[:-1]), _fit(request, present)
    return _fit(request, np.vstack([ratings[:-1], low + high - canary])), _fit(request, present)


def canary_ratings(value_range: tuple[float, float], items: int) -> Floats:
    """Of every item."""
    low, high = value_range
    return np.where(np.arange(items) % _BOTTOM == _BOTTOM - 1, low, high)


def _fit(request: MatrixRequest, table: Floats) -> MatrixFit:
    users, items = table.shape
    ratings = RatingsByUser(
        first_user=0,
        indptr=np.arange(0, users * items + 1, items, dtype=np.int64),
        items=np.tile(np.arange(items, dtype=np.int32), users),
        values=table.ravel(),
    )
    return MatrixFit(request, ratings, n_items=items, source=SOURCE)
