"""A design cut into blocks of rows, each on the columns that it holds alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.local import LocalDesign

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class RowsOfBlock:
    """Some rows of a design.

    Attributes
    ----------
    positions : slice
        Which of the design's rows: every B-th from the block's number on.
    columns : int64 array, shape (k,)
        Sorted columns with an entry in one of them.
    rows : csr_array of float64, shape (m, k)
        The rows on these columns, in units of the row norm K.
    """

    positions: slice
    columns: Integers
    rows: csr_array


def interleaved(design: LocalDesign, n_blocks: int, integer_norm: int) -> Iterator[RowsOfBlock]:
    """Blocks of the rows whose position is the same modulo the number of blocks.

    A block is a function of its own rows alone. All of them together cost time and memory in
    proportion to the entries, up to the sorting of columns within a block.

    Parameters
    ----------
    design : LocalDesign
        Rows, without their intercept column.
    n_blocks : int
        B, public.
    integer_norm : int
        K_int: the rows' unit of length.
    """
    from scipy.sparse import csr_array

    by_row = design.by_row()
    for block in range(min(n_blocks, design.n_rows)):
        positions = slice(block, None, n_blocks)
        part = by_row[positions]
        columns, places = np.unique(part.indices, return_inverse=True)
        values = part.data / integer_norm
        shape = (part.shape[0], len(columns))
        rows = csr_array((values, places, part.indptr), shape=shape)
        yield RowsOfBlock(positions, columns.astype(np.int64), rows)
