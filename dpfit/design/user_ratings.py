"""Ratings by user, as the private sums and the local solves walk over them."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_BLOCK_RATINGS: Final = 1 << 17
_BLOCK_USERS: Final = 1 << 12


@dataclass(frozen=True)
class UserBlock:
    """Ratings of consecutive users.

    Attributes
    ----------
    first : int
        Number of the first of them.
    indptr : int64 array, shape (n + 1,)
        User ``first + i`` owns the entries ``indptr[i]:indptr[i + 1]``.
    items : int32 array, shape (m,)
        Item of each rating.
    values : float64 array, shape (m,)
        Its value.
    users : int64 array, shape (m,)
        Its user, counted from ``first``.
    n_items : int
        Size of the item universe.
    """

    first: int
    indptr: Integers
    items: NDArray[np.int32]
    values: Floats
    users: Integers
    n_items: int

    @property
    def n_users(self) -> int:
        return len(self.indptr) - 1

    @property
    def rows(self) -> slice:
        """Where these users stand in an array over all users."""
        return slice(self.first, self.first + self.n_users)

    def matrix(self, entries: NDArray[np.generic]) -> csr_matrix:
        """Users by items with ``entries`` where the ratings are."""
        shape = (self.n_users, self.n_items)
        return csr_matrix((entries, self.items, self.indptr), shape=shape, copy=False)

    def sums(self, entries: Floats) -> Floats:
        """Each user's sum, added in the order of the user's ratings, wherever they stand."""
        summed = np.bincount(self.users, weights=entries, minlength=self.n_users)
        return summed.astype(np.float64, copy=False)

    @property
    def counts(self) -> Integers:
        """How many ratings each user has."""
        return np.diff(self.indptr)


@dataclass(frozen=True)
class UserRatings:
    """All ratings, by user and within a user by item, each pair at most once.

    Attributes
    ----------
    indptr : int64 array, shape (n_users + 1,)
        User i owns the entries ``indptr[i]:indptr[i + 1]``.
    items : int32 array, shape (n,)
        Item of each rating.
    values : float64 array, shape (n,)
        Its value, finite.
    n_items : int
        Size of the item universe.
    mappings : tuple of mmap
        The files in which items and values are, if they are in some.
    """

    indptr: Integers
    items: NDArray[np.int32]
    values: Floats
    n_items: int
    mappings: tuple[mmap.mmap, ...] = ()

    @property
    def n_users(self) -> int:
        return len(self.indptr) - 1

    @property
    def bytes_held(self) -> int:
        """What stands in memory, not in a file."""
        return self.indptr.nbytes + (0 if self.mappings else self.items.nbytes + self.values.nbytes)

    def blocks(self) -> Iterator[UserBlock]:
        """Users in order, as many at a time as keeps the arrays of a block small."""
        first = 0
        while first < self.n_users:
            full = np.searchsorted(self.indptr, self.indptr[first] + _BLOCK_RATINGS, side="right")
            stop = int(np.clip(full - 1, first + 1, min(first + _BLOCK_USERS, self.n_users)))
            yield self.block(first, stop)
            for mapping in self.mappings:  # what is needed again is read again
                mapping.madvise(mmap.MADV_DONTNEED)
            first = stop

    def block(self, first: int, stop: int) -> UserBlock:
        """Users ``first`` to ``stop``, exclusive."""
        start, end = int(self.indptr[first]), int(self.indptr[stop])
        indptr = self.indptr[first : stop + 1] - start
        users = np.repeat(np.arange(stop - first), np.diff(indptr))
        return UserBlock(
            first, indptr, self.items[start:end], self.values[start:end], users, self.n_items
        )
