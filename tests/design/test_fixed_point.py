"""Rows on the integer grid."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfit.data.rows import RowBlock
from dpfit.design.fixed_point import quantise, row_scaled
from dpfit.design.grid import Grid, RowMap, grid_bits

ANY_FINITE = st.floats(allow_nan=False, allow_infinity=False)
ROWS = st.lists(st.lists(ANY_FINITE, max_size=12), min_size=1, max_size=8)
GRIDS = st.builds(
    Grid,
    st.floats(1e-3, 1e3),
    st.sampled_from(RowMap),
    st.integers(1, 20),
    st.booleans(),
)


def block_of(rows: list[list[float]]) -> RowBlock:
    lengths = [len(row) for row in rows]
    indices = np.concatenate([np.arange(n, dtype=np.int32) for n in lengths])
    values = np.array([value for row in rows for value in row], np.float64)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return RowBlock(indptr, indices, values, None)


def rows_of(block: RowBlock, values: np.ndarray) -> list[list[int]]:
    return [
        values[start:stop].tolist()
        for start, stop in zip(block.indptr[:-1], block.indptr[1:], strict=True)
    ]


@given(ROWS, GRIDS)
def test_every_row_keeps_the_integer_norm(rows: list[list[float]], grid: Grid) -> None:
    """|xq|^2 <= K_int^2 in Python integers for any finite row, subnormal to 1e308."""
    block = block_of(rows)
    for row in rows_of(block, quantise(block, grid)):
        assert sum(entry * entry for entry in row) <= grid.integer_norm**2


@given(ROWS, GRIDS, st.data())
def test_a_row_is_quantised_by_itself(rows: list[list[float]], grid: Grid, data: object) -> None:
    """A row's integers do not depend on the rows around it or on its position."""
    together = rows_of(block_of(rows), quantise(block_of(rows), grid))
    alone = [rows_of(block_of([row]), quantise(block_of([row]), grid))[0] for row in rows]
    reverse = rows_of(block_of(rows[::-1]), quantise(block_of(rows[::-1]), grid))
    assert alone == together == reverse[::-1]


def test_the_norm_check_mends_a_float_overshoot(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that the float scaling leaves above the bound is shrunk by the integer check."""
    import dpfit.design.fixed_point as fixed_point

    grid = Grid(1.0, RowMap.NORMALIZE, 20, False)
    block = block_of([[3.0, 4.0], [0.5, 0.0]])
    overshot = lambda block, grid, rows: np.array([0.7072, 0.7072, 0.5, 0.0])  # noqa: E731
    monkeypatch.setattr(fixed_point, "row_scaled", overshot)
    mended, untouched = rows_of(block, quantise(block, grid))
    assert sum(entry * entry for entry in mended) <= grid.integer_norm**2
    assert untouched == [1 << 19, 0]


def test_entries_are_truncated_toward_zero() -> None:
    """Truncation, never rounding: rounding breaks the norm bound in half of all rows."""
    grid = Grid(1.0, RowMap.CLIP, 4, False)
    block = block_of([[0.99 / 16, -0.99 / 16, 1.99 / 16, -1.99 / 16]])
    assert quantise(block, grid).tolist() == [0, 0, 1, -1]


@given(ROWS, st.floats(1e-3, 1e3))
def test_normalising_gives_norm_k_and_clipping_at_most_k(rows: list[list[float]], k: float) -> None:
    """The row map brings every non-zero row to norm K, or those above K down to it."""
    block = block_of(rows)
    entries = np.repeat(np.arange(len(rows)), np.diff(block.indptr))
    normal = row_scaled(block, Grid(k, RowMap.NORMALIZE, 20, False), entries)
    clipped = row_scaled(block, Grid(k, RowMap.CLIP, 20, False), entries)
    for i, row in enumerate(rows):
        part = slice(block.indptr[i], block.indptr[i + 1])
        size = math.hypot(*row)
        if size > 0:
            assert math.hypot(*normal[part]) == pytest.approx(k, rel=1e-9)
        if size <= k * (1 - 1e-12):
            assert clipped[part] == pytest.approx(row, rel=1e-12, abs=1e-322)
        assert math.hypot(*clipped[part]) <= k * (1 + 1e-12)


@given(st.integers(1, 10**12))
def test_sums_fit_into_int64(n_rows: int) -> None:
    """n K_int R_int < 2^62 for any public number of rows that leaves a grid at all."""
    row_bits, residual_bits = grid_bits(n_rows)
    assert row_bits <= 20
    assert residual_bits <= 20
    assert n_rows * 2 ** (row_bits + residual_bits) < 2**62
