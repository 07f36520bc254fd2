"""Arrays and sparse matrices as the blocks of rows that readers of files make."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from dpfit.data.rows import RowBlock
from dpfit.privacy.summary import Target

Floats: TypeAlias = NDArray[np.float64]

_CELLS: Final = 1 << 18  # of a block; what readers cut a file into


def row_blocks(
    X: Any, index_base: int, target: Target | None = None, weight: Floats | None = None
) -> Iterator[RowBlock]:
    """Blocks of the rows of a matrix, in order.

    Parameters
    ----------
    X : float64 array or CSR matrix, shape (n, d)
        Finite; entries of one place are added up.
    index_base : int
        Number of the first column in the blocks.
    target : array, shape (n,), optional
        Numbers, or `str` objects.
    weight : float64 array, shape (n,), optional
        Not negative.
    """
    ends = np.arange(X.shape[0] + 1) * X.shape[1]
    if issparse(X):
        X = canonical(X)
        ends = X.indptr
    for start, stop in _parts(ends):
        block = csr_array(X[start:stop])
        yield RowBlock(
            indptr=block.indptr.astype(np.int64),
            indices=block.indices.astype(np.int32) + np.int32(index_base),
            values=block.data,
            target=None if target is None else target[start:stop],
            weight=None if weight is None else weight[start:stop],
        )


def canonical(X: Any) -> csr_array:
    """The same matrix with sorted columns, each once in a row; the argument is left as it is."""
    rows = csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _parts(ends: NDArray[np.integer[Any]]) -> Iterator[tuple[int, int]]:
    """Runs of rows with about as many cells as a block has, at least one row each."""
    start, last = 0, len(ends) - 1
    while start < last:
        stop = int(np.searchsorted(ends, ends[start] + _CELLS, side="right")) - 1
        stop = min(max(stop, start + 1), last)
        yield start, stop
        start = stop
