"""The head of a delimited file: the names of its columns, and where its records begin."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain

from dpfit.data.csv_records import Record, records
from dpfit.data.numbers import is_numeric
from dpfit.data.text_blocks import TextBlock
from dpfit.errors import DataError

_PAIRS = re.compile(rb"[^\s:,]+(?:[ \t]+[0-9]+:[^\s:,]+)+[ \t]*\Z")


@dataclass(frozen=True)
class TableHead:
    """What the first record of a file told.

    Attributes
    ----------
    names : list of str
        Of the columns; ``c1``, ``c2``, ... without a header.
    blocks : iterator of TextBlock
        The records, a header left out.
    """

    names: list[str]
    blocks: Iterator[TextBlock]


def read_head(
    blocks: Iterator[TextBlock],
    path: str,
    delimiter: bytes,
    *,
    header: bool,
    declared: Collection[str],
    numbers_hint: str,
) -> TableHead | None:
    """Read the first record of a file; None if there is none.

    Parameters
    ----------
    blocks : iterator of TextBlock
        Of the whole file, cut with ``quote=b'"'``.
    path : str
        The file's name for errors.
    delimiter : bytes
    header : bool
        Whether the first record names the columns.
    declared : collection of str
        Names that stand outside the file and may therefore be numbers.
    numbers_hint : str
        What to do about names that are numbers and not declared.

    Raises
    ------
    DataError
        The first record is LIBSVM, or no header.
    """
    first, block = _first_record(blocks, path, delimiter)
    if first is None or block is None:
        return None
    # A colon in some cell means nothing: only a record that is nothing but pairs does.
    if len(first.fields) == 1 and _PAIRS.match(first.fields[0]):
        raise DataError(
            "the first record consists of INDEX:VALUE pairs",
            path=path,
            line=first.line,
            hint="give --format libsvm",
        )
    if not header:
        names = [f"c{i + 1}" for i in range(len(first.fields))]
        return TableHead(names, chain([block], blocks))
    names = _header_names(first, path)
    _refuse_numbers(names, path, first.line, declared, numbers_hint)
    rest = block.data[first.end :]
    line = block.first_line + block.data.count(b"\n", 0, first.end)
    following = [TextBlock(rest, line, rest.count(b"\n"))] if rest else []
    return TableHead(names, chain(following, blocks))


def _first_record(
    blocks: Iterator[TextBlock], path: str, delimiter: bytes
) -> tuple[Record | None, TextBlock | None]:
    for block in blocks:
        if not block.data.replace(b"\r\n", b"\n").strip(b"\n"):
            continue
        for record in records(block, path, delimiter):
            return record, block
    return None, None


def _refuse_numbers(
    names: list[str], path: str, line: int, declared: Collection[str], hint: str
) -> None:
    """A number among the names means that the first record is none of names, but of data."""
    numbers = [i for i, name in enumerate(names, 1) if is_numeric(name) and name not in declared]
    if not numbers:
        return
    many = len(numbers) > 1
    what = (
        f"names of columns {_listed(numbers)} are numbers"
        if many
        else (f"name of column {numbers[0]} is a number")
    )
    raise DataError(f"the {what}: is this a record?", path=path, line=line, hint=hint)


def _listed(numbers: list[int]) -> str:
    """``1, 2 and 3``, cut after a few."""
    if len(numbers) > 6:
        return ", ".join(map(str, numbers[:5])) + f" and {len(numbers) - 5} more"
    return ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"


_NAMELESS = "give it a name in the header; without a header see --no-header"
_NAMELESS_FIRST = (
    "is it an index? pandas leaves it out by to_csv(index=False); else give it a name in the header"
)


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
            raise DataError(
                f"column {number} has no name",
                path=path,
                line=first.line,
                hint=_NAMELESS_FIRST if number == 1 and len(names) > 1 else _NAMELESS,
            )
        if name in seen:
            # The name itself stays unsaid: a missing header would make it a record's cell.
            message = f"columns {seen[name]} and {number} have the same name"
            raise DataError(message, path=path, line=first.line, hint="see --no-header")
        seen[name] = number
    return names
