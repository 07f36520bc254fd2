"""One kind of input each: opens a file, checks it against the others, yields its rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Protocol, cast

from dpfit.data.delimited import LabelKind, delimiter_of, read_delimited
from dpfit.data.features import FeatureMap
from dpfit.data.libsvm import LabelPresence, read_libsvm
from dpfit.data.open import open_binary
from dpfit.data.options import ReadOptions
from dpfit.data.owners import QUERY
from dpfit.data.rows import RowBlock
from dpfit.data.schema import one_line
from dpfit.data.table_columns import TableColumns
from dpfit.data.table_head import read_head
from dpfit.data.table_reference import TablePlan
from dpfit.data.text_blocks import closing_with, merged, text_blocks, text_of
from dpfit.data.transcode import as_utf8
from dpfit.errors import UsageError

_BYTES_PER_COLUMN = 1500
_WIDE_BLOCK_BYTES = 16 << 20


class Input(Protocol):
    """An input of one format; files are opened in order."""

    @property
    def feature_map(self) -> FeatureMap | None:
        """Known for tables once the first file was opened."""

    def open(self, path: str, stdin: BinaryIO | None) -> Iterator[RowBlock]:
        """Read what tells the columns, and return the rows to come."""


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
        blocks = text_of(text_blocks(stream, path), path)
        labels = cast("tuple[float, ...] | None", self._options.labels)
        owned = self._options.unit is not None
        rows = read_libsvm(blocks, path, rules, self._labels, threads, labels, owned=owned)
        return closing_with(stream, rows)


_NO_NAMES = "a LIBSVM file has no named columns"


def _refuse_table_options(options: ReadOptions) -> None:
    """Nothing that speaks of named columns or texts may be declared for a LIBSVM file."""
    if options.label is not None:
        raise UsageError(
            "--label names a column of a table; a LIBSVM line begins with its label",
            hint="leave it out, or see --format",
        )
    if options.unit not in (None, QUERY):
        raise UsageError(
            f"--unit names a column of a table; {_NO_NAMES}",
            hint="--unit qid takes the qid:NUMBER of every line, or see --format",
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
            return closing_with(stream, self._rows(stream, path))
        except BaseException:
            stream.close()
            raise

    def _rows(self, stream: BinaryIO, path: str) -> Iterator[RowBlock]:
        text = as_utf8(stream, path, self._options.encoding)
        blocks = text_of(text_blocks(text, path, quote=b'"'), path)
        head = read_head(
            blocks,
            path,
            self._delimiter,
            header=self._options.header,
            declared=self._columns.declared_names,
            numbers_hint="see --no-header" if self._options.predicting else _HEADER_WAYS,
        )
        if head is None:
            return iter(())
        names = head.names
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
            owner=matched.owner,
        )
        # pyarrow works per column and block: a block of a wide table must hold many rows.
        size = min(_WIDE_BLOCK_BYTES, len(names) * _BYTES_PER_COLUMN)
        following = merged(head.blocks, size)
        return read_delimited(following, path, plan, self._labels, self._options.threads)


_HEADER_WAYS = "--no-header, or declare the columns in --schema"


def make_input(kind: str, options: ReadOptions) -> Input:
    """The input of a format, one of `dpfit.data.open.FORMATS`."""
    if kind == "libsvm":
        return LibsvmInput(options)
    if kind == "parquet":
        from dpfit.data.parquet_input import ParquetInput

        return ParquetInput(options)
    return DelimitedInput(options, kind)
