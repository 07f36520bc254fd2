"""Ratings from tables, one rating a record: CSV, TSV and Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import IO, BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from dpfit.data.delimited import delimiter_of
from dpfit.data.encode import CellFault, CodedText, finite_numbers
from dpfit.data.id_table import coded_ids, first_refused
from dpfit.data.open import open_binary
from dpfit.data.parquet_columns import AS_NUMBERS, AS_TEXT, as_float64, is_number, is_text
from dpfit.data.parquet_file import NOT_READABLE, damaged, fields_of, open_parquet, seekable
from dpfit.data.pipeline import ordered_map
from dpfit.data.rating_options import RatingOptions
from dpfit.data.rating_records import RatingParser
from dpfit.data.rating_reference import RatingPlan
from dpfit.data.rating_rows import CodedRatings, ItemRule
from dpfit.data.schema import one_line
from dpfit.data.table_head import read_head
from dpfit.data.text_blocks import closing_with, text_blocks, text_of
from dpfit.data.transcode import as_utf8
from dpfit.errors import DataError
from dpfit.files.arrow_errors import memory_apart

_ROWS_PER_BATCH: Final = 1 << 16


def _column_positions(
    columns: dict[str, str], names: Sequence[str], path: str, hint: str | None
) -> dict[str, int]:
    """Where the columns of each role are."""
    for role, name in columns.items():
        if name not in names:
            message = f"the {role} column '{one_line(name)}' is not among the columns"
            raise DataError(message, path=path, hint=hint)
    return {role: list(names).index(name) for role, name in columns.items()}


class DelimitedRatings:
    """CSV or TSV files, one rating a record.

    Parameters
    ----------
    options : RatingOptions
    rule : ItemRule
    kind : str
        ``csv`` or ``tsv``.
    """

    def __init__(self, options: RatingOptions, rule: ItemRule, kind: str) -> None:
        self._options = options
        self._rule = rule
        self._delimiter = delimiter_of(kind, options.delimiter)
        self._columns = options.table_columns

    def open(self, path: str, stdin: BinaryIO | None) -> Iterator[CodedRatings]:
        stream = open_binary(path, stdin)
        try:
            return closing_with(stream, self._ratings(stream, path))
        except BaseException:
            stream.close()
            raise

    def _ratings(self, stream: BinaryIO, path: str) -> Iterator[CodedRatings]:
        text = as_utf8(stream, path, self._options.encoding)
        head = read_head(
            text_of(text_blocks(text, path, quote=b'"'), path),
            path,
            self._delimiter,
            header=self._options.header,
            declared=self._columns.values(),
            numbers_hint="see --no-header",
        )
        if head is None:
            return iter(())
        at = _column_positions(self._columns, head.names, path, self._hint(len(head.names)))
        plan = RatingPlan(
            delimiter=self._delimiter,
            n_fields=len(head.names),
            user=at["user"],
            item=at["item"],
            value=at.get("value"),
            rule=self._rule,
        )
        return ordered_map(RatingParser(path, plan).parse, head.blocks, self._options.threads)

    def _hint(self, n_columns: int) -> str:
        if not self._options.header:
            way = "without a header a column is named by its number, from 1"
        elif n_columns == 1:
            way = "see --delimiter"
        else:
            way = "see --user, --item and --value, or --no-header"
        return f"{way}; the file has {n_columns} columns"


class ParquetRatings:
    """Parquet files, one rating a row.

    Parameters
    ----------
    options : RatingOptions
    rule : ItemRule
    """

    def __init__(self, options: RatingOptions, rule: ItemRule) -> None:
        self._options = options
        self._rule = rule
        self._columns = options.table_columns

    def open(self, path: str, stdin: BinaryIO | None) -> Iterator[CodedRatings]:
        source = seekable(path, stdin)
        try:
            file = open_parquet(source, path)
            fields = fields_of(file, path)
            at = _column_positions(self._columns, [field.name for field in fields], path, None)
            for role, position in at.items():
                _check_type(fields[position], role, path)
        except BaseException:
            source.close()
            raise
        return self._ratings(source, file, path)

    def _ratings(
        self, source: IO[bytes], file: pq.ParquetFile, path: str
    ) -> Iterator[CodedRatings]:
        first_row = 1
        with closing(source):
            for batch in self._batches(file, path):
                try:
                    with memory_apart():
                        ratings = self._block(batch)
                except CellFault as fault:
                    message = f"{fault.message} (row {first_row + fault.row})"
                    raise DataError(message, path=path, hint=fault.hint) from None
                except NOT_READABLE:
                    raise damaged(path) from None
                first_row += batch.num_rows
                yield ratings

    def _batches(self, file: pq.ParquetFile, path: str) -> Iterator[pa.RecordBatch]:
        try:
            with memory_apart():
                yield from file.iter_batches(
                    batch_size=_ROWS_PER_BATCH,
                    columns=list(self._columns.values()),
                    use_threads=self._options.threads > 1,
                )
        except NOT_READABLE:
            raise damaged(path) from None

    def _block(self, batch: pa.RecordBatch) -> CodedRatings:
        users = _ids(batch.column(self._columns["user"]), "the user")
        items = _ids(batch.column(self._columns["item"]), "the item")
        row = first_refused(items, self._rule.allows)
        if row is not None:
            raise CellFault(row, f"the item {self._rule.message}", hint=self._rule.hint)
        if "value" not in self._columns:
            return CodedRatings(users, items, None)
        try:
            values = as_float64(batch.column(self._columns["value"]))
            return CodedRatings(users, items, finite_numbers(values))
        except CellFault as fault:
            raise CellFault(fault.row, f"the value {fault.message}") from None


def _check_type(field: pa.Field, role: str, path: str) -> None:
    name = f"the {role} column '{one_line(field.name)}'"
    plain = field.type.value_type if pat.is_dictionary(field.type) else field.type
    if role == "value" and not is_number(plain):
        raise DataError(f"{name} is not numeric", path=path, hint=AS_NUMBERS)
    if role != "value" and not (is_text(plain) or pat.is_integer(plain)):
        raise DataError(f"{name} holds neither texts nor whole numbers", path=path, hint=AS_TEXT)


def _ids(array: pa.Array, what: str) -> CodedText:
    cells = coded_ids(array)
    row = first_refused(cells, bool)
    if row is not None:
        raise CellFault(row, f"{what} is empty")
    return cells
