"""The two products over the integer design."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import dpfit.design.storage
from dpfit.data.rows import RowBlock
from dpfit.design.builder import DesignBuilder
from dpfit.design.grid import Grid, RowMap
from dpfit.design.integer_point import IntegerPoint
from dpfit.design.local import LocalDesign
from dpfit.design.storage import Storage

GRID = Grid(1.0, RowMap.NORMALIZE, 20, True)


def random_rows(n: int, d: int, seed: int) -> csr_array:
    rng = np.random.default_rng(seed)
    dense = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.1)
    return csr_array(dense)


def blocks_of(matrix: csr_array, cuts: list[int], base: int = 0) -> list[RowBlock]:
    edges = [0, *cuts, matrix.shape[0]]
    blocks = []
    for first, last in itertools.pairwise(edges):
        part = matrix[first:last]
        blocks.append(
            RowBlock(
                part.indptr.astype(np.int64),
                (part.indices + base).astype(np.int32),
                part.data,
                None,
            )
        )
    return blocks


def design_of(blocks: list[RowBlock], d: int, threads: int = 1, base: int = 0) -> LocalDesign:
    builder = DesignBuilder(GRID, threads)
    builder.collect(blocks)
    return builder.build(d, grid=GRID, index_base=base)


def random_point(d: int, support: int, seed: int) -> IntegerPoint:
    rng = np.random.default_rng(seed)
    columns = np.sort(rng.choice(d, support, replace=False))
    return IntegerPoint(columns, rng.integers(-(2**30), 2**30, support), 12345)


@pytest.mark.parametrize("support", [1, 40, 300])
@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_products_equal_dense_integer_algebra(support: int, threads: int) -> None:
    """Margins and gradients equal numpy's dense int64 products, bit by bit, for any threads."""
    matrix = random_rows(200, 300, seed=1)
    design = design_of(blocks_of(matrix, []), 300, threads)
    dense = design.by_row().toarray()
    stacked = np.column_stack([dense, np.full(200, GRID.intercept_integer)])
    point = random_point(300, support, seed=2)
    theta = np.zeros(301, np.int64)
    theta[point.support], theta[-1] = point.values, point.intercept
    residuals = np.random.default_rng(3).integers(-(2**20), 2**20, 200)
    assert np.array_equal(design.margins(point), stacked @ theta)
    assert np.array_equal(design.gradient(residuals), stacked.T @ residuals)


def test_block_partition_does_not_matter() -> None:
    """The same rows in any blocks give the same bits."""
    matrix = random_rows(150, 80, seed=4)
    residuals = np.random.default_rng(5).integers(-(2**20), 2**20, 150)
    point = random_point(80, 10, seed=6)
    whole = design_of(blocks_of(matrix, []), 80)
    for cuts in ([1], [75], [10, 11, 12, 140], list(range(1, 150))):
        parts = design_of(blocks_of(matrix, cuts), 80)
        assert np.array_equal(whole.gradient(residuals), parts.gradient(residuals))
        assert np.array_equal(whole.margins(point), parts.margins(point))


@pytest.mark.parametrize("entries", [1, 30, 200])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("in_file", [False, True])
def test_chunks_do_not_matter(
    entries: int, threads: int, in_file: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A design of many chunks, in memory or in a file without a name, equals that of one."""
    matrix = random_rows(150, 80, seed=4)
    matrix.indices *= 1000
    matrix = csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(150, 80_000))
    columns = np.arange(0, 80_000, 2000)
    whole = design_of(blocks_of(matrix, []), 80_000)
    monkeypatch.setattr(dpfit.design.storage, "_LARGEST_CHUNK", entries)
    builder = DesignBuilder(GRID, threads, Storage(folder=str(tmp_path) if in_file else None))
    builder.collect(blocks_of(matrix, list(range(5, 150, 5))))
    parts = builder.build(80_000, grid=GRID, index_base=0)
    assert (parts.bytes_held == 0) == in_file
    assert not list(tmp_path.iterdir())
    assert len(parts._chunks) > 1
    residuals = np.random.default_rng(5).integers(-(2**20), 2**20, (150, 2))
    for one, other in ((whole, parts), (whole.on_columns(columns), parts.on_columns(columns))):
        assert (one.by_row() != other.by_row()).nnz == 0
        assert np.array_equal(one.gradient(residuals), other.gradient(residuals))
        assert np.array_equal(one.column_sums(999, 2**20), other.column_sums(999, 2**20))
        assert np.array_equal(one.squared_row_norms(), other.squared_row_norms())
        for support in (1, 10, one.n_features):
            point = random_point(one.n_features, support, seed=6)
            assert np.array_equal(one.margins(point), other.margins(point))


def test_many_chunks_take_few_descriptors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """However many chunks a file holds, it is mapped once: systems allow 1024 descriptors."""
    matrix = random_rows(150, 80, seed=4)
    monkeypatch.setattr(dpfit.design.storage, "_LARGEST_CHUNK", 1)
    builder = DesignBuilder(GRID, storage=Storage(folder=str(tmp_path)))
    before = len(os.listdir("/proc/self/fd"))
    builder.collect(blocks_of(matrix, list(range(1, 150))))
    design = builder.build(80, grid=GRID, index_base=0)
    assert len(design._chunks) > 100
    assert len(os.listdir("/proc/self/fd")) <= before + 2


def test_wrap_around_is_addition_modulo_two_to_the_64() -> None:
    """Sums that pass 2^63 wrap, which is a homomorphism and so cannot hurt privacy."""
    matrix = csr_array(np.ones((3, 1)))
    design = design_of(blocks_of(matrix, []), 1)
    huge = np.array([2**62, 2**62, 2**62], np.int64)
    expected = (3 * 2**62 * GRID.integer_norm + 2**63) % 2**64 - 2**63
    assert design.gradient(huge)[0] == expected


def test_index_base_shifts_columns() -> None:
    """Raw indices from 1 land in columns from 0."""
    matrix = random_rows(20, 15, seed=7)
    plain = design_of(blocks_of(matrix, []), 15)
    shifted = design_of(blocks_of(matrix, [7], base=1), 15, base=1)
    residuals = np.arange(20)
    assert np.array_equal(plain.gradient(residuals), shifted.gradient(residuals))


def test_a_coarser_grid_truncates_toward_zero() -> None:
    """Dropping bits keeps |xq| below the coarser bound, negative entries included."""
    builder = DesignBuilder(GRID)
    builder.collect(blocks_of(csr_array(np.array([[-0.6, 0.8], [0.3, -0.1]])), []))
    coarse = Grid(1.0, RowMap.NORMALIZE, 4, True)
    design = builder.build(2, grid=coarse, index_base=0)
    dense = design.by_row().toarray()
    assert dense[0].tolist() == [-9, 12]
    assert np.all((dense**2).sum(1) <= 16**2)


def test_empty_rows_and_columns_work() -> None:
    """All-zero rows and columns nobody uses are part of the design."""
    matrix = csr_array(np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
    design = design_of(blocks_of(matrix, []), 3, threads=2)
    gradient = design.gradient(np.array([5, 7]))
    assert gradient.tolist() == [0, 7 << 20, 0, 12 * GRID.intercept_integer]


@pytest.mark.parametrize("columns", [[1, 1], [2, 1]])
def test_a_repeated_column_never_enters(columns: list[int]) -> None:
    """Repeated columns would add up past the norm bound, so such a block is refused."""
    indices = np.array([5, *columns, 0], np.int32)
    block = RowBlock(np.array([0, 1, 3, 3, 4]), indices, np.ones(4), None)
    with pytest.raises(ValueError, match="strictly"):
        DesignBuilder(GRID).collect([block])
    fine = RowBlock(np.array([0, 1, 3, 3, 4]), np.array([5, 1, 2, 0], np.int32), np.ones(4), None)
    DesignBuilder(GRID).collect([fine])


def test_a_negative_column_is_refused() -> None:
    """At once: the compiled loops would write before their arrays."""
    columns = np.array([-9_000_000, 1], np.int32)
    with pytest.raises(ValueError, match="outside"):
        DesignBuilder(GRID).collect([RowBlock(np.array([0, 2]), columns, np.ones(2), None)])


@pytest.mark.parametrize(("base", "columns"), [(1, [0, 3]), (0, [1, 9])])
def test_a_column_outside_the_design_is_refused(base: int, columns: list[int]) -> None:
    """The compiled conversion checks nothing, so a column before the first or beyond d must not
    reach it."""
    builder = DesignBuilder(GRID)
    builder.collect([RowBlock(np.array([0, 2]), np.array(columns, np.int32), np.ones(2), None)])
    with pytest.raises(ValueError, match="outside"):
        builder.build(9, grid=GRID, index_base=base)
