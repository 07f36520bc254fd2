"""Consecutive rows held by the columns that they use: the unit of storage of a design.

A gradient gathers a residual for every entry. Chunks keep the residuals that one needs at a time
few enough for the cache, and leave out the columns that no row of theirs uses.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.by_column import ByColumn
from dpfit.design.integer_point import IntegerPoint
from dpfit.design.mixing import mixed

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Integers: TypeAlias = NDArray[np.int64]
Columns: TypeAlias = NDArray[np.int32]

_WIDE: Final = 8  # columns an entry: beyond, counting the entries of each costs more than sorting


@dataclass(frozen=True)
class Pages:
    """A part of a mapped file that begins with a page."""

    mapping: mmap.mmap
    offset: int
    n_bytes: int

    def release(self) -> None:
        """Give back their memory; what is needed is read again."""
        self.mapping.madvise(mmap.MADV_DONTNEED, self.offset, self.n_bytes)


@dataclass(frozen=True)
class Chunk:
    """Some rows of a design.

    Attributes
    ----------
    first : int
        Which of the design's rows is the first.
    columns : int32 array, shape (u,)
        The columns with an entry, sorted.
    rows : ByColumn, shape (m, u)
        The rows on these columns.
    pages : Pages or None
        Where the arrays are, if they are in a file.
    """

    first: int
    columns: Columns
    rows: ByColumn
    pages: Pages | None = None

    @classmethod
    def of_rows(
        cls, first: int, lengths: Integers, columns: Columns, values: NDArray[np.int32]
    ) -> Chunk:
        """The chunk of rows in compressed row form; of each row the columns increase strictly."""
        width = int(columns.max()) + 1 if len(columns) else 0
        names, places = None, columns
        if width > _WIDE * len(columns):
            names, inverse = np.unique(columns, return_inverse=True)
            width, places = len(names), inverse.astype(np.int32)
        wide = ByColumn.of_rows(lengths, places, values, width)
        used = np.flatnonzero(np.diff(wide.indptr))
        indptr = np.append(wide.indptr[used], wide.indptr[-1:])
        columns = (used if names is None else names[used]).astype(np.int32)
        return cls(first, columns, replace(wide, indptr=indptr))

    @property
    def n_bytes(self) -> int:
        """Size of the arrays."""
        return sum(array.nbytes for array in (self.columns, *self.rows.arrays))

    def release(self) -> None:
        """Give back the memory of what was read from a file."""
        if self.pages is not None:
            self.pages.release()

    def copied(self) -> Chunk:
        """The same in memory; the file's part is given back."""
        copy = Chunk(self.first, self.columns.copy(), self.rows.copied())
        self.release()
        return copy

    @property
    def positions(self) -> slice:
        """Which of the design's rows these are."""
        return slice(self.first, self.first + self.rows.n_rows)

    def margins(self, point: IntegerPoint) -> Integers:
        """``Xq theta_q`` of these rows, exact modulo 2^64, without the intercept."""
        places, of_point = self.among(point.support)
        return self.rows.columns_at(places).product(point.values[of_point])

    def dense_margins(self, values: Integers) -> Integers:
        """The same at a point with a value for each of the d columns."""
        return self.rows.product(values[self.columns])

    def among(self, columns: Integers) -> tuple[Integers, Integers]:
        """Places of some sorted columns in this chunk, and in the argument, where it has them."""
        places = np.searchsorted(self.columns, columns)
        has = places < len(self.columns)
        has[has] = self.columns[places[has]] == columns[has]
        return places[has], np.flatnonzero(has)

    def on_columns(self, columns: Integers) -> Chunk:
        """The same rows on some sorted columns, which are numbered anew."""
        places, of_columns = self.among(columns)
        return Chunk(self.first, of_columns.astype(np.int32), self.rows.columns_at(places))

    def columns_below(self, shares: NDArray[np.float64]) -> Integers:
        """Columns before which about these shares of the entries stand."""
        places = np.searchsorted(self.rows.indptr, shares * len(self.rows.data))
        return np.asarray(self.columns[np.minimum(places, len(self.columns) - 1)], np.int64)

    def by_row(self, n_features: int) -> csr_array:
        """The rows on all columns, held by rows; a copy."""
        from scipy.sparse import csr_array

        rows = self.rows.matrix().tocsr()
        shape = (rows.shape[0], n_features)
        return csr_array((rows.data, self.columns[rows.indices], rows.indptr), shape=shape)

    def sums(self, values: Integers) -> Integers:
        """Sums by column of numbers that stand beside the entries, shape (u,)."""
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
        return np.asarray(np.diff(ends[self.rows.indptr]))

    def row_digests(self) -> NDArray[np.uint64]:
        """A number of each row that depends on its entries but for zeros alone, shape (m,)."""
        columns = np.repeat(self.columns, np.diff(self.rows.indptr)).astype(np.uint64)
        entries = mixed(mixed(columns) ^ self.rows.data.astype(np.uint64))
        entries[self.rows.data == 0] = 0
        digests = np.zeros(self.rows.n_rows, np.uint64)
        np.add.at(digests, self.rows.indices, entries)
        self.release()
        return digests

    def squared_norms(self) -> Integers:
        """``|xq_i|^2``, exact: at most 2^40 a row, shape (m,)."""
        squares = (self.rows.data * self.rows.data).astype(np.float64)
        sums = np.bincount(self.rows.indices, weights=squares, minlength=self.rows.n_rows)
        return sums.astype(np.int64)

    def pieces(self, edges: Sequence[int]) -> Iterator[Piece]:
        """Views of the columns from each of the edges to the next."""
        places = np.searchsorted(self.columns, edges)
        for low, high in pairwise(places.tolist()):
            yield Piece(self, self.columns[low:high], self.rows.columns_between(low, high))


@dataclass(frozen=True)
class Piece:
    """Some columns of a chunk, for one thread."""

    chunk: Chunk
    columns: Columns
    rows: ByColumn

    def add_gradient(self, residuals: Integers, total: Integers) -> None:
        """Add ``Xq^T rq`` of these rows and columns to the sums over all columns."""
        total[self.columns] += self.rows.transposed_product(residuals[self.chunk.positions])
        self.chunk.release()
