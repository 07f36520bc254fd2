"""RFC 4180 records of a text block, one by one: slow, strict, with line numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from dpfit.data.text_blocks import NOT_TEXT, TextBlock
from dpfit.errors import DataError

_QUOTING = 'a field with quotes is written "so ""to say"""; JSON is not read: make it CSV'

_QUOTED = re.compile(rb'"((?:[^"]++|"")*+)"')


@dataclass(frozen=True)
class Record:
    """One record.

    Attributes
    ----------
    line : int
        Physical line on which it starts.
    fields : list of bytes
        Cells, quotes resolved.
    end : int
        Offset of the byte after the record in its block.
    """

    line: int
    fields: list[bytes]
    end: int


@lru_cache(maxsize=8)
def _unquoted(delimiter: bytes) -> re.Pattern[bytes]:
    return re.compile(rb'[^"\r\n' + re.escape(delimiter) + rb"]*")


def records(block: TextBlock, path: str, delimiter: bytes) -> Iterator[Record]:
    """Yield the records of a block, blank lines left out.

    Raises
    ------
    DataError
        A field breaks the quoting rules, or the record holds a NUL byte or a lone carriage return.
    """
    data, position, line = block.data, 0, block.first_line
    blanks = b" \t".replace(delimiter, b"")
    while position < len(data):
        fields, end = _record(data, position, path, line, delimiter)
        if data.find(b"\0", position, end) >= 0:
            raise DataError("the record holds a NUL byte", path=path, line=line, hint=NOT_TEXT)
        if len(fields) > 1 or data[position:end].strip(blanks + b"\r\n"):
            yield Record(line, fields, end)
        line += data.count(b"\n", position, end)
        position = end


def _record(
    data: bytes, position: int, path: str, line: int, delimiter: bytes
) -> tuple[list[bytes], int]:
    fields: list[bytes] = []
    while True:
        if data.startswith(b'"', position):
            field = _QUOTED.match(data, position)
            if field is None:
                raise DataError("a quoted field never ends", path=path, line=line, hint=_QUOTING)
            fields.append(field[1].replace(b'""', b'"'))
        else:
            field = _unquoted(delimiter).match(data, position)
            assert field is not None  # the pattern matches the empty text
            fields.append(field[0])
        position = field.end()
        if data.startswith(delimiter, position):
            position += 1
            continue
        for line_end in (b"\n", b"\r\n"):
            if data.startswith(line_end, position):
                return fields, position + len(line_end)
        raise DataError(_fault(data, position), path=path, line=line, hint=_QUOTING)


def _fault(data: bytes, position: int) -> str:
    if data.startswith(b"\r", position):
        return "a carriage return stands inside the line"
    if data.startswith(b'"', position):
        return "a quote stands inside a field that does not start with one"
    return "text follows the closing quote of a field"
