"""Ratings from matrices, a row a user and a column an item: LIBSVM and Matrix Market."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from dpfit.data import libsvm, libsvm_reference
from dpfit.data.encode import CodedText
from dpfit.data.id_table import coded_ids, first_refused
from dpfit.data.indices import IndexRules, LineFault
from dpfit.data.matrix_market import Entries, EntryParser, MatrixSize, read_size
from dpfit.data.open import open_binary
from dpfit.data.pipeline import ordered_map
from dpfit.data.rating_options import RatingOptions
from dpfit.data.rating_rows import CodedRatings, ItemRule, line_of_first
from dpfit.data.rows import RowBlock
from dpfit.data.text_blocks import TextBlock, closing_with, text_blocks, text_of
from dpfit.errors import DataError


class LibsvmRatings:
    """LIBSVM files: a row is a user, its number among all rows from 1; an index is an item.

    Labels are read over. A row without entries is a user who rated nothing.

    Parameters
    ----------
    options : RatingOptions
    rule : ItemRule
    """

    def __init__(self, options: RatingOptions, rule: ItemRule) -> None:
        options.refuse_columns("a LIBSVM file")
        self._rule = rule
        self._threads = options.threads
        self._index_rules = IndexRules(duplicates=options.duplicates)
        self._labels = libsvm.LabelPresence(required=False)
        self._n_rows = 0

    def open(self, path: str, stdin: BinaryIO | None) -> Iterator[CodedRatings]:
        stream = open_binary(path, stdin)
        blocks = self._labels.watch(text_of(text_blocks(stream, path), path))

        def parse(block: TextBlock) -> tuple[RowBlock, CodedText]:
            labelled = self._labels.settled
            rows = libsvm.parse_block(block, path, self._index_rules, labelled)
            items = coded_ids(pa.array(rows.indices))
            entry = first_refused(items, self._rule.allows)
            if entry is not None:
                row = int(np.searchsorted(rows.indptr, entry, side="right")) - 1
                line = self._line_of(block, row, labelled)
                message = f"the item {self._rule.message}"
                raise DataError(message, path=path, line=line, hint=self._rule.hint)
            return rows, items

        return closing_with(stream, self._numbered(ordered_map(parse, blocks, self._threads)))

    def _numbered(self, parsed: Iterator[tuple[RowBlock, CodedText]]) -> Iterator[CodedRatings]:
        for rows, items in parsed:
            codes = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
            first = self._n_rows + 1
            self._n_rows += rows.n_rows
            texts = [str(number) for number in range(first, first + rows.n_rows)]
            yield CodedRatings(CodedText(codes, texts), items, rows.values)

    def _line_of(self, block: TextBlock, row: int, labelled: bool) -> int:
        """The line of a record of a block that was parsed without a fault."""
        for line, text in enumerate(block.data.split(b"\n"), start=block.first_line):
            try:
                row -= libsvm_reference.parse_line(text, self._index_rules, labelled) is not None
            except LineFault:
                break
            if row < 0:
                return line
        raise AssertionError("the block has fewer records than were parsed")


class MatrixRatings:
    """Matrix Market files: rows are users, columns items.

    The rows of a second file are further users, the columns the same items.

    Parameters
    ----------
    options : RatingOptions
    rule : ItemRule
    """

    def __init__(self, options: RatingOptions, rule: ItemRule) -> None:
        options.refuse_columns("a Matrix Market file")
        self._rule = rule
        self._threads = options.threads
        self._columns: int | None = None
        self._n_rows = 0

    def open(self, path: str, stdin: BinaryIO | None) -> Iterator[CodedRatings]:
        stream = open_binary(path, stdin)
        try:
            found = read_size(text_of(text_blocks(stream, path), path), path)
            if found is None:
                raise DataError("the file is empty", path=path)
            return closing_with(stream, self._ratings(*found, path))
        except BaseException:
            stream.close()
            raise

    def _ratings(
        self, size: MatrixSize, blocks: Iterator[TextBlock], path: str
    ) -> Iterator[CodedRatings]:
        if self._columns not in (None, size.columns):
            raise DataError("the first file has another number of columns", path=path)
        self._columns = size.columns
        above, self._n_rows = self._n_rows, self._n_rows + size.rows
        for block, entries in _counted(
            blocks, EntryParser(path, size, self._rule), size, self._threads
        ):
            yield CodedRatings(
                coded_ids(pa.array(entries.row + above)),
                coded_ids(pa.array(entries.column)),
                entries.value,
                line_of_first(block, len(entries)),
            )


def _counted(
    blocks: Iterator[TextBlock], parser: EntryParser, size: MatrixSize, threads: int
) -> Iterator[tuple[TextBlock, Entries]]:
    """Blocks and entries of a file, which must be as many as its size says."""

    def parse(block: TextBlock) -> tuple[TextBlock, Entries]:
        return block, parser.parse(block)

    missing = size.entries
    for block, entries in ordered_map(parse, blocks, threads):
        if len(entries) > missing:
            raise parser.fault(block, missing, "there are more entries than the size line says")
        missing -= len(entries)
        yield block, entries
    if missing:
        raise DataError("there are fewer entries than the size line says", path=parser.path)
