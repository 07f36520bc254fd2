"""Opening Parquet files of unknown content, spooling what cannot seek."""

from __future__ import annotations

import os
from typing import IO, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from dpfit.data.compression import CheckedStream
from dpfit.data.open import STDIN, open_binary
from dpfit.data.spool import spooled
from dpfit.errors import DataError, StorageError, reason_of

NOT_READABLE = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError)
"""What pyarrow raises for content that is no Parquet or of a kind it does not know."""


def open_parquet(source: str | IO[bytes], path: str) -> pq.ParquetFile:
    """Open a Parquet file; anything else is a `DataError` that names ``--format``."""
    try:
        return pq.ParquetFile(source, page_checksum_verification=True)
    except MemoryError:
        raise  # of pyarrow, it is an ArrowException too
    except NOT_READABLE:
        raise DataError(
            "the content is not a readable Parquet file", path=path, hint="see --format"
        ) from None


def damaged(path: str) -> DataError:
    """What an open file turns out to be when its data cannot be decoded."""
    return DataError("the Parquet data are damaged or of an unsupported kind", path=path)


def fields_of(file: pq.ParquetFile, path: str) -> list[pa.Field]:
    """The columns of an open file; two of one name are a `DataError`."""
    try:
        schema = file.schema_arrow
        fields = [schema.field(i) for i in range(len(schema.names))]
    except MemoryError:
        raise  # of pyarrow, it is an ArrowException too
    except (pa.ArrowException, ValueError, TypeError, KeyError, OSError):
        raise DataError("the Parquet schema cannot be read", path=path) from None
    if len({field.name for field in fields}) != len(fields):
        raise DataError("two columns have the same name", path=path)
    return fields


def seekable(path: str, stdin: BinaryIO | None) -> IO[bytes]:
    """The file itself where that works; a copy of a pipe or of a file compressed as a whole."""
    with open_binary(path, stdin) as stream:
        plain = not isinstance(stream, CheckedStream) or not stream.is_compressed
        if path == STDIN or not plain or not os.path.isfile(path):
            return spooled(stream, path)
    try:
        return open(path, "rb")
    except OSError as error:
        raise StorageError(f"{path}: {reason_of(error)}") from None
