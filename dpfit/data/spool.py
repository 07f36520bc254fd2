"""Copy a stream that cannot seek to a temporary file, up to a limit."""

from __future__ import annotations

import tempfile
from typing import IO, BinaryIO

from dpfit.errors import DataError, StorageError, reason_of

SPOOL_LIMIT = 16 << 30
_CHUNK = 1 << 20


def spooled(stream: BinaryIO, path: str, limit: int | None = None) -> IO[bytes]:
    """A seekable, anonymous copy of ``stream``, positioned at its start.

    Raises
    ------
    DataError
        The stream is longer than ``limit`` bytes (default `SPOOL_LIMIT`).
    StorageError
        The temporary folder cannot take it.
    """
    limit = SPOOL_LIMIT if limit is None else limit
    try:
        copy = tempfile.TemporaryFile(prefix="dpfit-")  # noqa: SIM115 - handed to the caller
    except OSError:
        raise StorageError("no temporary file can be made", hint="set TMPDIR") from None
    try:
        size = 0
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
            if size > limit:
                raise DataError(
                    f"the input is longer than {limit >> 20} MiB, the limit for Parquet streams",
                    path=path,
                    hint="write it to a file first",
                )
            _write(copy, chunk)
        copy.seek(0)
    except BaseException:
        copy.close()
        raise
    return copy


def _write(copy: IO[bytes], chunk: bytes) -> None:
    try:
        copy.write(chunk)
    except OSError as error:
        raise StorageError(f"temporary file: {reason_of(error)}", hint="set TMPDIR") from None
