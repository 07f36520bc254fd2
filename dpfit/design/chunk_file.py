"""Chunks in a file that has no name, mapped into memory: gone with the process, however it ends."""

from __future__ import annotations

import mmap
import os
import tempfile
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.by_column import ByColumn
from dpfit.design.chunk import Chunk
from dpfit.errors import StorageError, reason_of

Array: TypeAlias = NDArray[Any]

_PAGE: Final = mmap.ALLOCATIONGRANULARITY
_NO_ROOM: Final = "--cache needs a folder with room for 12 bytes an entry"


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

    def mapped(self, descriptor: int, access: int) -> Chunk:
        """The chunk on the file's own bytes."""
        mapping = mmap.mmap(descriptor, self.n_bytes, offset=self.offset, access=access)
        parts: list[Array] = []
        at = 0
        for kind, size in (
            (np.int64, self.n_entries),
            (np.int32, self.n_columns),
            (np.int32, self.n_columns + 1),
            (np.int32, self.n_entries),
        ):
            parts.append(np.frombuffer(mapping, kind, size, at) if size else np.empty(0, kind))
            at += parts[-1].nbytes
        data, columns, indptr, indices = parts
        return Chunk(self.first, columns, ByColumn(data, indices, indptr, self.n_rows), mapping)


class ChunkFile:
    """Private rows on disk, for their owner alone and for as long as the process lives.

    Parameters
    ----------
    folder : str
        Where there is room. The file never has a name there.

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
        self.places: list[Place] = []
        self._folder = folder
        self._length = 0
        try:
            self._descriptor = self._opened()
        except OSError as error:
            raise self._failed(error) from None

    def _opened(self) -> int:
        with tempfile.TemporaryFile(dir=self._folder) as stream:
            return os.dup(stream.fileno())

    def close(self) -> None:
        """Chunks outlive this; no more can be put."""
        os.close(self._descriptor)

    def put(self, chunk: Chunk) -> Chunk:
        """The same chunk with its arrays in the file.

        Raises
        ------
        StorageError
            The disk is full, or fails.
        """
        rows = chunk.rows
        sizes = rows.n_rows, rows.n_columns, len(rows.data)
        place = Place(self._length, chunk.first, *sizes)
        try:
            for array in (rows.data, chunk.columns, rows.indptr, rows.indices):
                self._write(array.view(np.uint8).data)
            self._write(memoryview(bytes(-self._length % _PAGE)))
            self.places.append(place)
            return place.mapped(self._descriptor, self.access)
        except OSError as error:
            raise self._failed(error) from None

    def _write(self, data: memoryview) -> None:
        while data:
            written = os.write(self._descriptor, data)
            data = data[written:]
            self._length += written

    def _failed(self, error: OSError) -> StorageError:
        return StorageError(
            f"{self._folder}: cannot hold the rows: {reason_of(error)}", hint=_NO_ROOM
        )
