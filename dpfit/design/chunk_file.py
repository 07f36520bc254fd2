"""Chunks in a file that has no name, mapped into memory."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.by_column import ByColumn
from dpfit.design.chunk import Chunk, Pages
from dpfit.files.nameless import NamelessFile

Array: TypeAlias = NDArray[Any]

_PAGE: Final = mmap.ALLOCATIONGRANULARITY


@dataclass(frozen=True)
class Place:
    """Where a chunk stands in a file, its widest array first so that all are aligned.

    Attributes
    ----------
    offset : int
        Of its first byte, a multiple of the page size.
    first, n_rows, n_columns, n_entries : int
        The chunk's first row and its sizes.
    """

    offset: int
    first: int
    n_rows: int
    n_columns: int
    n_entries: int

    @property
    def n_bytes(self) -> int:
        """Length of the arrays."""
        return 12 * self.n_entries + 4 * (2 * self.n_columns + 1)

    def chunk(self, mapping: mmap.mmap) -> Chunk:
        """The chunk on the bytes of the mapped file."""
        parts: list[Array] = []
        at = self.offset
        for kind, size in (
            (np.int64, self.n_entries),
            (np.int32, self.n_columns),
            (np.int32, self.n_columns + 1),
            (np.int32, self.n_entries),
        ):
            parts.append(np.frombuffer(mapping, kind, size, at))
            at += parts[-1].nbytes
        data, columns, indptr, indices = parts
        rows = ByColumn(data, indices, indptr, self.n_rows)
        return Chunk(self.first, columns, rows, Pages(mapping, self.offset, self.n_bytes))


def chunks_at(places: Sequence[Place], mapping: mmap.mmap) -> list[Chunk]:
    """The chunks of a file, which is mapped once: each mapping would keep a descriptor."""
    return [place.chunk(mapping) for place in places]


class ChunkFile(NamelessFile):
    """Chunks on disk.

    Parameters
    ----------
    folder : str
        Where there is room for 12 bytes an entry.

    Attributes
    ----------
    places : list of Place
        Of the chunks so far.

    Raises
    ------
    StorageError
        No file can be made there.
    """

    access = mmap.ACCESS_WRITE

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.places: list[Place] = []

    def put(self, chunk: Chunk) -> None:
        """Append a chunk.

        Raises
        ------
        StorageError
            The disk is full, or fails.
        """
        rows = chunk.rows
        sizes = rows.n_rows, rows.n_columns, len(rows.data)
        place = Place(self.length, chunk.first, *sizes)
        for array in (rows.data, chunk.columns, rows.indptr, rows.indices):
            self.write(array.view(np.uint8).data)
        self.write(memoryview(bytes(-self.length % _PAGE)))
        self.places.append(place)

    def chunks(self) -> list[Chunk]:
        """All of them, on the file's own bytes."""
        return chunks_at(self.places, self.mapped()) if self.places else []
