"""Rows given as dense matrices, for tests."""

from __future__ import annotations

import numpy as np

from dpfit.data.rows import RowBlock
from dpfit.design.builder import DesignBuilder
from dpfit.design.grid import Grid
from dpfit.design.local import LocalDesign


def dense_block(
    X: np.ndarray, target: np.ndarray | None = None, *, base: int = 0, **attributes: np.ndarray
) -> RowBlock:
    """Every entry of a matrix, zeros too, in columns that count from ``base``."""
    n, d = X.shape
    return RowBlock(
        np.arange(0, n * d + 1, d, dtype=np.int64),
        np.tile(np.arange(base, base + d, dtype=np.int32), n),
        X.ravel(),
        target,
        **attributes,
    )


def dense_design(
    X: np.ndarray, grid: Grid, *, finer: Grid | None = None, threads: int = 1
) -> LocalDesign:
    """The matrix on a grid, where it may have been collected on a ``finer`` one."""
    builder = DesignBuilder(finer or grid, threads)
    builder.collect([dense_block(X)])
    return builder.build(X.shape[1], grid=grid, index_base=0)
