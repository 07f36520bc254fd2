"""Rows of a design in another order, in passes over chunks alone: rows may stand on a disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.chunk import Chunk
from dpfit.design.chunk_file import ChunkFile
from dpfit.design.storage import Storage
from dpfit.files.nameless import NamelessFile

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Integers: TypeAlias = NDArray[np.int64]

_LARGEST_GROUP: Final = 1 << 18  # entries; products over units then stay in the cache


def groups_of(lengths: Integers, weights: Integers, storage: Storage) -> Integers:
    """Ends of groups of consecutive items, in rows, of about as many entries as a chunk may have.

    Parameters
    ----------
    lengths : int64 array, shape (m,)
        Rows of each item, which is never divided.
    weights : int64 array, shape (m,)
        Entries of each.
    storage : Storage
        Bounds a chunk.

    Returns
    -------
    int64 array
        Rising; the last is the number of rows.
    """
    most = min(_LARGEST_GROUP, storage.chunk_entries)
    group = (np.cumsum(weights) - weights) // most
    last = np.append(group[1:] != group[:-1], np.ones(min(len(group), 1), np.bool_))
    return np.asarray(np.cumsum(lengths)[last])


def reordered(
    chunks: Sequence[Chunk], order: Integers, ends: Integers, storage: Storage
) -> Iterator[Chunk]:
    """Chunks of some of the rows, in an order.

    Every chunk is cut into the pieces that the groups want of it; a group joins its pieces. So
    each entry is moved twice, however the rows are mixed.

    Parameters
    ----------
    chunks : sequence of Chunk
        All rows.
    order : int64 array, shape (n,)
        Which of them comes at each place.
    ends : int64 array
        Where the groups end, each of which becomes a chunk.
    storage : Storage
        Where pieces and chunks stand.

    Raises
    ------
    StorageError
        The disk is full, or fails.
    """
    spool = _Spool(storage.folder) if storage.folder else None
    try:
        yield from _joined(_pieces(chunks, order, ends, spool), ends, spool, storage.folder)
    finally:
        if spool:
            spool.close()


def _pieces(
    chunks: Sequence[Chunk], order: Integers, ends: Integers, spool: _Spool | None
) -> list[list[_Kept]]:
    """What each group wants of each chunk."""
    of_group: list[list[_Kept]] = [[] for _ in ends]
    groups = np.searchsorted(ends, np.arange(len(order)), side="right")
    by_row = np.argsort(order, kind="stable")
    rows = order[by_row]
    for chunk in chunks:
        low, high = np.searchsorted(rows, [chunk.positions.start, chunk.positions.stop])
        wanted = np.argsort(groups[by_row[low:high]], kind="stable")
        places = by_row[low:high][wanted]
        part = chunk.rows.matrix().tocsr()[rows[low:high][wanted] - chunk.first]
        chunk.release()
        for group, piece in _cut(groups[places], places, part, chunk.columns):
            of_group[group].append(spool.put(piece) if spool else piece)
    return of_group


def _cut(
    groups: Integers, places: Integers, rows: csr_array, names: NDArray[np.int32]
) -> Iterator[tuple[int, _Piece]]:
    """Rows, sorted by group, group by group."""
    columns, values = names[rows.indices], rows.data.astype(np.int32)  # |xq| <= 2^20
    lengths = np.diff(rows.indptr).astype(np.int64)
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    ends = np.flatnonzero(np.diff(groups, append=-1)) + 1  # none where no row was chosen
    for start, stop in zip(starts, ends, strict=True):
        entries = slice(rows.indptr[start], rows.indptr[stop])
        of_group = slice(start, stop)
        piece = _Piece(places[of_group], lengths[of_group], columns[entries], values[entries])
        yield int(groups[start]), piece


def _joined(
    pieces: list[list[_Kept]], ends: Integers, spool: _Spool | None, folder: str | None
) -> Iterator[Chunk]:
    file = ChunkFile(folder) if folder else None
    try:
        for chunk in _of_groups(pieces, ends, spool):
            if file:
                file.put(chunk)
            else:
                yield chunk
        if file:
            yield from file.chunks()
    finally:
        if file:
            file.close()


def _of_groups(pieces: list[list[_Kept]], ends: Integers, spool: _Spool | None) -> Iterator[Chunk]:
    first = 0
    for number, end in enumerate(ends.tolist()):
        kept, pieces[number] = pieces[number], []
        read = [one if isinstance(one, _Piece) else _of(spool, one) for one in kept]
        yield _chunk(first, read)
        first = end


def _of(spool: _Spool | None, kept: _Place) -> _Piece:
    assert spool is not None
    return spool.get(kept)


def _chunk(first: int, pieces: Sequence[_Piece]) -> Chunk:
    places = np.concatenate([piece.places for piece in pieces])
    lengths = np.concatenate([piece.lengths for piece in pieces])
    columns = np.concatenate([piece.columns for piece in pieces])
    values = np.concatenate([piece.values for piece in pieces])
    order = np.argsort(places)
    found = np.cumsum(lengths) - lengths  # where each row begins, and where it shall
    begins = np.cumsum(lengths[order]) - lengths[order]
    entries = np.arange(len(columns)) + np.repeat(found[order] - begins, lengths[order])
    return Chunk.of_rows(first, lengths[order], columns[entries], values[entries])


@dataclass(frozen=True)
class _Piece:
    """Rows of one chunk for one group: their places, lengths, columns and values."""

    places: Integers
    lengths: Integers
    columns: NDArray[np.int32]
    values: NDArray[np.int32]


@dataclass(frozen=True)
class _Place:
    """Where a piece stands in a file: its first byte, its rows and its entries."""

    start: int
    rows: int
    entries: int


_Kept: TypeAlias = _Piece | _Place


class _Spool(NamelessFile):
    """Pieces on disk."""

    hint = "--cache with --unit needs a folder with room for 32 bytes an entry"

    def put(self, piece: _Piece) -> _Place:
        """Take a piece into the file."""
        start = self.length
        for array in (piece.places, piece.lengths, piece.columns, piece.values):
            self.write(np.ascontiguousarray(array).view(np.uint8).data)
        return _Place(start, len(piece.places), len(piece.columns))

    def get(self, place: _Place) -> _Piece:
        """The piece again."""
        rows, entries = place.rows, place.entries
        data = self.read(place.start, 16 * rows + 8 * entries)
        return _Piece(
            np.frombuffer(data, np.int64, rows),
            np.frombuffer(data, np.int64, rows, 8 * rows),
            np.frombuffer(data, np.int32, entries, 16 * rows),
            np.frombuffer(data, np.int32, entries, 16 * rows + 4 * entries),
        )
