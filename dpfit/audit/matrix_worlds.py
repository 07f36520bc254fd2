"""Two synthetic neighbouring matrices of ratings that are far apart.

Every user rates every item; the users, one after the other, all at the bottom and all at the top of
the range. The canary is the last user: at the bottom in the first world and at the top in the
second, or under add-remove only in the second.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpfit.audit.worlds import SOURCE
from dpfit.data.ratings_by_user import RatingsByUser
from dpfit.fitting.matrix_fit import MatrixFit
from dpfit.fitting.matrix_request import MatrixRequest
from dpfit.privacy.adjacency import Adjacency


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
    level = np.where(np.arange(users) % 2 == 0, low, high)
    level[-1] = low
    present = level.copy()
    present[-1] = high
    if request.adjacency is Adjacency.ADD_REMOVE:
        level = level[:-1]
    return _fit(request, level, items), _fit(request, present, items)


def _fit(request: MatrixRequest, level: np.ndarray, items: int) -> MatrixFit:
    users = len(level)
    ratings = RatingsByUser(
        first_user=0,
        indptr=np.arange(0, users * items + 1, items, dtype=np.int64),
        items=np.tile(np.arange(items, dtype=np.int32), users),
        values=np.repeat(level, items),
    )
    return MatrixFit(request, ratings, n_items=items, source=SOURCE)
