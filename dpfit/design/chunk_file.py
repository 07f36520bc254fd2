"""Chunks in a file that has no name, mapped into memory: gone with the process, however it ends."""

from __future__ import annotations

import mmap
import os
import tempfile
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.by_column import ByColumn
from dpfit.design.chunk import Chunk
from dpfit.errors import StorageError, reason_of

Array: TypeAlias = NDArray[Any]

_PAGE: Final = mmap.ALLOCATIONGRANULARITY


class ChunkFile:
    """Private rows on disk, for its owner alone and for as long as the process lives.

    Parameters
    ----------
    folder : str
        Where there is room. The file never has a name there.

    Raises
    ------
    StorageError
        No file can be made there.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        try:
            with tempfile.TemporaryFile(dir=folder) as stream:
                self._descriptor = os.dup(stream.fileno())
        except OSError as error:
            raise self._failed(error) from None
        self._length = 0

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
        arrays = (rows.data, chunk.columns, rows.indptr, rows.indices)  # the widest first: aligned
        start = self._length
        try:
            for array in arrays:
                self._write(array.view(np.uint8).data)
            self._length += -self._length % _PAGE
            os.ftruncate(self._descriptor, self._length)
            os.lseek(self._descriptor, self._length, os.SEEK_SET)
            mapping = mmap.mmap(self._descriptor, self._length - start, offset=start)
        except OSError as error:
            raise self._failed(error) from None
        data, columns, indptr, indices = _views(mapping, arrays)
        mapped = ByColumn(data, indices, indptr, rows.n_rows)
        return replace(chunk, columns=columns, rows=mapped, mapping=mapping)

    def _write(self, data: memoryview) -> None:
        while data:
            written = os.write(self._descriptor, data)
            data = data[written:]
            self._length += written

    def _failed(self, error: OSError) -> StorageError:
        return StorageError(
            f"{self._folder}: cannot hold the rows: {reason_of(error)}",
            hint="--cache needs a folder with room for 12 bytes an entry",
        )


def _views(mapping: mmap.mmap, like: tuple[Array, ...]) -> list[Array]:
    views, offset = [], 0
    for array in like:
        view = np.frombuffer(mapping, array.dtype, array.size, offset) if array.size else array
        views.append(view)
        offset += array.nbytes
    return views
