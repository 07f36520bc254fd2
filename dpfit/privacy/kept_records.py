"""Records that were read once and kept on disk: read again only if anything has changed."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Final

from dpfit import __version__
from dpfit.data.reader import Reader
from dpfit.design.grid import Grid
from dpfit.design.kept_file import KeptFile, kept_rows
from dpfit.design.storage import Storage
from dpfit.errors import StorageError, UsageError, reason_of
from dpfit.privacy.canonical_json import digest
from dpfit.privacy.collected_records import CollectedRecords

_FORM: Final = 1  # to be raised whenever the readers, the quantisation or the file change


def kept_records(
    reader: Reader, grid: Grid, source: str, *, threads: int, storage: Storage
) -> tuple[CollectedRecords, bool]:
    """The records of an input, and whether an earlier run had kept them; else they are now.

    Parameters
    ----------
    reader : Reader
        Of regular files; not iterated when the records are there.
    grid, source, threads, storage
        As of `CollectedRecords`; the storage has a folder.

    Raises
    ------
    DataError, StorageError, UsageError
        The rows cannot be read, or held, or kept.
    """
    assert storage.folder is not None
    key = key_of(reader, grid, storage)
    found = kept_rows(storage.folder, key)
    if found is not None:
        kept = CollectedRecords(grid, source, threads=threads, storage=storage)
        kept.take_over(found)
        return kept, True
    with KeptFile(storage.folder, key) as file:
        collected = CollectedRecords(grid, source, threads=threads, storage=storage, file=file)
        collected.collect(reader)
        if key_of(reader, grid, storage) != key:
            raise StorageError(f"{source}: changed while it was read")
        file.finish(collected.beside_rows())
    return collected, False


def key_of(reader: Reader, grid: Grid, storage: Storage) -> str:
    """A name made of all that the kept records depend on.

    Raises
    ------
    StorageError, UsageError
        A file is gone, or no regular file.
    """
    return digest(
        {
            "form": [_FORM, __version__, sys.byteorder],
            "files": [_identity(path) for path in reader.paths],
            "options": asdict(replace(reader.options, threads=1)),
            "grid": asdict(grid),
            "chunk_entries": storage.chunk_entries,
        }
    )


def _identity(path: str) -> Sequence[object]:
    try:
        found = os.stat(path)
    except OSError as error:
        raise StorageError(f"{path}: {reason_of(error)}") from None
    if not stat.S_ISREG(found.st_mode):
        raise UsageError(f"{path}: --keep-cache needs a regular file")
    times = found.st_mtime_ns, found.st_ctime_ns
    return os.path.realpath(path), found.st_dev, found.st_ino, found.st_size, *times
