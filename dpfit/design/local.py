"""The integer design in memory, held by columns: the two products an iteration needs.

By columns, the gradient is a gather per column and the margins of a sparse point touch only its
support; measured against row storage and compiled row loops, it is the fastest layout here.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from dpfit.data.pipeline import started_pool
from dpfit.data.rows import RowBlock
from dpfit.design.fixed_point import quantise
from dpfit.design.grid import Grid

Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class IntegerPoint:
    """A point of the model space on its own public grid.

    Attributes
    ----------
    support : int64 array, shape (m,)
        Sorted columns with a non-zero coefficient.
    values : int64 array, shape (m,) or (m, k)
        Their integers, for each of k classes when there are several.
    intercept : int64 array, shape () or (k,)
        The integers of the intercept column's coefficients.
    """

    support: Integers
    values: Integers
    intercept: Integers


@dataclass
class DesignBuilder:
    """Collects blocks of rows, quantised as they come, and makes the design of them.

    Attributes
    ----------
    grid : Grid
        The public record map.
    """

    grid: Grid
    _columns: list[NDArray[np.int32]] = field(default_factory=list)
    _values: list[NDArray[np.int32]] = field(default_factory=list)
    _lengths: list[Integers] = field(default_factory=list)

    def add(self, block: RowBlock) -> None:
        _require_canonical(block)
        self._values.append(quantise(block, self.grid).astype(np.int32))  # |xq| <= 2^20
        self._columns.append(block.indices)
        self._lengths.append(np.diff(block.indptr))

    @property
    def n_rows(self) -> int:
        return sum(map(len, self._lengths))

    def column_range(self) -> tuple[int, int]:
        """Smallest and largest raw column index; ``(0, -1)`` when there is no entry."""
        filled = [columns for columns in self._columns if len(columns)]
        if not filled:
            return 0, -1
        return min(int(c.min()) for c in filled), max(int(c.max()) for c in filled)

    def build(self, n_features: int, *, grid: Grid, index_base: int, threads: int) -> LocalDesign:
        """The design; the builder is empty afterwards.

        Parameters
        ----------
        n_features : int
            Public number of columns, d.
        grid : Grid
            The grid to end on, as fine as the builder's or coarser. Dropping low bits truncates
            toward zero, so every norm bound holds on the coarser grid too.
        index_base : int
            What a raw index of the first column is: 0 or 1.
        threads : int
            Threads for the products.
        """
        lengths = np.concatenate([np.zeros(1, np.int64), *self._lengths])
        n_rows = len(lengths) - 1
        columns = np.concatenate([np.zeros(0, np.int32), *self._columns])
        self._columns.clear()
        if index_base:
            columns -= np.int32(index_base)
        # The compiled conversion checks nothing: a column out of range would write past the array.
        if len(columns) and not 0 <= columns.min() <= columns.max() < n_features:
            raise ValueError("a column lies outside the design")
        values = np.concatenate([np.zeros(0, np.int32), *self._values], dtype=np.int64)
        self._values.clear()
        coarser = 1 << (self.grid.bits - grid.bits)
        if coarser > 1:
            values = np.sign(values) * (np.abs(values) // coarser)
        if grid.entry_integer < grid.integer_norm:
            values = np.clip(values, -grid.entry_integer, grid.entry_integer)
        ends = np.cumsum(lengths)
        if len(columns) < 2**31:
            ends = ends.astype(np.int32)  # else scipy would widen every index to match
        rows = csr_array((values, columns, ends), shape=(n_rows, n_features))
        return LocalDesign(rows.tocsc(), grid.intercept_integer, threads)


class LocalDesign:
    """An integer design of shape (n, d) with an implied intercept column.

    Parameters
    ----------
    by_column : csc_array of int64, shape (n, d)
        The quantised rows.
    intercept_integer : int
        The integer in the intercept column, 0 for none.
    threads : int
        Products run over that many blocks of columns; the result does not depend on it.
    """

    def __init__(self, by_column: csc_array, intercept_integer: int, threads: int) -> None:
        self._by_column = by_column
        self._intercept = intercept_integer
        self._threads = threads
        self._blocks = _column_blocks(by_column, threads)
        self._pool = started_pool(threads) if threads > 1 else None

    @property
    def n_rows(self) -> int:
        return int(self._by_column.shape[0])

    @property
    def n_features(self) -> int:
        return int(self._by_column.shape[1])

    def margins(self, point: IntegerPoint) -> Integers:
        """``Xq theta_q + b theta0_q``, exact modulo 2^64, shape (n,) or (n, k)."""
        if 4 * len(point.support) < self.n_features:
            product = self._by_column[:, point.support] @ point.values
        else:
            dense = np.zeros((self.n_features, *point.values.shape[1:]), np.int64)
            dense[point.support] = point.values
            product = self._by_column @ dense
        return np.asarray(product + self._intercept * point.intercept)

    def gradient(self, residuals: Integers) -> Integers:
        """``(Xq, b)^T rq``, exact modulo 2^64; the intercept's sums come last.

        Parameters
        ----------
        residuals : int64 array, shape (n,) or (n, k)

        Returns
        -------
        int64 array, shape (d + 1,) or (d + 1, k)
        """
        total = np.empty((self.n_features + 1, *residuals.shape[1:]), np.int64)
        # One-element arrays wrap silently where scalars would warn.
        total[-1:] = residuals.sum(axis=0, keepdims=True) * np.int64(self._intercept)
        run = self._pool.map if self._pool else map
        list(run(lambda block: block.add_gradient(residuals, total), self._blocks))
        return total

    def on_columns(self, columns: Integers) -> LocalDesign:
        """The same rows on some columns, without an intercept column."""
        return LocalDesign(self._by_column[:, columns], 0, self._threads)

    def by_row(self) -> csr_array:
        """The integers held by rows, without the intercept column; a copy."""
        return self._by_column.tocsr()

    def as_floats(self, integer_norm: int) -> csc_array:
        """The rows without the intercept column in units of their norm, held by columns; a copy."""
        rows = self._by_column
        return csc_array((rows.data / integer_norm, rows.indices, rows.indptr), shape=rows.shape)

    def column_sums(self, unit: int, integer_norm: int) -> Integers:
        """Sums of positive, then of negative parts of ``trunc(xq unit / K_int)``, shape (2 d,).

        Each record's 2 d numbers are non-negative with norm at most ``unit``. ``unit`` and
        ``K_int`` are at most 2^20, so the products are exact.
        """
        data = self._by_column.data
        scaled = np.abs(data) * np.int64(unit) // integer_norm
        return np.concatenate(
            [
                self._sums_by_column(np.where(data > 0, scaled, 0)),
                self._sums_by_column(np.where(data < 0, scaled, 0)),
            ]
        )

    def _sums_by_column(self, values: Integers) -> Integers:
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
        return np.asarray(np.diff(sums[self._by_column.indptr]))

    def squared_row_norms(self) -> Integers:
        """``|xq_i|^2``, exact: at most 2^40 a row, shape (n,)."""
        squares = (self._by_column.data * self._by_column.data).astype(np.float64)
        sums = np.bincount(self._by_column.indices, weights=squares, minlength=self.n_rows)
        return sums.astype(np.int64)


def _require_canonical(block: RowBlock) -> None:
    """Refuse a column repeated within a row: its parts would add up past the norm bound."""
    rising = np.diff(block.indices) > 0
    starts = block.indptr[1:-1]
    rising[starts[(starts > 0) & (starts < len(block.indices))] - 1] = True
    if not rising.all():
        raise ValueError("a row's columns must increase strictly")


@dataclass(frozen=True)
class _ColumnBlock:
    first: int
    transposed: csr_array

    def add_gradient(self, residuals: Integers, total: Integers) -> None:
        total[self.first : self.first + self.transposed.shape[0]] = self.transposed @ residuals


def _column_blocks(matrix: csc_array, threads: int) -> Sequence[_ColumnBlock]:
    """Views of consecutive columns with about equally many entries."""
    n_rows, n_columns = matrix.shape
    cuts = np.searchsorted(matrix.indptr, np.linspace(0, matrix.nnz, threads + 1)[1:-1])
    edges = np.unique(np.concatenate([[0], cuts, [n_columns]]))
    blocks = []
    for first, last in itertools.pairwise(edges.tolist()):
        start, stop = matrix.indptr[first], matrix.indptr[last]
        # Given to the constructor, views of less than half of an array would be copied.
        part = csr_array((last - first, n_rows), dtype=np.int64)
        part.data = matrix.data[start:stop]
        part.indices = matrix.indices[start:stop]
        part.indptr = matrix.indptr[first : last + 1] - start
        blocks.append(_ColumnBlock(int(first), part))
    return blocks
