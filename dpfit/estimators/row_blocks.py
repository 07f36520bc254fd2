"""Arrays and sparse matrices as the blocks of rows that readers of files make."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from dpfit.data.rows import RowBlock
from dpfit.estimators.attributes import Attributes
from dpfit.privacy.summary import Target

_CELLS: Final = 1 << 18  # of a block; what readers cut a file into


def row_blocks(
    X: Any, index_base: int, target: Target | None = None, attributes: Attributes | None = None
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
    attributes : Attributes, optional
        What the records have beside it.
    """
    ends = np.arange(X.shape[0] + 1) * X.shape[1]
    if issparse(X):
        X = canonical(X)
        ends = X.indptr
    beside = attributes or Attributes()
    for start, stop in _parts(ends):
        block, of_block = csr_array(X[start:stop]), beside.of_rows(start, stop)
        yield RowBlock(
            indptr=block.indptr.astype(np.int64),
            indices=block.indices.astype(np.int32) + np.int32(index_base),
            values=block.data,
            target=None if target is None else target[start:stop],
            offset=of_block.offset,
            weight=of_block.weight,
            owner=of_block.owner,
        )


def canonical(X: Any) -> csr_array:
    """The same matrix with sorted columns, each once in a row; the argument is left as it is.

    Raises
    ------
    ValueError
        Entries of one place add up to infinity.
    """
    rows = csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        with np.errstate(over="ignore"):
            rows.sum_duplicates()
        if not np.isfinite(rows.data).all():
            raise ValueError("entries of one place add up to infinity")
    return rows


def _parts(ends: NDArray[np.integer[Any]]) -> Iterator[tuple[int, int]]:
    """Runs of rows with about as many cells as a block has, at least one row each."""
    start, last = 0, len(ends) - 1
    while start < last:
        stop = int(np.searchsorted(ends, ends[start] + _CELLS, side="right")) - 1
        stop = min(max(stop, start + 1), last)
        yield start, stop
        start = stop
