"""A private file without a name: gone with the process, however it ends."""

from __future__ import annotations

import mmap
import os
import tempfile

from dpfit.errors import StorageError, reason_of


class NamelessFile:
    """Bytes on disk for their owner alone, and for as long as the process lives.

    Parameters
    ----------
    folder : str
        Where there is room. The file never has a name there.

    Attributes
    ----------
    length : int
        Bytes so far.
    access : int
        Of what is mapped.
    hint : str
        What to do where there is no room.

    Raises
    ------
    StorageError
        No file can be made there; later, the disk is full or fails.
    """

    access = mmap.ACCESS_READ
    hint = "--cache needs a folder with room for them"

    def __init__(self, folder: str) -> None:
        self.length = 0
        self._folder = folder
        try:
            self._descriptor = self._opened()
        except OSError as error:
            raise self._failed(error) from None

    def _opened(self) -> int:
        with tempfile.TemporaryFile(dir=self._folder) as stream:
            return os.dup(stream.fileno())

    def close(self) -> None:
        """What is mapped outlives this; no more can be written."""
        os.close(self._descriptor)

    def write(self, data: memoryview) -> None:
        """Append."""
        try:
            while data:
                written = os.write(self._descriptor, data)
                data = data[written:]
                self.length += written
        except OSError as error:
            raise self._failed(error) from None

    def read(self, start: int, size: int) -> bytes:
        """A part of what was written."""
        data = b""
        try:
            while len(data) < size:
                data += os.pread(self._descriptor, size - len(data), start + len(data))
        except OSError as error:
            raise self._failed(error) from None
        return data

    def mapped(self) -> mmap.mmap:
        """All of it as it is now, in memory only where it is read."""
        try:
            return mmap.mmap(self._descriptor, self.length, access=self.access)
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> StorageError:
        return StorageError(
            f"{self._folder}: cannot hold the rows: {reason_of(error)}", hint=self.hint
        )
