"""A matrix of integers in compressed column form, and its two products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design import loops

if TYPE_CHECKING:
    from scipy.sparse import csc_array

Integers: TypeAlias = NDArray[np.int64]
Places: TypeAlias = NDArray[np.int32]


@dataclass(frozen=True)
class ByColumn:
    """A sparse matrix of shape (m, u).

    Attributes
    ----------
    data : int64 array, shape (nnz,)
        The integers, column after column.
    indices : int32 array, shape (nnz,)
        Their rows.
    indptr : int32 array, shape (u + 1,)
        Column ``j`` owns the entries ``indptr[j]:indptr[j + 1]``.
    n_rows : int
        m.
    """

    data: Integers
    indices: Places
    indptr: Places
    n_rows: int

    @classmethod
    def of_rows(
        cls, lengths: Integers, columns: Places, values: NDArray[np.int32], n_columns: int
    ) -> ByColumn:
        """The matrix from its rows, one after the other."""
        ends = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(lengths, out=ends[1:])
        indptr = np.empty(n_columns + 1, np.int32)
        indices, data = np.empty_like(columns), np.empty_like(values)
        loops.csr_tocsc(len(lengths), n_columns, ends, columns, values, indptr, indices, data)
        return cls(data.astype(np.int64), indices, indptr, len(lengths))

    @property
    def n_columns(self) -> int:
        return len(self.indptr) - 1

    @property
    def arrays(self) -> tuple[Integers, Places, Places]:
        """What it is held in."""
        return self.data, self.indices, self.indptr

    def copied(self) -> ByColumn:
        """The same on arrays of its own."""
        return ByColumn(self.data.copy(), self.indices.copy(), self.indptr.copy(), self.n_rows)

    def columns_at(self, places: Integers) -> ByColumn:
        """Some columns, in that order; a copy."""
        places = places.astype(np.int32)
        indptr = np.zeros(len(places) + 1, np.int32)
        np.cumsum(self.indptr[places + 1] - self.indptr[places], out=indptr[1:])
        indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.int64)
        loops.csr_row_index(
            len(places), places, self.indptr, self.indices, self.data, indices, data
        )
        return ByColumn(data, indices, indptr, self.n_rows)

    def columns_between(self, low: int, high: int) -> ByColumn:
        """Consecutive columns; the entries are views."""
        start, stop = self.indptr[low], self.indptr[high]
        indptr = self.indptr[low : high + 1] - start
        return ByColumn(self.data[start:stop], self.indices[start:stop], indptr, self.n_rows)

    def product(self, values: Integers) -> Integers:
        """``A x`` modulo 2^64 for x of shape (u,) or (u, k)."""
        total = np.zeros((self.n_rows, *values.shape[1:]), np.int64)
        _add(loops.csc_matvec, loops.csc_matvecs, self.n_rows, self, values, total)
        return total

    def transposed_product(self, values: Integers) -> Integers:
        """``A^T x`` modulo 2^64 for x of shape (m,) or (m, k)."""
        total = np.zeros((self.n_columns, *values.shape[1:]), np.int64)
        _add(loops.csr_matvec, loops.csr_matvecs, self.n_columns, self, values, total)
        return total

    def matrix(self) -> csc_array:
        """The same for scipy, on the same arrays."""
        from scipy.sparse import csc_array

        return csc_array(self.arrays, shape=(self.n_rows, self.n_columns))


def _add(
    one: Callable[..., None],
    several: Callable[..., None],
    n_results: int,
    matrix: ByColumn,
    values: Integers,
    total: Integers,
) -> None:
    """Add the product with one vector, or with several side by side, to ``total``."""
    shape: tuple[int, ...] = (n_results, len(values))
    loop = one
    if values.ndim == 2:
        shape, loop = (*shape, values.shape[1]), several
    loop(*shape, matrix.indptr, matrix.indices, matrix.data, values.ravel(), total.ravel())
