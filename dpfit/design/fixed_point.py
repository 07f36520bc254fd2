"""From a row as read to its integers on the grid: the last operation is an integer check.

Every step is a function of one record and public numbers, so records cannot influence each other.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.data.rows import RowBlock
from dpfit.design.grid import Grid, RowMap

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_SHRINK = 1.0 - 2.0**-20
_SHRINK_ROUNDS = 3  # truncation holds the bound in practice; float rounding needs one round at most


def quantise(block: RowBlock, grid: Grid) -> Integers:
    """Integers of a block's entries, aligned with ``block.values``.

    Each row is scaled to (or down to) norm K, truncated toward zero to the grid, clipped to
    ``|xq_j| <= K_int`` and, if ``sum xq_j^2 > K_int^2`` still, shrunk or zeroed (exactness, D1).

    Parameters
    ----------
    block : RowBlock
        Rows with finite values.
    grid : Grid
        The public record map.

    Returns
    -------
    int64 array, shape (nnz,)
        With ``sum over a row of xq^2 <= K_int^2``, checked in exact arithmetic.
    """
    rows = np.repeat(np.arange(block.n_rows), np.diff(block.indptr))
    bound = float(grid.integer_norm)
    scaled = row_scaled(block, grid, rows) * (bound / grid.row_norm)
    clipped = np.trunc(np.fmin(np.fmax(scaled, -bound), bound))
    return enforce_norm(clipped, rows, block.n_rows, bound).astype(np.int64)


def row_scaled(block: RowBlock, grid: Grid, rows: Integers) -> Floats:
    """The block's values after the row map, as floats: what prediction works on.

    Parameters
    ----------
    block : RowBlock
        Rows with finite values.
    grid : Grid
        The public record map.
    rows : int64 array, shape (nnz,)
        The row of each entry.
    """
    lengths = np.diff(block.indptr)
    largest = np.zeros(block.n_rows)
    filled = np.flatnonzero(lengths)
    magnitudes = np.abs(block.values)
    if len(filled):
        largest[filled] = np.maximum.reduceat(magnitudes, block.indptr[filled])
    # Dividing by the largest entry first keeps squares of 1e308 and 1e-308 finite and nonzero.
    largest[largest == 0.0] = 1.0
    relative = block.values / np.repeat(largest, lengths)
    norms = np.sqrt(np.bincount(rows, weights=relative * relative, minlength=block.n_rows))
    norms[norms == 0.0] = 1.0
    if grid.row_map is RowMap.NORMALIZE:
        factor = grid.row_norm / norms
    else:
        factor = np.minimum(grid.row_norm / norms, largest)
    relative *= np.repeat(factor, lengths)
    return relative


def enforce_norm(values: Floats, rows: Integers, n_rows: int, bound: float) -> Floats:
    """Shrink rows whose squared norm exceeds ``bound^2``; zero those that cannot be mended.

    With integers ``|v| <= bound <= 2^26`` the float sum of squares is exact up to 2^53, and one
    that passes 2^53 cannot come back below ``bound^2``, so the comparison is exact.
    """
    for _ in range(_SHRINK_ROUNDS):
        over = np.bincount(rows, weights=values * values, minlength=n_rows) > bound * bound
        if not over.any():
            return values
        values = np.where(over[rows], np.trunc(values * _SHRINK), values)
    over = np.bincount(rows, weights=values * values, minlength=n_rows) > bound * bound
    return np.where(over[rows], 0.0, values)
