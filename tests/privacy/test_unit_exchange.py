"""Every unit's rows on one worker, whoever read them, and each row once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfit.data.owners import coded
from dpfit.data.rows import RowBlock
from dpfit.design.grid import Grid, RowMap
from dpfit.design.storage import IN_MEMORY
from dpfit.errors import StorageError
from dpfit.privacy.collected_records import CollectedRecords
from dpfit.privacy.unit_exchange import UnitExchange, exchanged
from workers_here import WorkersHere

ROWS = st.lists(st.integers(0, 9), max_size=30)  # the unit of each


def block_of(units: Sequence[int], first: int) -> RowBlock:
    """Rows with their number as target, offset and weight, and of as many entries as it says."""
    numbers = np.arange(first, first + len(units))
    lengths = numbers % 4
    indptr = np.append(0, np.cumsum(lengths))
    columns = np.concatenate([np.zeros(0, np.int64), *map(np.arange, lengths)])
    values = np.repeat(numbers.astype(np.float64), lengths)
    target = numbers.astype(np.float64)
    owner = coded([f"p{unit}" for unit in units])
    return RowBlock(indptr, columns.astype(np.int32), values, target, target, target, owner)


class Noting(CollectedRecords):
    """Keeps the blocks."""

    def __init__(self) -> None:
        super().__init__(Grid(1.0, RowMap.CLIP, 20, True), "rows", threads=1, storage=IN_MEMORY)
        self.blocks: list[RowBlock] = []

    def collect(self, blocks) -> None:  # type: ignore[no-untyped-def]
        self.blocks.extend(blocks)


@given(st.lists(st.lists(ROWS, max_size=3), min_size=1, max_size=5), st.integers(1, 40))
def test_each_row_arrives_once_and_units_stay_whole(
    read: list[list[list[int]]], entries: int
) -> None:
    """Whatever the workers read and however long a round is; with all that a row has, and with the
    identifiers of a worker's own units alone."""
    first, sides, sent = 0, [], Counter[str]()
    for files in read:
        blocks = []
        for units in files:
            blocks.append(block_of(units, first))
            first += len(units)
            sent.update(f"p{unit}" for unit in units)
        sides.append(UnitExchange(iter(blocks), Noting(), entries=entries, n_workers=len(read)))
    got: list[float] = []
    holders: list[set[str]] = []
    came = Counter[str]()
    for worker in exchanged(WorkersHere(len(read)), sides):
        names: set[str] = set()
        for block in worker.blocks:
            texts = [block.owner.texts[code] for code in block.owner.codes]
            names.update(texts)
            came.update(texts)
            assert set(block.owner.texts) == set(texts)
            got.extend(block.target)
            assert block.offset.tolist() == block.weight.tolist() == block.target.tolist()
            assert np.diff(block.indptr).tolist() == (block.target % 4).tolist()
            assert block.values.tolist() == np.repeat(block.target, np.diff(block.indptr)).tolist()
        holders.append(names)
    assert sorted(got) == list(range(first))
    assert came == sent
    assert sum(map(len, holders)) == len(set().union(*holders))


def test_units_are_spread_over_the_workers() -> None:
    """4,000 units on four workers: about a thousand each."""
    block = block_of(range(4000), 0)
    side = UnitExchange(iter([block]), Noting(), entries=10**9, n_workers=4)
    shares = [share[0].n_rows for share in side.read(0)]
    assert all(abs(share - 1000) < 200 for share in shares), shares


def test_a_round_that_is_run_again_fails() -> None:
    """Dask runs a task again when its result is lost with a worker: rows must not be counted twice,
    nor those left out that were got before."""
    side = UnitExchange(iter([block_of([1, 2], 0)]), Noting(), entries=4, n_workers=1)
    (share,) = side.read(0)
    with pytest.raises(StorageError, match="started again"):
        side.read(0)
    assert side.take(0, share)
    with pytest.raises(StorageError, match="started again"):
        side.take(0, share)
    (share,) = side.read(1)
    assert not side.take(1, share)
    assert sum(block.n_rows for block in side.whole(2).blocks) == 2  # type: ignore[attr-defined]
    with pytest.raises(StorageError, match="started again"):
        UnitExchange(iter([]), Noting(), entries=10, n_workers=1).whole(2)
