"""How the columns of a Parquet file say they are stored.

The footer is a struct of Thrift's compact protocol. It is decoded here because pyarrow ends the
whole process when it is asked for the metadata of a column that it cannot accept, such as a codec
of a number that it does not know.
"""

from __future__ import annotations

import io
import os
from typing import IO, Any, Final

_SIGN: Final = b"PAR1"
# Fields by number in parquet.thrift: row groups of the file, columns of a group, the metadata of a
# column, and in it the encodings, the codec and the number of values.
_GROUPS, _COLUMNS, _COLUMN, _ENCODINGS, _CODEC, _VALUES = 4, 1, 3, 2, 4, 5
_TRUE, _FALSE, _BYTE, _DOUBLE, _TEXT, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_VARINTS: Final = (4, 5, 6)  # i16, i32, i64
_DEEPEST: Final = 20


def stored_by(data: bytes) -> list[tuple[int, frozenset[int]]]:
    """Codec and encodings, by their numbers, of every column chunk of a file.

    Raises
    ------
    ValueError
        The footer is damaged.
    """
    try:
        chunks = [chunk for group in _groups(io.BytesIO(data)) for chunk in group]
        return [(chunk[_CODEC], frozenset(chunk[_ENCODINGS])) for chunk in chunks]
    except (IndexError, KeyError, TypeError):
        raise ValueError("its footer is damaged") from None


def value_counts(file: IO[bytes]) -> list[list[int]]:
    """How many values each column chunk of each row group says that it holds.

    Raises
    ------
    ValueError
        The footer is damaged.
    """
    try:
        return [[int(chunk[_VALUES]) for chunk in group] for group in _groups(file)]
    except (IndexError, KeyError, TypeError):
        raise ValueError("its footer is damaged") from None


def _groups(file: IO[bytes]) -> list[list[dict[int, Any]]]:
    """The metadata of the columns of each row group."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 8))
    end = file.read()
    length = int.from_bytes(end[:4], "little")
    if end[4:] != _SIGN or length + 8 > size:
        raise ValueError("its footer is damaged")
    file.seek(size - 8 - length)
    groups = _Struct(file.read(length)).fields(0)[_GROUPS]
    return [[chunk[_COLUMN] for chunk in group[_COLUMNS]] for group in groups]


class _Struct:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def fields(self, depth: int) -> dict[int, Any]:
        """The struct that begins here, by number of the field."""
        if depth > _DEEPEST:
            raise ValueError("its footer is nested too deep")
        found: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            found[number] = self._value(head & 15, depth, in_list=False)
        return found

    def _value(self, kind: int, depth: int, *, in_list: bool) -> Any:
        if kind in (_TRUE, _FALSE):
            return self._byte() == _TRUE if in_list else kind == _TRUE
        if kind == _BYTE:
            return self._byte()
        if kind in _VARINTS:
            return self._integer()
        if kind in (_DOUBLE, _TEXT):
            length = 8 if kind == _DOUBLE else self._varint()
            self._at += length
            return None
        if kind in (_LIST, _SET):
            return self._list(depth)
        if kind == _STRUCT:
            return self.fields(depth + 1)
        raise ValueError("its footer is damaged")

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        size = head >> 4 if head >> 4 < 15 else self._varint()
        if size > len(self._data):
            raise ValueError("its footer is damaged")
        return [self._value(head & 15, depth + 1, in_list=True) for _ in range(size)]

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while (part := self._byte()) & 128:
            value |= (part & 127) << shift
            shift += 7
            if shift > 63:
                raise ValueError("its footer is damaged")
        return value | part << shift

    def _integer(self) -> int:
        """Zigzag: the sign is the lowest bit."""
        value = self._varint()
        return value >> 1 ^ -(value & 1)
