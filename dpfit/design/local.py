"""The integer design in memory: the two products an iteration needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.chunk import Chunk, Piece
from dpfit.design.integer_point import IntegerPoint
from dpfit.design.row_order import groups_of, reordered
from dpfit.design.storage import Storage

if TYPE_CHECKING:
    from scipy.sparse import csc_array, csr_array

Integers: TypeAlias = NDArray[np.int64]

_FEW: Final = 4  # times fewer columns than all are better looked up than spread out


class LocalDesign:
    """An integer design of shape (n, d) with an implied intercept column.

    Parameters
    ----------
    chunks : sequence of Chunk
        The rows, in order.
    shape : tuple of int
        (n, d).
    intercept_integer : int
        The integer in the intercept column, 0 for none.
    threads : int
        Columns fall to that many parts for products; the result does not depend on it.
    run : callable
        ``map``, on that many threads.
    storage : Storage
        Bounds the memory.
    """

    def __init__(
        self,
        chunks: Sequence[Chunk],
        shape: tuple[int, int],
        intercept_integer: int,
        *,
        threads: int,
        run: Callable[..., Iterable[Any]],
        storage: Storage,
    ) -> None:
        self.n_rows, self.n_features = shape
        self._chunks = chunks
        self.intercept_integer = intercept_integer
        self._threads = threads
        self._storage = storage
        self._map = run
        edges = _balanced_edges(chunks, self.n_features, threads)
        of_chunks = [list(chunk.pieces(edges)) for chunk in chunks]
        # A thread has the same columns of every chunk: no other adds to the same sums.
        self._shares = list(zip(*of_chunks, strict=True))

    @property
    def n_bytes(self) -> int:
        """Size of the rows."""
        return sum(chunk.n_bytes for chunk in self._chunks)

    @property
    def bytes_held(self) -> int:
        """What of it stands in memory, not in a file."""
        return sum(chunk.n_bytes for chunk in self._chunks if chunk.pages is None)

    def check_memory(self, arrays: int, columns: int) -> None:
        """Refuse a step that takes so many bytes beside the rows, where memory is bounded."""
        self._storage.check(self.bytes_held, arrays, columns)

    def margins(self, point: IntegerPoint) -> Integers:
        """``Xq theta_q + b theta0_q``, exact modulo 2^64, shape (n,) or (n, k)."""
        classes = point.values.shape[1:]
        total = np.empty((self.n_rows, *classes), np.int64)
        few = _FEW * len(point.support) < self.n_features
        dense = np.zeros((0 if few else self.n_features, *classes), np.int64)
        if not few:
            dense[point.support] = point.values

        def fill(chunk: Chunk) -> None:
            product = chunk.margins(point) if few else chunk.dense_margins(dense)
            np.add(product, self.intercept_integer * point.intercept, out=total[chunk.positions])
            chunk.release()

        list(self._map(fill, self._chunks))
        return total

    def gradient(self, residuals: Integers) -> Integers:
        """``(Xq, b)^T rq``, exact modulo 2^64; the intercept's sums come last.

        Parameters
        ----------
        residuals : int64 array, shape (n,) or (n, k)

        Returns
        -------
        int64 array, shape (d + 1,) or (d + 1, k)
        """
        total = np.zeros((self.n_features + 1, *residuals.shape[1:]), np.int64)
        # One-element arrays wrap silently where scalars would warn.
        total[-1:] = residuals.sum(axis=0, keepdims=True) * np.int64(self.intercept_integer)

        def add(share: Sequence[Piece]) -> None:
            for piece in share:
                piece.add_gradient(residuals, total)

        list(self._map(add, self._shares))
        return total

    def sum_of_parts(self, part: Callable[[Sequence[Chunk]], Integers]) -> Integers:
        """The sum of integers that the parts of the chunks give, a part a thread."""
        shares = [self._chunks[number :: self._threads] for number in range(self._threads)]
        total, *others = self._map(part, shares)
        for other in others:
            total += other
        return np.asarray(total)

    def row_lengths(self) -> Integers:
        """Number of entries of each row, shape (n,)."""
        lengths = [np.bincount(c.rows.indices, minlength=c.rows.n_rows) for c in self._chunks]
        return np.concatenate([np.zeros(0, np.int64), *lengths])

    def row_digests(self) -> NDArray[np.uint64]:
        """A number of each row that tells rows apart, whatever the chunks, shape (n,)."""
        digests = [chunk.row_digests() for chunk in self._chunks]
        return np.concatenate([np.zeros(0, np.uint64), *digests])

    def in_order(self, order: Integers, lengths: Integers) -> LocalDesign:
        """Some of the rows in another order; no chunk ends within one of the groups.

        Parameters
        ----------
        order : int64 array, shape (n,)
            Which row comes at each place.
        lengths : int64 array
            Rows of each group, in order.
        """
        self._storage.check(3 * self.bytes_held)  # the rows, their pieces and the rows again
        entries = np.append(0, np.cumsum(self.row_lengths()[order]))
        weights = np.diff(entries[np.append(0, np.cumsum(lengths))])
        ends = groups_of(lengths, weights, self._storage)
        chunks = list(reordered(self._chunks, order, ends, self._storage))
        return LocalDesign(
            chunks,
            (len(order), self.n_features),
            self.intercept_integer,
            threads=self._threads,
            run=self._map,
            storage=self._storage,
        )

    def on_columns(self, columns: Integers) -> LocalDesign:
        """The same rows on some sorted columns, without an intercept column."""
        chunks = [chunk.on_columns(columns) for chunk in self._chunks]
        shape = (self.n_rows, len(columns))
        return LocalDesign(
            chunks, shape, 0, threads=self._threads, run=self._map, storage=self._storage
        )

    def by_row(self) -> csr_array:
        """The integers held by rows, without the intercept column; a copy."""
        from scipy.sparse import csr_array, vstack

        if not self._chunks:
            return csr_array((0, self.n_features), dtype=np.int64)
        return vstack([chunk.by_row(self.n_features) for chunk in self._chunks], format="csr")

    def as_floats(self, integer_norm: int) -> csc_array:
        """The rows without the intercept column in units of their norm, held by columns; a copy."""
        from scipy.sparse import csc_array

        rows = self.by_row().tocsc()
        return csc_array((rows.data / integer_norm, rows.indices, rows.indptr), shape=rows.shape)

    def column_sums(self, unit: int, integer_norm: int) -> Integers:
        """Sums of positive, then of negative parts of ``trunc(xq unit / K_int)``, shape (2 d,).

        Each record's 2 d numbers are non-negative with norm at most ``unit``. ``unit`` and
        ``K_int`` are at most 2^20, so the products are exact.
        """
        total = np.zeros(2 * self.n_features, np.int64)
        positive, negative = np.split(total, 2)
        for chunk in self._chunks:
            data = chunk.rows.data
            scaled = np.abs(data) * np.int64(unit) // integer_norm
            positive[chunk.columns] += chunk.sums(np.where(data > 0, scaled, 0))
            negative[chunk.columns] += chunk.sums(np.where(data < 0, scaled, 0))
        return total

    def squared_row_norms(self) -> Integers:
        """``|xq_i|^2``, exact: at most 2^40 a row, shape (n,)."""
        norms = [chunk.squared_norms() for chunk in self._chunks]
        return np.concatenate([np.zeros(0, np.int64), *norms])


def _balanced_edges(chunks: Sequence[Chunk], n_features: int, parts: int) -> list[int]:
    """Edges of ranges of columns with about equally many entries."""
    shares = np.linspace(0.0, 1.0, parts + 1)[1:-1]
    cuts = [chunk.columns_below(shares) for chunk in chunks if len(chunk.columns)]
    inner = np.median(cuts, axis=0).astype(np.int64).tolist() if cuts else []
    return [0, *inner, n_features]
