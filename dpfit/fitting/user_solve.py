"""Each user's own part of a completed matrix, from released item quantities and own ratings.

This happens where the ratings are: what comes out is for the user who gave them.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.algorithms.factor_outcome import FactorOutcome
from dpfit.design.local_ridge import pair_products, pair_scores, solve_block
from dpfit.design.user_ratings import UserRatings

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


class OwnRatings(Protocol):
    """Ratings of a batch of users, in compressed sparse row form; each pair at most once."""

    @property
    def indptr(self) -> Integers:
        """User i owns the entries ``indptr[i]:indptr[i + 1]``."""

    @property
    def items(self) -> NDArray[np.signedinteger]:
        """Row of each rating's item in the model."""

    @property
    def values(self) -> Floats:
        """Finite, inside the public range or not."""


class UserSolver:
    """Local fits and predictions for batches of users.

    Parameters
    ----------
    outcome : FactorOutcome
        What was released.
    """

    def __init__(self, outcome: FactorOutcome) -> None:
        self._model = outcome.local_model()
        self._products = pair_products(self._model.features)
        self._range = outcome.value_range

    def coefficients(self, own: OwnRatings) -> Floats:
        """Offset, slopes and factor of each user, shape (n_users, 3 + r); zero without ratings.

        Parameters
        ----------
        own : OwnRatings
            What they rated.
        """
        low, high = self._range
        model = self._model
        items = own.items.astype(np.int32)
        ratings = UserRatings(own.indptr, items, own.values, len(model.baseline))
        solved = np.zeros((ratings.n_users, len(model.ridges)))
        for block in ratings.blocks():
            target = np.clip(block.values, low, high) - model.baseline.take(block.items)
            solved[block.rows] = solve_block(
                block,
                target,
                model.features,
                self._products,
                model.ridges,
                threshold=model.threshold,
            )
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
        """Ratings of all items by each of a few users, shape (n_users, n_items).

        They are not clipped: what lies beyond the range still ranks the items.
        """
        return np.asarray(coefficients @ self._model.features.T + self._model.baseline)
