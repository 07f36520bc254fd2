"""Pairs of user and item that predictions are asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfit.data.id_table import IdTable
from dpfit.data.ratings import RatingReader


@dataclass(frozen=True)
class Pairs:
    """Pairs in the order of the file; one may occur several times.

    Attributes
    ----------
    users : IdTable
        Those who occur.
    user : int64 array, shape (n,)
        Code in ``users``.
    item : int64 array, shape (n,)
        Code in the reader's table of items.
    value : float64 array, shape (n,), or None
        The ratings to compare with.
    """

    users: IdTable
    user: NDArray[np.int64]
    item: NDArray[np.int64]
    value: NDArray[np.float64] | None


def read_pairs(reader: RatingReader) -> Pairs:
    """All pairs of an input; memory is that of the pairs.

    Raises
    ------
    DataError
        What reading raises.
    """
    blocks = list(reader)
    values = [block.value for block in blocks if block.value is not None]
    return Pairs(
        reader.users,
        np.concatenate([block.user for block in blocks]),
        np.concatenate([block.item for block in blocks]),
        np.concatenate(values) if values else None,
    )
