"""Ratings on their way from the readers to the private sums."""

from __future__ import annotations

from typing import Final

import numpy as np

from dpfit.data.ratings_by_user import AllRatings
from dpfit.design.user_ratings import UserRatings
from dpfit.files.nameless import NamelessFile

_NO_ITEMS: Final = np.zeros(0, np.int32)


def private_ratings(
    ratings: AllRatings,
    value_range: tuple[float, float],
    *,
    n_users: int,
    n_items: int,
    folder: str | None = None,
) -> UserRatings:
    """The records of a completion: a user is one, with one value for each item at most.

    Parameters
    ----------
    ratings : AllRatings
        As read, from the first user on.
    value_range : (float, float)
        Public bounds of a rating, the lower first; values outside are clipped to them.
    n_users, n_items : int
        Public numbers, above every code; users beyond those read have no ratings.
    folder : str, optional
        Where a nameless file may hold them.

    Raises
    ------
    ValueError
        A code is outside its range.
    DataError, StorageError
        A pair is repeated; the disk is full or fails.
    """
    if ratings.n_users > n_users:
        raise ValueError("a code is outside its range")
    files = None if folder is None else (NamelessFile(folder), NamelessFile(folder))
    low, high = value_range
    counts, items, values = [np.zeros(1, np.int64)], [_NO_ITEMS], [np.zeros(0)]
    for part in ratings.parts():
        if len(part.items) and not 0 <= part.items.min() <= part.items.max() < n_items:
            raise ValueError("a code is outside its range")
        counts.append(np.diff(part.indptr))
        clipped = np.fmin(np.fmax(part.values, low), high)
        if files is None:
            items, values = [part.items], [clipped]
        else:
            files[0].write(part.items.view(np.uint8).data)
            files[1].write(clipped.view(np.uint8).data)
    counts.append(np.zeros(n_users - ratings.n_users, np.int64))
    indptr = np.cumsum(np.concatenate(counts))
    if files is None or not indptr[-1]:
        return UserRatings(indptr, items[0], values[0], n_items)
    maps = tuple(file.mapped() for file in files)
    for file in files:
        file.close()
    return UserRatings(
        indptr, np.frombuffer(maps[0], np.int32), np.frombuffer(maps[1], np.float64), n_items, maps
    )
