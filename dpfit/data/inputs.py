"""One kind of input each: opens a file, checks it against the others, yields its rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO, Protocol, cast

from dpfit.data.csv_records import Record, records
from dpfit.data.delimited import LabelKind, delimiter_of, read_delimited
from dpfit.data.features import FeatureMap
from dpfit.data.libsvm import LabelPresence, read_libsvm
from dpfit.data.numbers import is_numeric
from dpfit.data.open import open_binary
from dpfit.data.options import ReadOptions
from dpfit.data.rows import RowBlock
from dpfit.data.schema import one_line
from dpfit.data.table_columns import TableColumns
from dpfit.data.table_reference import TablePlan
from dpfit.data.text_blocks import TextBlock, merged, text_blocks
from dpfit.data.transcode import as_utf8
from dpfit.errors import DataError, UsageError

_PARQUET_MAGIC = b"PAR1"
_BYTES_PER_COLUMN = 1500
_WIDE_BLOCK_BYTES = 16 << 20
_PAIRS = re.compile(rb"[^\s:,]+(?:[ \t]+[0-9]+:[^\s:,]+)+[ \t]*\Z")


class Input(Protocol):
    """An input of one format; files are opened in order."""

    @property
    def feature_map(self) -> FeatureMap | None:
        """Known for tables once the first file was opened."""

    def open(self, path: str, stdin: BinaryIO | None) -> Iterator[RowBlock]:
        """Read what tells the columns, and return the rows to come."""


def _closing(stream: BinaryIO, rows: Iterator[RowBlock]) -> Iterator[RowBlock]:
    try:
        yield from rows
    finally:
        stream.close()


def _text_of(blocks: Iterator[TextBlock], path: str) -> Iterator[TextBlock]:
    """Pass blocks on; the first must not be a Parquet file."""
    for i, block in enumerate(blocks):
        if i == 0 and block.data.startswith(_PARQUET_MAGIC):
            raise DataError(
                "the content is Parquet, not text", path=path, hint="give --format parquet"
            )
        yield block


class LibsvmInput:
    """LIBSVM files."""

    feature_map = None

    def __init__(self, options: ReadOptions) -> None:
        _refuse_table_options(options)
        self._options = options
        self._labels = LabelPresence(options.target_required)

    def open(self, path: str, stdin: BinaryIO | None) -> Iterator[RowBlock]:
        stream = open_binary(path, stdin)
        rules, threads = self._options.index_rules, self._options.threads
        blocks = _text_of(text_blocks(stream, path), path)
        labels = cast("tuple[float, ...] | None", self._options.labels)
        return _closing(stream, read_libsvm(blocks, path, rules, self._labels, threads, labels))


_NO_NAMES = "a LIBSVM file has no named columns"


def _refuse_table_options(options: ReadOptions) -> None:
    """Nothing that speaks of named columns or texts may be declared for a LIBSVM file."""
    if options.label is not None:
        raise UsageError(
            "--label names a column of a table; a LIBSVM line begins with its label",
            hint="leave it out, or see --format",
        )
    if not options.predicting and (options.columns or options.na):
        raise UsageError(
            "the schema speaks of named columns and texts, which a LIBSVM file does not have",
            hint="leave 'columns' and 'na' out of it, or see --format",
        )
    for role, name in options.required_attributes.items():
        if options.predicting:
            what = f"the model takes its {role} from column '{one_line(name)}'"
            raise UsageError(f"{what}; {_NO_NAMES}", hint="give a CSV or Parquet file")
        raise UsageError(
            f"--{role} names a column of a table; {_NO_NAMES}",
            hint="leave it out, or see --format",
        )
    if options.textual:
        raise UsageError("the labels of a LIBSVM file are numbers, not texts", hint="see --labels")


class DelimitedInput:
    """CSV or TSV files.

    Parameters
    ----------
    options : ReadOptions
    kind : str
        ``csv`` or ``tsv``.
    """

    def __init__(self, options: ReadOptions, kind: str) -> None:
        self._options = options
        self._delimiter = delimiter_of(kind, options.delimiter)
        self._columns = TableColumns(options, self._delimiter)
        self._labels = LabelKind(options.textual)

    @property
    def feature_map(self) -> FeatureMap | None:
        return self._columns.feature_map

    def open(self, path: str, stdin: BinaryIO | None) -> Iterator[RowBlock]:
        stream = open_binary(path, stdin)
        try:
            return _closing(stream, self._rows(stream, path))
        except BaseException:
            stream.close()
            raise

    def _rows(self, stream: BinaryIO, path: str) -> Iterator[RowBlock]:
        text = as_utf8(stream, path, self._options.encoding)
        blocks = _text_of(text_blocks(text, path, quote=b'"'), path)
        first, block = self._first_record(blocks, path)
        if first is None or block is None:
            return iter(())
        # A colon in some cell means nothing: only a record that is nothing but pairs does.
        if len(first.fields) == 1 and _PAIRS.match(first.fields[0]):
            raise DataError(
                "the first record consists of INDEX:VALUE pairs",
                path=path,
                line=first.line,
                hint="give --format libsvm",
            )
        names = self._names(first, path)
        if self._options.header:
            rest = block.data[first.end :]
            line = block.first_line + block.data.count(b"\n", 0, first.end)
            block = TextBlock(rest, line, rest.count(b"\n"))
        matched = self._columns.match(names, path)
        plan = TablePlan(
            delimiter=self._delimiter,
            n_fields=len(names),
            feature_map=matched.feature_map,
            positions=matched.positions,
            label=matched.label,
            textual=bool(self._labels.textual),
            missing=self._options.missing,
            labels=self._options.labels,
            named=self._options.header,
            predicting=self._options.predicting,
            attributes=matched.attributes,
        )
        # pyarrow works per column and block: a block of a wide table must hold many rows.
        size = min(_WIDE_BLOCK_BYTES, len(names) * _BYTES_PER_COLUMN)
        following = merged(chain([block] if block.data else [], blocks), size)
        return read_delimited(following, path, plan, self._labels, self._options.threads)

    def _first_record(
        self, blocks: Iterator[TextBlock], path: str
    ) -> tuple[Record | None, TextBlock | None]:
        for block in blocks:
            if not block.data.replace(b"\r\n", b"\n").strip(b"\n"):
                continue
            for record in records(block, path, self._delimiter):
                return record, block
        return None, None

    def _names(self, first: Record, path: str) -> list[str]:
        if not self._options.header:
            return [f"c{i + 1}" for i in range(len(first.fields))]
        names = _header_names(first, path)
        self._refuse_numbers(names, path, first.line)
        return names

    def _refuse_numbers(self, names: list[str], path: str, line: int) -> None:
        """A number among the names means that the first record is none of names, but of data."""
        declared = self._columns.declared_names
        numbers = [
            i for i, name in enumerate(names, 1) if is_numeric(name) and name not in declared
        ]
        if not numbers:
            return
        many = len(numbers) > 1
        what = (
            f"names of columns {_listed(numbers)} are numbers"
            if many
            else (f"name of column {numbers[0]} is a number")
        )
        ways = "see --no-header" if self._options.predicting else _HEADER_WAYS
        raise DataError(f"the {what}: is this a record?", path=path, line=line, hint=ways)


_HEADER_WAYS = "--no-header, or declare the columns in --schema"


def _listed(numbers: list[int]) -> str:
    """``1, 2 and 3``, cut after a few."""
    if len(numbers) > 6:
        return ", ".join(map(str, numbers[:5])) + f" and {len(numbers) - 5} more"
    return ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"


def _header_names(first: Record, path: str) -> list[str]:
    try:
        names = [field.decode("utf-8").strip(" \t") for field in first.fields]
    except UnicodeDecodeError:
        raise DataError(
            "the header is not UTF-8 text", path=path, line=first.line, hint="see --encoding"
        ) from None
    seen: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        if not name:
            raise DataError(f"column {number} has no name", path=path, line=first.line)
        if name in seen:
            # The name itself stays unsaid: a missing header would make it a record's cell.
            message = f"columns {seen[name]} and {number} have the same name"
            raise DataError(message, path=path, line=first.line, hint="see --no-header")
        seen[name] = number
    return names


def make_input(kind: str, options: ReadOptions) -> Input:
    """The input of a format, one of `dpfit.data.open.FORMATS`."""
    if kind == "libsvm":
        return LibsvmInput(options)
    if kind == "parquet":
        from dpfit.data.parquet_input import ParquetInput

        return ParquetInput(options)
    return DelimitedInput(options, kind)
