"""Opening Parquet files of unknown content, spooling what cannot seek."""

from __future__ import annotations

import os
from typing import IO, BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from dpfit.data.compression import FREE_EXPANSION, LARGEST_EXPANSION, CheckedStream
from dpfit.data.open import open_binary, open_seekable
from dpfit.data.spool import spooled
from dpfit.errors import DataError
from dpfit.files.arrow_errors import memory_apart
from dpfit.files.parquet_footer import value_counts

_BYTES_OF_VALUE: Final = 8
_READ_AHEAD: Final = 32 << 20  # bytes of all columns; else the whole of the file is held

NOT_READABLE = (
    *(pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError),
    RuntimeError,  # of metadata that contradict themselves
)
"""What pyarrow raises for content that is no Parquet or of a kind it does not know."""


def open_parquet(source: IO[bytes], path: str) -> pq.ParquetFile:
    """Open a Parquet file; anything else is a `DataError` that names ``--format``.

    Texts are read as dictionaries, as most files keep them: one text may stand in every row.

    Raises
    ------
    DataError
        It is no Parquet file, or made to fill a machine.
    """
    try:
        with memory_apart():
            file = pq.ParquetFile(source, page_checksum_verification=True)
            check_expansion(file, source, path)
            texts = [field.name for field in file.schema_arrow if pat.is_string(field.type)]
            return pq.ParquetFile(
                source,
                metadata=file.metadata,
                read_dictionary=texts,
                buffer_size=min(_READ_AHEAD // max(1, file.metadata.num_columns), 1 << 20),
                pre_buffer=False,
                page_checksum_verification=True,
            )
    except NOT_READABLE:
        raise DataError(
            "the content is not a readable Parquet file", path=path, hint="see --format"
        ) from None


def check_expansion(file: pq.ParquetFile, source: IO[bytes], path: str) -> None:
    """Refuse a file whose pages or lists say that they expand beyond all measure.

    Flat columns are read by a bounded number of rows, lists by all of their entries.
    """
    groups, columns = file.metadata.num_row_groups, file.metadata.num_columns
    expanded = sum(max(0, file.metadata.row_group(i).total_byte_size) for i in range(groups))
    nested = [file.schema.column(i).max_repetition_level > 0 for i in range(columns)]
    if any(nested):
        for counts in value_counts(source):
            held = [max(0, n) for n, is_list in zip(counts, nested, strict=True) if is_list]
            expanded += _BYTES_OF_VALUE * sum(held)
    if expanded > max(FREE_EXPANSION, LARGEST_EXPANSION * source.seek(0, os.SEEK_END)):
        raise DataError(
            f"the Parquet data expand to more than {LARGEST_EXPANSION} times their size",
            path=path,
            hint="write them without compression if they are what they should be",
        )


def entries_of_row(file: pq.ParquetFile, source: IO[bytes]) -> int:
    """How many entries the lists of a row hold, on average.

    Raises
    ------
    ValueError
        The file does not tell.
    """
    counts = zip(*value_counts(source), strict=True)
    return max(map(sum, counts), default=0) // max(1, int(file.metadata.num_rows))


def damaged(path: str) -> DataError:
    """What an open file turns out to be when its data cannot be decoded."""
    return DataError("the Parquet data are damaged or of an unsupported kind", path=path)


def fields_of(file: pq.ParquetFile, path: str) -> list[pa.Field]:
    """The columns of an open file; two of one name are a `DataError`."""
    try:
        with memory_apart():
            schema = file.schema_arrow
            fields = [schema.field(i) for i in range(len(schema.names))]
    except NOT_READABLE:
        raise DataError("the Parquet schema cannot be read", path=path) from None
    if len({field.name for field in fields}) != len(fields):
        raise DataError("two columns have the same name", path=path)
    return fields


def seekable(path: str, stdin: BinaryIO | None) -> IO[bytes]:
    """The file itself where that works; a copy of a pipe or of a file compressed as a whole."""
    with open_binary(path, stdin) as stream:
        plain = not isinstance(stream, CheckedStream) or not stream.is_compressed
        file = open_seekable(path) if plain else None
        return spooled(stream, path) if file is None else file
