"""Ratings on their way from the readers to the private sums."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpfit.data.ratings_by_user import AllRatings
from dpfit.design.user_ratings import UserRatings
from dpfit.files.nameless import NamelessFile

_Number = TypeVar("_Number", np.int32, np.float64)


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
    counts = [np.zeros(1, np.int64)]
    items, values = list[NDArray[np.int32]](), list[NDArray[np.float64]]()
    for part in ratings.parts():
        if len(part.items) and not 0 <= part.items.min() <= part.items.max() < n_items:
            raise ValueError("a code is outside its range")
        counts.append(np.diff(part.indptr))
        clipped = np.fmin(np.fmax(part.values, low), high)
        if files is None:
            items.append(part.items)
            values.append(clipped)
        else:
            files[0].write(part.items.view(np.uint8).data)
            files[1].write(clipped.view(np.uint8).data)
    counts.append(np.zeros(n_users - ratings.n_users, np.int64))
    indptr = np.cumsum(np.concatenate(counts))
    if files is None or not indptr[-1]:
        return UserRatings(indptr, _joined(items, np.int32), _joined(values, np.float64), n_items)
    maps = tuple(file.mapped() for file in files)
    for file in files:
        file.close()
    return UserRatings(
        indptr, np.frombuffer(maps[0], np.int32), np.frombuffer(maps[1], np.float64), n_items, maps
    )


def _joined(parts: list[NDArray[_Number]], kind: type[_Number]) -> NDArray[_Number]:
    """The parts in one array; no copy of a single one."""
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, kind), *parts])
