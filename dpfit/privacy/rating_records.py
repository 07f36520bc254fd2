"""Ratings on their way from the readers to the private sums."""

from __future__ import annotations

from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.user_ratings import UserRatings, by_user

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_LARGEST_CODE: Final = 2**31 - 1


class Triplets(Protocol):
    """A block of ratings as read."""

    @property
    def user(self) -> Integers:
        """Code of each rating's user, from 0."""
        ...

    @property
    def item(self) -> Integers:
        """Code of its item, from 0."""
        ...

    @property
    def value(self) -> Floats | None:
        """Its value, finite."""
        ...


class RatingCollector:
    """Takes blocks as they are read, clips their values and ends with ratings by user.

    Of several ratings of one item by one user the LAST in file order counts, and no other has any
    influence: a user is one record, so each pair must have one value.

    Parameters
    ----------
    value_range : (float, float)
        Public bounds of a rating, the lower first; values outside are clipped to them.
    """

    def __init__(self, value_range: tuple[float, float]) -> None:
        self._range = value_range
        self._users: list[NDArray[np.int32]] = []
        self._items: list[NDArray[np.int32]] = []
        self._values: list[Floats] = []

    def add(self, block: Triplets) -> None:
        """Keep a block; its codes must be below 2^31."""
        low, high = self._range
        assert block.value is not None, "the reader was not asked for values"
        for codes in (block.user, block.item):
            if len(codes) and (codes.min() < 0 or codes.max() > _LARGEST_CODE):
                raise ValueError("a code is outside its range")
        self._users.append(block.user.astype(np.int32))
        self._items.append(block.item.astype(np.int32))
        self._values.append(np.fmin(np.fmax(block.value, low), high))

    def build(self, n_users: int, n_items: int) -> UserRatings:
        """All ratings, by user.

        Parameters
        ----------
        n_users, n_items : int
            Public numbers, above every code.
        """
        users, items = _joined(self._users), _joined(self._items)
        values = np.concatenate([np.zeros(0), *self._values])
        if len(users) and (users.max() >= n_users or items.max() >= n_items):
            raise ValueError("a code is outside its range")
        return by_user(users, items, values, n_users=n_users, n_items=n_items)


def _joined(parts: list[NDArray[np.int32]]) -> Integers:
    return np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64)
