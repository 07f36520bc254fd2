"""A file of chunks that keeps a name: for later fits of the same rows, and for their owner alone.

It is whole or not there: written beside its name, closed by a digest of all that stands before, and
renamed. It is read only after the digest was checked.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import stat
import time
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from itertools import accumulate
from typing import IO, Any, Final

import numpy as np

from dpfit.design.chunk import Chunk
from dpfit.design.chunk_file import Array, ChunkFile, Place, chunks_at
from dpfit.errors import StorageError, reason_of

_FOLDER: Final = "dpfit-rows"
_SIZE: Final = 8  # bytes that tell the length of the table of contents before them
_DIGEST: Final = 32
_READ: Final = 1 << 20
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe would wait


@dataclass(frozen=True)
class KeptRows:
    """What a kept file holds.

    Attributes
    ----------
    chunks : list of Chunk
        On the file's bytes, which cannot be changed.
    beside : mapping of str to array
        What else was kept, by name.
    """

    chunks: list[Chunk]
    beside: Mapping[str, Array]


class KeptFile(ChunkFile):
    """Takes chunks, which are never changed there, and what belongs to them.

    A context: without a :meth:`finish` nothing is left.

    Parameters
    ----------
    folder : str
        Where a folder of the owner's holds it.
    key : str
        Its name there, made of all that the rows depend on.

    Raises
    ------
    StorageError
        No file can be made there, or others could read it.
    """

    access = mmap.ACCESS_READ

    def __init__(self, folder: str, key: str) -> None:
        self._path = path_of(folder, key)
        self._digest = hashlib.sha256()
        super().__init__(folder)

    def _opened(self) -> int:
        folder = os.path.dirname(self._path)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        _require_own(folder, os.lstat(folder), is_folder=True)
        self._temporary = os.path.join(folder, f"tmp{os.getpid()}-{time.time_ns()}")
        # Nameless until it is whole, where the file system can: a killed run leaves nothing.
        with contextlib.suppress(OSError):
            return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
        return os.open(self._temporary, flags, 0o600)

    def write(self, data: memoryview) -> None:
        self._digest.update(data)
        super().write(data)

    def finish(self, beside: Mapping[str, Array]) -> None:
        """Put what belongs to the rows, arrays of one dimension, and give the file its name.

        Raises
        ------
        StorageError
            The disk is full, or fails.
        """
        arrays = {}
        try:
            for name, array in beside.items():
                arrays[name] = self.length, array.dtype.str, array.size
                self.write(array.view(np.uint8).data)
            contents = json.dumps({"chunks": list(map(astuple, self.places)), "beside": arrays})
            self.write(memoryview(contents.encode()))
            self.write(memoryview(len(contents).to_bytes(_SIZE, "little")))
            super().write(memoryview(self._digest.digest()))
            os.fsync(self._descriptor)
            if not os.fstat(self._descriptor).st_nlink:
                link = f"/proc/self/fd/{self._descriptor}"
                # Links are followed only if a folder is given, which an absolute path ignores.
                os.link(link, self._temporary, src_dir_fd=self._descriptor)
            os.replace(self._temporary, self._path)
        except OSError as error:
            raise self._failed(error) from None

    def __enter__(self) -> KeptFile:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(FileNotFoundError):  # renamed
            os.unlink(self._temporary)


def path_of(folder: str, key: str) -> str:
    """Where the rows of a key are kept."""
    return os.path.join(folder, _FOLDER, key)


def kept_rows(folder: str, key: str) -> KeptRows | None:
    """The rows kept under a key; None if there are none, or what is there is damaged.

    Raises
    ------
    StorageError
        They belong to somebody else, or others could have changed them.
    """
    path = path_of(folder, key)
    try:
        _require_own(os.path.dirname(path), os.lstat(os.path.dirname(path)), is_folder=True)
        with open(os.open(path, _FLAGS), "rb") as stream:
            _require_own(path, os.fstat(stream.fileno()), is_folder=False)
            return _read(stream) if _is_whole(stream) else None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{path}: {reason_of(error)}") from None


def _require_own(path: str, found: os.stat_result, *, is_folder: bool) -> None:
    right_kind = stat.S_ISDIR(found.st_mode) if is_folder else stat.S_ISREG(found.st_mode)
    if not right_kind or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise StorageError(
            f"{path}: is not a {'folder' if is_folder else 'file'} of yours alone",
            hint="others could read or change what is kept there; remove it",
        )


def _is_whole(stream: IO[bytes]) -> bool:
    """Whether the digest at the end is that of the rest; leaves the stream before it."""
    left = os.fstat(stream.fileno()).st_size - _DIGEST
    digest = hashlib.sha256()
    while left > 0 and (data := stream.read(min(left, _READ))):
        digest.update(data)
        left -= len(data)
    return left == 0 and stream.read() == digest.digest()


def _read(stream: IO[bytes]) -> KeptRows | None:
    """What a whole file holds; None if that is not what is written here."""
    mapping = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    end = len(mapping) - _DIGEST - _SIZE
    size = int.from_bytes(mapping[end:-_DIGEST], "little")
    try:
        contents = json.loads(mapping[end - size : end])
        beside = {
            name: np.frombuffer(mapping, kind, count, offset).copy()
            for name, (offset, kind, count) in contents["beside"].items()
        }
        chunks = chunks_at(_places(contents["chunks"]), mapping)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None
    firsts = accumulate((chunk.rows.n_rows for chunk in chunks), initial=0)
    sound = all(_is_sound(chunk, first) for chunk, first in zip(chunks, firsts, strict=False))
    return KeptRows(chunks, beside) if sound else None


def _places(written: Any) -> list[Place]:
    """Where chunks are said to stand.

    Raises
    ------
    TypeError, ValueError
        Nothing can stand there.
    """
    places = [Place(*values) for values in written]
    for place in places:
        if not all(type(value) is int and value >= 0 for value in astuple(place)):
            raise ValueError("no place in a file")
        if place.offset % mmap.ALLOCATIONGRANULARITY:
            raise ValueError("not on a page")
    return places


def _is_sound(chunk: Chunk, first: int) -> bool:
    """Whether the compiled loops, which check nothing, stay within the arrays."""
    columns, rows = chunk.columns, chunk.rows
    ends, indices = rows.indptr, rows.indices
    sound = (
        chunk.first == first
        and ends[0] == 0
        and ends[-1] == len(rows.data)
        and np.all(ends[:-1] <= ends[1:])
        and columns.min(initial=0) >= 0
        and np.all(columns[:-1] < columns[1:])
        and indices.min(initial=0) >= 0
        and indices.max(initial=-1) < rows.n_rows
    )
    chunk.release()
    return bool(sound)
