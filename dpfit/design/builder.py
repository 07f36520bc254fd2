"""From blocks of rows, as they are read, to a design."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.data.pipeline import ordered_map, started_pool
from dpfit.data.rows import RowBlock
from dpfit.design.chunk import Chunk
from dpfit.design.chunk_file import ChunkFile
from dpfit.design.fixed_point import quantise
from dpfit.design.grid import Grid
from dpfit.design.local import LocalDesign
from dpfit.design.storage import IN_MEMORY, Storage

Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class _Quantised:
    lengths: Integers
    columns: NDArray[np.int32]
    values: NDArray[np.int32]


class DesignBuilder:
    """Quantises blocks as they come, a few at a time, and makes the design of them.

    Parameters
    ----------
    grid : Grid
        The public record map at its finest.
    threads : int
        Blocks and chunks made at a time; the design does not depend on it.
    storage : Storage
        Where the rows go.
    file : ChunkFile, optional
        Where they go first, if they are to be kept as they were read.

    Attributes
    ----------
    n_rows : int
        Rows so far.
    bytes_held : int
        Memory of the chunks so far.
    """

    def __init__(
        self,
        grid: Grid,
        threads: int = 1,
        storage: Storage = IN_MEMORY,
        file: ChunkFile | None = None,
    ) -> None:
        self.grid = grid
        self.n_rows = 0
        self.bytes_held = 0
        self._threads = threads
        self._storage = storage
        self._file = file or (ChunkFile(storage.folder) if storage.folder else None)
        self._chunks: list[Chunk] = []

    def collect(self, blocks: Iterable[RowBlock]) -> None:
        """Take up blocks until they end.

        Raises
        ------
        ValueError
            A column is repeated within a row, or negative.
        UsageError, StorageError
            The rows do not fit into memory, or onto the disk.
        """
        quantised = ordered_map(self._quantised, iter(blocks), self._threads)
        for chunk in ordered_map(_chunk, self._grouped(quantised), self._threads):
            if self._file:
                self._file.put(chunk)
                continue
            self._chunks.append(chunk)
            self.bytes_held += chunk.n_bytes
            self._storage.check(self.bytes_held)
        if self._file:
            self._chunks = self._file.chunks()

    def take_over(self, chunks: list[Chunk]) -> None:
        """Have chunks that were made before, of the same grid and storage."""
        self._chunks = chunks
        self.n_rows = sum(chunk.rows.n_rows for chunk in chunks)

    def _quantised(self, block: RowBlock) -> _Quantised:
        _require_canonical(block)
        values = quantise(block, self.grid).astype(np.int32)  # |xq| <= 2^20
        return _Quantised(np.diff(block.indptr), block.indices, values)

    def _grouped(self, blocks: Iterator[_Quantised]) -> Iterator[tuple[int, list[_Quantised]]]:
        """Blocks of one chunk, with the number of its first row."""
        first, entries, group = self.n_rows, 0, list[_Quantised]()
        for block in blocks:
            group.append(block)
            self.n_rows += len(block.lengths)
            entries += len(block.columns)
            if entries >= self._storage.chunk_entries:
                yield first, group
                first, entries, group = self.n_rows, 0, []
        if group:
            yield first, group

    def column_range(self) -> tuple[int, int]:
        """Smallest and largest raw column index; ``(0, -1)`` when there is no entry."""
        filled = [chunk.columns for chunk in self._chunks if len(chunk.columns)]
        if not filled:
            return 0, -1
        return min(int(c[0]) for c in filled), max(int(c[-1]) for c in filled)

    def build(self, n_features: int, *, grid: Grid, index_base: int) -> LocalDesign:
        """The design; the builder is empty afterwards.

        Parameters
        ----------
        n_features : int
            Public number of columns, d.
        grid : Grid
            The grid to end on, as fine as the builder's or coarser. Dropping low bits truncates
            toward zero, so every norm bound holds on the coarser grid too.
        index_base : int
            What a raw index of the first column is: 0 or 1.
        """
        lowest, highest = self.column_range()
        # The compiled products check nothing: a column out of range would write past the array.
        if highest >= 0 and not index_base <= lowest <= highest < index_base + n_features:
            raise ValueError("a column lies outside the design")
        if self._file:
            self._file.close()
        chunks, self._chunks = self._chunks, []
        finish = functools.partial(_on_grid, finer=self.grid, grid=grid, index_base=index_base)
        made = self._stored(ordered_map(finish, iter(chunks), self._threads))
        return LocalDesign(
            made,
            (self.n_rows, n_features),
            grid.intercept_integer,
            threads=self._threads,
            run=started_pool(self._threads).map if self._threads > 1 else map,
            storage=self._storage,
        )

    def _stored(self, chunks: Iterator[Chunk]) -> list[Chunk]:
        """The chunks; in a nameless file if they were copied out of a kept one."""
        file, stored = None, list[Chunk]()
        for chunk in chunks:
            if self._storage.folder and chunk.pages is None:
                file = file or ChunkFile(self._storage.folder)
                file.put(chunk)
            else:
                stored.append(chunk)
        if file:
            stored = file.chunks()
            file.close()
        return stored


def _chunk(numbered: tuple[int, list[_Quantised]]) -> Chunk:
    first, blocks = numbered
    lengths = np.concatenate([block.lengths for block in blocks])
    columns = np.concatenate([block.columns for block in blocks])
    values = np.concatenate([block.values for block in blocks])
    return Chunk.of_rows(first, lengths, columns, values)


def _on_grid(chunk: Chunk, finer: Grid, grid: Grid, index_base: int) -> Chunk:
    """The chunk with columns from 0, its entries cut to the grid; changed where it may be."""
    if not chunk.rows.indptr.flags.writeable:
        chunk = chunk.copied()
    values, columns = chunk.rows.data, chunk.columns
    columns -= np.int32(index_base)
    if grid.bits < finer.bits:
        values[:] = np.sign(values) * (np.abs(values) >> (finer.bits - grid.bits))
    if grid.entry_integer < grid.integer_norm:
        np.clip(values, -grid.entry_integer, grid.entry_integer, out=values)
    chunk.release()
    return chunk


def _require_canonical(block: RowBlock) -> None:
    """Refuse a column repeated within a row: its parts would add up past the norm bound.

    Also one below zero, before which the compiled loops would write.
    """
    if block.indices.min(initial=0) < 0:
        raise ValueError("a column lies outside the design")
    rising = np.diff(block.indices) > 0
    starts = block.indptr[1:-1]
    rising[starts[(starts > 0) & (starts < len(block.indices))] - 1] = True
    if not rising.all():
        raise ValueError("a row's columns must increase strictly")
