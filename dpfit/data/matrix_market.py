"""Matrix Market coordinate files: rows are users, columns are items.

The text is a banner, comments that begin with ``%``, a line ``ROWS COLUMNS ENTRIES`` and one line
``ROW COLUMN VALUE`` for each entry, all counted from 1. A block of entries is read by pyarrow's
parser when it holds nothing but decimal numbers and single blanks; any other block is read line by
line, which decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from dpfit.data.indices import MAX_INDEX, LineFault
from dpfit.data.numbers import BadNumber, parse_number
from dpfit.data.parsed_table import NOT_PARSED, parsed_table
from dpfit.data.rating_rows import ItemRule
from dpfit.data.text_blocks import TextBlock
from dpfit.errors import DataError
from dpfit.files.arrow_errors import memory_apart

_BANNER: Final = "%%MatrixMarket matrix coordinate real general"
_ALPHABET: Final = b"0123456789.-+eE \n"
_TABS: Final = bytes.maketrans(b"\t", b" ")
_WHOLE: Final = re.compile(rb"[0-9]{1,18}\Z")
_LINE_ENDS: Final = re.compile(rb" *\n *")
_GAPS: Final = re.compile(rb"  +")


@dataclass(frozen=True)
class MatrixSize:
    """The size line of a file.

    Attributes
    ----------
    rows, columns, entries : int
    """

    rows: int
    columns: int
    entries: int


@dataclass(frozen=True)
class Entries:
    """Entries of a block, counted from 1 as in the file.

    Attributes
    ----------
    row, column : int64 array, shape (n,)
    value : float64 array, shape (n,)
    """

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    value: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.row)


Entry: TypeAlias = tuple[int, int, float]


def read_size(
    blocks: Iterator[TextBlock], path: str
) -> tuple[MatrixSize, Iterator[TextBlock]] | None:
    """The size of a matrix, and the blocks that hold its entries; None for an empty file.

    Raises
    ------
    DataError
        The file is of another kind, or of a kind of matrix that holds no ratings.
    """
    seen_banner = False
    for block in blocks:
        start, line = 0, block.first_line
        while (end := block.data.find(b"\n", start)) >= 0:
            text = block.data[start:end].removesuffix(b"\r")
            start = end + 1
            try:
                if not seen_banner:
                    _check_banner(text)
                    seen_banner = True
                elif text.strip(b" \t") and not text.startswith(b"%"):
                    rest = TextBlock(block.data[start:], line + 1, block.data.count(b"\n", start))
                    return _size(text), chain([rest], blocks)
            except LineFault as fault:
                raise DataError(fault.message, path=path, line=line, hint=fault.hint) from None
            line += 1
    if seen_banner:
        raise DataError("the file ends before its size line", path=path)
    return None


def _check_banner(text: bytes) -> None:
    words = text.lower().split()
    if not words or words[0] != b"%%matrixmarket":
        raise LineFault("the first line is no Matrix Market banner", f"it begins with {_BANNER}")
    if len(words) != 5 or words[1] != b"matrix":
        raise LineFault("the banner names no matrix", f"a matrix of ratings is {_BANNER}")
    _, _, layout, field, symmetry = words
    if layout != b"coordinate":
        raise LineFault("the matrix is not in coordinate form", "every cell would be a rating")
    if field == b"pattern":
        raise LineFault("a pattern matrix holds no values", "ratings are real or integer")
    if field not in (b"real", b"integer", b"double"):
        raise LineFault("the values are neither real nor integer")
    if symmetry != b"general":
        raise LineFault("a symmetric matrix does not tell users from items", "write it as general")


def _size(text: bytes) -> MatrixSize:
    words = text.split()
    if len(words) != 3 or not all(map(_WHOLE.match, words)):
        raise LineFault("the size line does not hold three whole numbers")
    rows, columns, entries = map(int, words)
    if max(rows, columns) > MAX_INDEX:
        raise LineFault("the matrix has over 2^31 - 2 rows or columns")
    return MatrixSize(rows, columns, entries)


class EntryParser:
    """Parses blocks of entries of one file."""

    def __init__(self, path: str, size: MatrixSize, rule: ItemRule) -> None:
        self.path = path
        self._size = size
        self._rule = rule

    def parse(self, block: TextBlock) -> Entries:
        """Entries of the block, by the slow way if the fast one is not sure.

        Raises
        ------
        DataError
            At the first faulty line.
        """
        fast = self.parse_fast(block.data)
        return fast or self.parse_slowly(block)

    def parse_fast(self, data: bytes) -> Entries | None:
        """Entries of the block as read line by line, or None if not sure."""
        text = data.replace(b"\r\n", b"\n").translate(_TABS)
        if text.translate(None, _ALPHABET):
            return None
        if b"  " in text or b" \n" in text or b"\n " in text or text.startswith(b" "):
            text = _GAPS.sub(b" ", _LINE_ENDS.sub(b"\n", b"\n" + text))
        if not text.strip(b"\n"):
            return None
        try:
            with memory_apart():
                table = parsed_table(text, ["row", "column", "value"], _PARSE, _CONVERT)
        except NOT_PARSED:
            return None
        if table.num_rows == 0 or any(column.null_count for column in table.columns):
            return None
        row, column, value = (part.combine_chunks().to_numpy() for part in table.columns)
        return self._checked(Entries(row.astype(np.int64), column.astype(np.int64), value))

    def _checked(self, entries: Entries) -> Entries | None:
        within = (
            entries.row.min() >= 1
            and entries.column.min() >= 1
            and entries.row.max() <= self._size.rows
            and entries.column.max() <= self._size.columns
        )
        if not (within and np.isfinite(entries.value).all()):
            return None
        if self._rule.known is not None:
            columns = np.unique(entries.column).tolist()
            if not all(self._rule.allows(str(column)) for column in columns):
                return None
        return entries

    def parse_slowly(self, block: TextBlock) -> Entries:
        """Entries of the block line by line; a faulty one is a `DataError`."""
        found = [entry for _, entry in self._lines(block)]
        row, column, value = zip(*found, strict=True) if found else ((), (), ())
        return Entries(
            np.array(row, np.int64), np.array(column, np.int64), np.array(value, np.float64)
        )

    def fault(self, block: TextBlock, entry: int, message: str) -> DataError:
        """What is wrong with an entry of the block, counted from 0."""
        line = [line for line, _ in self._lines(block)][entry]
        return DataError(message, path=self.path, line=line)

    def _lines(self, block: TextBlock) -> Iterator[tuple[int, Entry]]:
        for line, text in enumerate(block.data.split(b"\n")[:-1], start=block.first_line):
            try:
                entry = self._entry(text.removesuffix(b"\r"))
            except LineFault as fault:
                hint = fault.hint
                raise DataError(fault.message, path=self.path, line=line, hint=hint) from None
            if entry is not None:
                yield line, entry

    def _entry(self, text: bytes) -> Entry | None:
        if b"\0" in text or b"\r" in text:
            raise LineFault("the line holds a NUL byte or a carriage return")
        words = [word for word in re.split(rb"[ \t]+", text) if word]
        if not words:
            return None
        if len(words) != 3:
            raise LineFault("the line does not hold a row, a column and a value")
        row = _place(words[0], self._size.rows, "row")
        column = _place(words[1], self._size.columns, "column")
        if not self._rule.allows(str(column)):
            raise LineFault(f"the item {self._rule.message}", self._rule.hint)
        try:
            return row, column, parse_number(words[2])
        except BadNumber as bad:
            raise LineFault(f"the value {bad}") from None


_PARSE: Final = pacsv.ParseOptions(delimiter=" ", quote_char=False)
# Unsigned, since pyarrow then refuses a sign and thus "-0".
_CONVERT: Final = pacsv.ConvertOptions(
    column_types={"row": pa.uint32(), "column": pa.uint32(), "value": pa.float64()},
    null_values=[""],
    strings_can_be_null=False,
)


def _place(word: bytes, largest: int, what: str) -> int:
    digits = word.lstrip(b"0")
    if not word.isdigit():
        raise LineFault(f"the {what} is not a whole number")
    # More digits than any size has: avoid the quadratic conversion of a hostile word.
    number = int(digits or b"0") if len(digits) <= 18 else 10**18
    if not 1 <= number <= largest:
        raise LineFault(f"the {what} is outside the size that the file declares")
    return number
