"""Records that were read once and kept on disk: read again only if anything has changed."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit import __version__
from dpfit.data.indices import MAX_INDEX
from dpfit.data.reader import Reader
from dpfit.design.chunk import Chunk
from dpfit.design.grid import Grid
from dpfit.design.kept_file import KeptFile, KeptRows, kept_rows
from dpfit.design.storage import Storage
from dpfit.errors import StorageError, UsageError, reason_of
from dpfit.privacy.canonical_json import digest
from dpfit.privacy.collected_records import CollectedRecords

Array: TypeAlias = NDArray[Any]

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
    owned = reader.options.unit_column is not None
    if found is not None and _fit_together(found, owned) and _in_bounds(found.chunks, reader):
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
            "format": reader.format,
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
    return path, os.path.realpath(path), found.st_dev, found.st_ino, found.st_size, *times


def _fit_together(found: KeptRows, owned: bool) -> bool:
    """Whether each of the rows has a target, its unit, and what else a record has."""
    held = dict(found.beside)
    n_rows = sum(chunk.rows.n_rows for chunk in found.chunks)
    units = held.pop("units", None), held.pop("owner", None)
    if owned and not _units_fit(*units, n_rows):
        return False
    texts = _texts(held.pop("texts")) if "texts" in held else []
    target = held.pop("codes" if texts else "target", None)
    if target is None or not n_rows or not held.keys() <= {"offset", "weight"}:
        return False
    if texts and not 0 <= target.min(initial=0) <= target.max(initial=0) < len(texts):
        return False
    return (
        target.dtype == (np.int64 if texts else np.float64)
        and all(array.dtype == np.float64 for array in held.values())
        and all(len(array) == n_rows for array in (target, *held.values()))
    )


def _units_fit(encoded: Array | None, owner: Array | None, n_rows: int) -> bool:
    """Whether each row has its unit, and each unit a name of its own and a row."""
    if encoded is None or owner is None or owner.dtype != np.int64 or len(owner) != n_rows:
        return False
    names = _texts(encoded)
    found = np.unique(owner)
    return len(set(names)) == len(names) and np.array_equal(found, np.arange(len(names)))


def _in_bounds(chunks: list[Chunk], reader: Reader) -> bool:
    """Whether the columns are among those that the reader could give, as far as it is known."""
    columns, options, base = reader.feature_map, reader.options, reader.index_base
    if columns is not None:
        width = columns.n_features
    elif options.hash_bits is not None:
        width = 1 << options.hash_bits
    else:
        width = options.n_features or MAX_INDEX
    low, high = base or 0, width + (1 if base is None else base)
    used = [chunk.columns for chunk in chunks if len(chunk.columns)]
    return all(low <= one[0] and one[-1] < high for one in used)


def _texts(encoded: Array) -> list[str]:
    """Texts; none if they are not what is kept of such."""
    try:
        texts = json.loads(encoded.tobytes())
    except (RecursionError, ValueError):
        return []
    return texts if isinstance(texts, list) and all(isinstance(t, str) for t in texts) else []
