"""Sums over units, each one's shrunk."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import random as random_rows

from dpfit.data.rows import RowBlock
from dpfit.design import row_order
from dpfit.design.builder import DesignBuilder
from dpfit.design.grid import Grid, RowMap
from dpfit.design.local import LocalDesign
from dpfit.design.owner_rows import OwnerRows
from dpfit.design.storage import Storage

GRID = Grid(1.0, RowMap.CLIP, 20, True)
N, D = 200, 30
BOUND = 1 << 26


@pytest.fixture
def chance() -> np.random.Generator:
    return np.random.default_rng(0)


def design(seed: int = 0, threads: int = 1, folder: Path | None = None) -> LocalDesign:
    """Rows in blocks of 16; in chunks of a few hundred entries where they stand on a disk."""
    rows = random_rows(N, D, density=0.2, format="csr", rng=np.random.default_rng(seed))
    rows.data -= 0.5
    storage = Storage(folder=str(folder)) if folder else Storage()
    builder = DesignBuilder(GRID, threads, storage)
    builder.collect(
        RowBlock(part.indptr.astype(np.int64), part.indices, part.data, np.zeros(part.shape[0]))
        for part in (rows[i : i + 16] for i in range(0, N, 16))
    )
    return builder.build(D, grid=GRID, index_base=0)


def by_owner(rows: LocalDesign, owners: NDArray[np.int64]) -> tuple[OwnerRows, NDArray[np.int64]]:
    order = np.argsort(owners, kind="stable")
    counts = np.bincount(owners)
    return OwnerRows(rows.in_order(order, counts), np.append(0, np.cumsum(counts))), order


def whole(rows: LocalDesign) -> NDArray[np.int64]:
    """The rows with their constant, as a matrix."""
    constant = np.full((rows.n_rows, 1), GRID.intercept_integer)
    return np.hstack([rows.by_row().toarray(), constant])


@pytest.mark.parametrize("classes", [(), (3,)])
def test_what_is_not_shrunk_is_the_plain_sum(
    chance: np.random.Generator, classes: tuple[int, ...]
) -> None:
    """With a limit that is the bound, nothing but the clip changes a unit's sum."""
    rows, owners = design(), chance.integers(0, 20, N)
    owners[:20] = np.arange(20)
    units, order = by_owner(rows, owners)
    small = chance.integers(-1, 2, (N, *classes))
    expected = np.tensordot(whole(rows).T, small, axes=1)
    found = units.sums(small[order], limit=float(BOUND), bound=BOUND)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("classes", [(), (3,)])
def test_each_unit_adds_its_own_sum_shrunk_to_the_bound(
    chance: np.random.Generator, classes: tuple[int, ...]
) -> None:
    """Alone it adds at most the bound, in the direction of its exact sum, and nearly all of it."""
    rows, owners = design(), chance.integers(0, 20, N)
    owners[:20] = np.arange(20)
    multipliers = chance.integers(-(1 << 20), 1 << 20, (N, *classes))
    limit = float(1 << 40)
    total = 0
    for unit in range(20):
        own = np.flatnonzero(owners == unit)
        alone, _ = by_owner(rows.in_order(own, np.array([len(own)])), np.zeros(len(own), np.int64))
        found = alone.sums(multipliers[own], limit=limit, bound=BOUND)
        total = total + found
        exact = np.tensordot(whole(rows)[own].astype(object).T, multipliers[own], axes=1)
        norm = math.sqrt(sum(int(v) ** 2 for v in exact.ravel()))
        assert sum(int(v) ** 2 for v in found.ravel()) <= BOUND**2
        wanted = exact.astype(float) * (BOUND / max(norm, limit))
        assert np.abs(found - wanted).max() <= 1.0 + 2.0**-19 * np.abs(wanted).max()
    units, order = by_owner(rows, owners)
    assert np.array_equal(units.sums(multipliers[order], limit=limit, bound=BOUND), total)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("held", [True, False])
def test_storage_and_threads_change_nothing(
    chance: np.random.Generator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    held: bool,
    threads: int,
) -> None:
    """Nor do chunks, which end between units."""
    owners = chance.integers(0, 40, N)
    owners[:40] = np.arange(40)
    multipliers = chance.integers(-(1 << 20), 1 << 20, N)
    units, order = by_owner(design(), owners)
    expected = units.sums(multipliers[order], limit=1e12, bound=BOUND)
    monkeypatch.setattr(row_order, "_LARGEST_GROUP", 50)
    units, order = by_owner(design(threads=threads, folder=None if held else tmp_path), owners)
    found = units.sums(multipliers[order], limit=1e12, bound=BOUND)
    assert np.array_equal(found, expected)
    assert list(tmp_path.iterdir()) == []


def test_rows_in_order_are_the_rows(chance: np.random.Generator, tmp_path: Path) -> None:
    """Some of them, in any order, wherever they stand."""
    order = chance.permutation(N)[: N // 2]
    counts = np.array([1, 30, 19, 50])
    expected = design().by_row()[order].toarray()
    for folder in (None, tmp_path):
        found = design(folder=folder).in_order(order, counts)
        assert np.array_equal(found.by_row().toarray(), expected)


def test_a_chunk_of_which_no_row_takes_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One unit may fill it, with more rows than the cap lets in: the others are as they are."""
    monkeypatch.setattr(Storage, "chunk_entries", 40)
    last = np.arange(N - 5, N)
    expected = design().by_row()[last].toarray()
    for folder in (None, tmp_path):
        found = design(folder=folder).in_order(last, np.array([2, 3]))
        assert np.array_equal(found.by_row().toarray(), expected)


def test_a_row_s_digest_is_its_own(chance: np.random.Generator) -> None:
    """The same wherever the row stands; rows that differ have different ones."""
    rows, order = design(), chance.permutation(N)
    digests = rows.row_digests()
    assert np.array_equal(rows.in_order(order, np.array([N])).row_digests(), digests[order])
    distinct = np.unique(rows.by_row().toarray(), axis=0)
    assert len(np.unique(digests)) == len(distinct)


def test_units_without_an_entry_have_their_constant() -> None:
    """A design without a single entry still has an intercept."""
    rows = DesignBuilder(replace(GRID, intercept=True))
    rows.collect([RowBlock(np.zeros(4, np.int64), np.zeros(0, np.int32), np.zeros(0), np.zeros(3))])
    units, _ = by_owner(rows.build(2, grid=GRID, index_base=0), np.array([0, 1, 1]))
    found = units.sums(np.ones(3, np.int64), limit=float(BOUND), bound=BOUND)
    assert found.tolist() == [0, 0, 3 * GRID.intercept_integer]
