"""Consecutive rows held by the columns that they use: the unit of storage of a design.

A gradient gathers a residual for every entry. Chunks keep the residuals that one needs at a time
few enough for the cache, and leave out the columns that no row of theirs uses.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from dpfit.design.integer_point import IntegerPoint
from dpfit.design.mixing import mixed

Integers: TypeAlias = NDArray[np.int64]
Columns: TypeAlias = NDArray[np.int32]
Matrix = TypeVar("Matrix", csr_array, csc_array)

_WIDE: Final = 8  # columns an entry: beyond, counting the entries of each costs more than sorting


@dataclass(frozen=True)
class Chunk:
    """Some rows of a design.

    Attributes
    ----------
    first : int
        Which of the design's rows is the first.
    columns : int32 array, shape (u,)
        The columns with an entry, sorted.
    rows : csc_array of int64, shape (m, u)
        The rows on these columns.
    mapping : mmap or None
        The part of a file in which the arrays are, if they are in one.
    """

    first: int
    columns: Columns
    rows: csc_array
    mapping: mmap.mmap | None = None

    @classmethod
    def of_rows(
        cls, first: int, lengths: Integers, columns: Columns, values: NDArray[np.int32]
    ) -> Chunk:
        """The chunk of rows in compressed row form; of each row the columns increase strictly."""
        ends = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(lengths, out=ends[1:])
        width = int(columns.max()) + 1 if len(columns) else 0
        names, places = None, columns
        if width > _WIDE * len(columns):
            names, inverse = np.unique(columns, return_inverse=True)
            width, places = len(names), inverse.astype(np.int32)
        by_row = csr_array((values, places, ends), shape=(len(lengths), width))
        wide = by_row.tocsc()
        used = np.flatnonzero(np.diff(wide.indptr))
        ends = np.append(wide.indptr[used], wide.indptr[-1:])
        rows = csc_array(
            (wide.data.astype(np.int64), wide.indices, ends), shape=(len(lengths), len(used))
        )
        return cls(first, (used if names is None else names[used]).astype(np.int32), rows)

    @property
    def n_bytes(self) -> int:
        """Size of the arrays."""
        arrays = (self.columns, self.rows.data, self.rows.indices, self.rows.indptr)
        return sum(array.nbytes for array in arrays)

    def release(self) -> None:
        """Give back the memory of what was read from a file; what is needed comes again."""
        if self.mapping is not None:
            self.mapping.madvise(mmap.MADV_DONTNEED)

    @property
    def positions(self) -> slice:
        """Which of the design's rows these are."""
        return slice(self.first, self.first + self.rows.shape[0])

    def margins(self, point: IntegerPoint) -> Integers:
        """``Xq theta_q`` of these rows, exact modulo 2^64, without the intercept."""
        places, of_point = self.among(point.support)
        return np.asarray(self.rows[:, places] @ point.values[of_point])

    def dense_margins(self, values: Integers) -> Integers:
        """The same at a point with a value for each of the d columns."""
        return np.asarray(self.rows @ values[self.columns])

    def among(self, columns: Integers) -> tuple[Integers, Integers]:
        """Places of some sorted columns in this chunk, and in the argument, where it has them."""
        places = np.searchsorted(self.columns, columns)
        has = places < len(self.columns)
        has[has] = self.columns[places[has]] == columns[has]
        return places[has], np.flatnonzero(has)

    def on_columns(self, columns: Integers) -> Chunk:
        """The same rows on some sorted columns, which are numbered anew."""
        places, of_columns = self.among(columns)
        return Chunk(self.first, of_columns.astype(np.int32), self.rows[:, places])

    def columns_below(self, shares: NDArray[np.float64]) -> Integers:
        """Columns before which about these shares of the entries stand."""
        places = np.searchsorted(self.rows.indptr, shares * self.rows.nnz)
        return np.asarray(self.columns[np.minimum(places, len(self.columns) - 1)], np.int64)

    def by_row(self, n_features: int) -> csr_array:
        """The rows on all columns, held by rows; a copy."""
        rows = self.rows.tocsr()
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
        digests = np.zeros(self.rows.shape[0], np.uint64)
        np.add.at(digests, self.rows.indices, entries)
        self.release()
        return digests

    def squared_norms(self) -> Integers:
        """``|xq_i|^2``, exact: at most 2^40 a row, shape (m,)."""
        squares = (self.rows.data * self.rows.data).astype(np.float64)
        n_rows = self.rows.shape[0]
        sums = np.bincount(self.rows.indices, weights=squares, minlength=n_rows)
        return sums.astype(np.int64)

    def pieces(self, edges: Sequence[int]) -> Iterator[Piece]:
        """Views of the columns from each of the edges to the next."""
        places = np.searchsorted(self.columns, edges)
        ends, n_rows = self.rows.indptr, self.rows.shape[0]
        for low, high in zip(places[:-1].tolist(), places[1:].tolist(), strict=True):
            start, stop = ends[low], ends[high]
            part = matrix_on(
                csr_array((high - low, n_rows), dtype=np.int64),
                self.rows.data[start:stop],
                self.rows.indices[start:stop],
                ends[low : high + 1] - start,
            )
            yield Piece(self, self.columns[low:high], part)


@dataclass(frozen=True)
class Piece:
    """Some columns of a chunk, for one thread."""

    chunk: Chunk
    columns: Columns
    transposed: csr_array

    def add_gradient(self, residuals: Integers, total: Integers) -> None:
        """Add ``Xq^T rq`` of these rows and columns to the sums over all columns."""
        total[self.columns] += self.transposed @ residuals[self.chunk.positions]
        self.chunk.release()


def matrix_on(matrix: Matrix, data: Integers, indices: Columns, indptr: Columns) -> Matrix:
    """An empty matrix put on these very arrays; its constructor would copy views of others."""
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix
