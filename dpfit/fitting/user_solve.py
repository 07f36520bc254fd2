"""Each user's own part of a completed matrix, from released item quantities and own ratings.

This happens where the ratings are: what comes out is for the user who gave them.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.algorithms.factor_outcome import FactorOutcome
from dpfit.data.ratings_by_user import RatingsByUser
from dpfit.design.local_ridge import pair_scores
from dpfit.privacy.rating_records import private_ratings

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_LARGEST: Final = 1e100  # times any feature and added up, it stays finite


class UserSolver:
    """Local fits and predictions for batches of users.

    Parameters
    ----------
    outcome : FactorOutcome
        What was released.
    """

    def __init__(self, outcome: FactorOutcome) -> None:
        self._model = outcome.local_model()
        self._range = outcome.value_range

    def coefficients(self, ratings: RatingsByUser) -> Floats:
        """Offset, slopes and factor of each user, shape (n_users, 3 + r); zero without ratings.

        Parameters
        ----------
        ratings : RatingsByUser
            Their own ratings, inside the public range or not.

        Raises
        ------
        OverflowError
            The numbers of the model, or of a file that claims to be one, leave the range of floats.
        """
        own = private_ratings(
            ratings, self._range, n_users=ratings.n_users, n_items=len(self._model.features)
        )
        solved = self._model.solve(own)
        if not np.all(np.abs(solved) <= _LARGEST):
            raise OverflowError("a user's coefficient is not finite or too large")
        return solved

    def predict(self, coefficients: Floats, users: Integers, items: Integers) -> Floats:
        """Ratings of pairs, clipped to the public range, shape (m,).

        Parameters
        ----------
        coefficients : float64 array, shape (n_users, 3 + r)
            Of :meth:`coefficients`.
        users, items : int64 arrays, shape (m,)
            The pairs.
        """
        scores = pair_scores(coefficients, users, self._model.features, items)
        return np.clip(scores + self._model.baseline.take(items), *self._range)

    def predict_all(self, coefficients: Floats) -> Floats:
        """Scores of all items for each of a few users, shape (n_users, n_items).

        They are not clipped to the range: what lies beyond still ranks the items.
        """
        return np.asarray(coefficients @ self._model.features.T + self._model.baseline)
