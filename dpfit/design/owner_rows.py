"""Rows grouped by the privacy unit that owns them, and sums over units, each one's clipped.

A unit, a person for instance, contributes the sum of its rows times their multipliers: an integer
vector, exact and the same in whatever order the rows were read. It is shrunk to a public length
before it is added to those of other units. Rows of a unit stand together in one chunk, so that in
each column its entries are neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.chunk import Chunk
from dpfit.design.local import LocalDesign
from dpfit.design.user_integers import bounded_vectors

Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class OwnerRows:
    """A design whose rows stand by unit.

    Attributes
    ----------
    design : LocalDesign
        No chunk of it ends within a unit.
    starts : int64 array, shape (n_owners + 1,)
        Unit i owns the rows ``starts[i]:starts[i + 1]``, at least one.
    """

    design: LocalDesign
    starts: Integers

    @property
    def n_owners(self) -> int:
        return len(self.starts) - 1

    def sums(self, multipliers: Integers, *, limit: float, bound: int) -> Integers:
        """Sums over units; the constant column's come last.

        Parameters
        ----------
        multipliers : int64 array, shape (n,) or (n, k)
            Of each row, so small that a unit's sums stay within 2^63.
        limit : float
            Longest norm of a unit's sums that is not shrunk, over all columns and classes.
        bound : int
            What it becomes, at most 2^26.

        Returns
        -------
        int64 array, shape (d + 1,) or (d + 1, k)
            To which each unit adds an integer vector of norm at most ``bound``.
        """
        part = partial(self._part, multipliers=multipliers, limit=limit, bound=bound)
        return self.design.sum_of_parts(part)

    def _part(
        self, chunks: Sequence[Chunk], *, multipliers: Integers, limit: float, bound: int
    ) -> Integers:
        total = np.zeros((self.design.n_features + 1, *multipliers.shape[1:]), np.int64)
        for chunk in chunks:
            of_chunk = _UnitsOfChunk(chunk, self._starts_in(chunk), self.design.intercept_integer)
            sums = of_chunk.clipped_sums(multipliers[chunk.positions], limit, bound)
            total[chunk.columns] += sums[:-1]
            total[-1] += sums[-1]
            chunk.release()
        return total

    def _starts_in(self, chunk: Chunk) -> Integers:
        rows = chunk.positions
        low, high = np.searchsorted(self.starts, [rows.start, rows.stop])
        return np.asarray(self.starts[low:high] - rows.start)


class _UnitsOfChunk:
    """Whole units: each has a slot for every column that it uses, and one for the constant.

    Parameters
    ----------
    chunk : Chunk
        Their rows; in each column entries follow each other by row.
    starts : int64 array, shape (m,)
        The first row of each unit.
    constant : int
        The integer in the intercept column.
    """

    def __init__(self, chunk: Chunk, starts: Integers, constant: int) -> None:
        self._rows = chunk.rows
        self._starts = starts
        self._constant = np.int64(constant)

    def clipped_sums(self, multipliers: Integers, limit: float, bound: int) -> Integers:
        """Sums by column of the chunk, the constant's last, of the units' shrunk vectors."""
        slots, owners = self._slots()
        values = self._sums_of_slots(slots, multipliers)
        of_constant = np.add.reduceat(multipliers, self._starts) * self._constant
        everything = np.concatenate([values, of_constant])
        n_units = len(self._starts)
        whose = np.concatenate([owners, np.arange(n_units)])
        classes = everything[0].size
        clipped = bounded_vectors(
            everything.astype(np.float64).ravel(),
            np.repeat(whose, classes) if classes > 1 else whose,
            n_units,
            limit=limit,
            bound=bound,
        ).reshape(everything.shape)
        by_column = np.searchsorted(slots, self._rows.indptr[:-1])
        sums = np.zeros((len(by_column) + 1, *clipped.shape[1:]), np.int64)
        if len(by_column):
            np.add.reduceat(clipped[:-n_units], by_column, out=sums[:-1])
        sums[-1] = clipped[-n_units:].sum(axis=0)
        return sums

    def _slots(self) -> tuple[Integers, Integers]:
        """Where the entries of each slot begin, and whose it is; the constant's are not among."""
        indices, indptr = self._rows.indices, self._rows.indptr
        owner_of_row = np.repeat(np.arange(len(self._starts)), self._lengths())
        owner_of_entry = owner_of_row[indices]
        begins = np.ones(len(indices), np.bool_)
        begins[1:] = owner_of_entry[1:] != owner_of_entry[:-1]
        begins[indptr[:-1]] = True  # every column of a chunk has an entry
        slots = np.flatnonzero(begins)
        return slots, owner_of_entry[slots]

    def _lengths(self) -> Integers:
        return np.diff(np.append(self._starts, self._rows.n_rows))

    def _sums_of_slots(self, slots: Integers, multipliers: Integers) -> Integers:
        """Exact: a unit has so few rows that no sum of theirs wraps."""
        data = self._rows.data
        if multipliers.ndim > 1:
            data = data[:, None]
        products = data * multipliers[self._rows.indices]
        return np.add.reduceat(products, slots) if len(slots) else products
