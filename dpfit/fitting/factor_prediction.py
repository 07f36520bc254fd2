"""Predictions for users from their own ratings and the released quantities of the items.

Everything here happens where the ratings are: what comes out for a user depends on that user's own
ratings and on the model, and is for that user only. Who has no ratings gets the released means of
the items, be it as a stranger to the file or since coefficients without ratings are zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.data.id_table import IdTable
from dpfit.data.pairs import Pairs
from dpfit.data.ratings_by_user import RatingsByUser
from dpfit.files.factor_model import FactorModel
from dpfit.fitting.user_solve import UserSolver

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_CELLS: Final = 1 << 21  # of a table of users by items that is held at a time: 16 MiB


@dataclass(frozen=True)
class Suggestions:
    """Items that users have not rated, those of a user together, the best first.

    Attributes
    ----------
    user : int64 array, shape (m,)
        Code of the user among those of the ratings.
    item : int64 array, shape (m,)
        Row of the item in the model.
    value : float64 array, shape (m,)
        The predicted rating, within the range.
    """

    user: Integers
    item: Integers
    value: Floats


@dataclass(frozen=True)
class PairErrors:
    """How far predictions are from given ratings.

    Attributes
    ----------
    pairs : int
        How many were compared.
    rmse : float
        Root of the mean squared difference.
    mae : float
        Mean absolute difference.
    """

    pairs: int
    rmse: float
    mae: float


class FactorPredictor:
    """Predicts with a factor model.

    Parameters
    ----------
    model : FactorModel
        Codes of items count its rows.
    solver : UserSolver
        For the same model.
    """

    def __init__(self, model: FactorModel, solver: UserSolver) -> None:
        self._model = model
        self._solver = solver

    def pairs(self, parts: Iterable[RatingsByUser], users: IdTable, pairs: Pairs) -> Floats:
        """The predicted rating of each pair, in the order of the pairs, within the range.

        Parameters
        ----------
        parts : iterable of RatingsByUser
            Of all users, as by `rating_parts`.
        users : IdTable
            The users of the ratings; it may grow while the parts come.
        pairs : Pairs

        Returns
        -------
        float64 array, shape (n,)
        """
        predicted = self._model.item_means[pairs.item]
        order = np.argsort(pairs.user, kind="stable")
        ordered = pairs.user[order]
        for part in parts:
            names = users.texts[part.first_user : part.first_user + part.n_users]
            asked = pairs.users.find(names)
            start = np.searchsorted(ordered, asked, side="left")
            length = np.searchsorted(ordered, asked, side="right") - start
            if not length.any():
                continue
            rows = np.repeat(np.arange(part.n_users), length)
            at = order[_ranges(start, length)]
            coefficients = self._solver.coefficients(part)
            predicted[at] = self._solver.predict(coefficients, rows, pairs.item[at])
        return np.asarray(np.clip(predicted, *self._model.value_range))

    def top(self, parts: Iterable[RatingsByUser], n: int) -> Iterator[Suggestions]:
        """The ``n`` items of the highest prediction for each user, those already rated left out.

        Items of equal prediction go by their row in the model.

        Parameters
        ----------
        parts : iterable of RatingsByUser
        n : int
            At least 1; a user gets fewer if the user has rated nearly all.

        Yields
        ------
        Suggestions
            Of consecutive users.
        """
        step = max(1, _CELLS // len(self._model.items))
        for part in parts:
            for start in range(0, part.n_users, step):
                yield self._suggestions(part.part(start, min(start + step, part.n_users)), n)

    def _suggestions(self, ratings: RatingsByUser, n: int) -> Suggestions:
        scores = self._solver.predict_all(self._solver.coefficients(ratings))
        scores[ratings.rows, ratings.items] = -np.inf
        item = _largest(scores, min(n, scores.shape[1]))
        value = np.take_along_axis(scores, item, axis=1)
        user = np.broadcast_to(np.arange(len(item))[:, np.newaxis], item.shape)
        left = value > -np.inf
        return Suggestions(
            user[left] + ratings.first_user,
            item[left],
            np.clip(value[left], *self._model.value_range),
        )


def pair_errors(predicted: Floats, values: Floats) -> PairErrors:
    """Compare predictions with ratings, both of shape (n,); what overflows is infinite."""
    with np.errstate(over="ignore"):
        difference = predicted - values
        rmse = float(np.sqrt(np.mean(difference**2)))
        return PairErrors(len(values), rmse, float(np.mean(np.abs(difference))))


def _ranges(start: Integers, length: Integers) -> Integers:
    """The numbers ``start_i, ..., start_i + length_i - 1`` of each i, one after another."""
    before = np.cumsum(length) - length
    return np.repeat(start - before, length) + np.arange(length.sum())


def _largest(scores: Floats, k: int) -> Integers:
    """Columns of the ``k`` largest entries of each row, largest first, ties by column."""
    n_columns = scores.shape[1]
    threshold = np.partition(scores, n_columns - k, axis=1)[:, n_columns - k, np.newaxis]
    above, level = scores > threshold, scores == threshold
    missing = k - above.sum(axis=1, keepdims=True)
    chosen = above | (level & (np.cumsum(level, axis=1) <= missing))
    columns = np.nonzero(chosen)[1].reshape(len(scores), k)
    values = np.take_along_axis(scores, columns, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    return np.asarray(np.take_along_axis(columns, order, axis=1))
