"""Which delimited text pyarrow's parser reads just as the strict record parser would."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

_QUOTED_FIELD = rb'(?<![^%b\n])"(?:[^"]++|"")*+"(?=[%b\r\n])'


class PlainRecords:
    """Looks at a block of records before pyarrow does.

    Parameters
    ----------
    delimiter : bytes
    n_fields : int
        Fields of every record.
    """

    def __init__(self, delimiter: bytes, n_fields: int) -> None:
        self._delimiter = delimiter
        self._n_fields = n_fields
        escaped = re.escape(delimiter)
        self._quoted_field = re.compile(_QUOTED_FIELD % (escaped, escaped))

    def accepts(self, data: bytes) -> bool:
        """Whether blank lines, returns and quotes of the block mean to pyarrow what they should."""
        # One column: pyarrow cannot tell a blank line from an empty cell.
        if self._n_fields == 1 or b"\0" in data:
            return False
        # pyarrow would drop this mark in front of any block, not only of the file.
        if data.startswith(b"\xef\xbb\xbf"):
            return False
        if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
            return False
        # pyarrow takes quotes anywhere: every one must belong to a well-formed field.
        if b'"' not in data or self._has_simple_quotes(data):
            return True
        return b'"' not in self._quoted_field.sub(b"", data)

    def _has_simple_quotes(self, data: bytes) -> bool:
        """Whether quotes alternately open a field and close it: no doubled ones, no strays."""
        letters = np.frombuffer(data, dtype=np.uint8)
        at = np.flatnonzero(letters == ord('"'))
        if len(at) % 2:
            return False
        opening, closing = at[0::2], at[1::2]
        if opening[0] == 0:
            opening = opening[1:]
        before, after = letters[opening - 1], letters[closing + 1]
        delimiter, newline = self._delimiter[0], ord("\n")
        starts = (before == delimiter) | (before == newline)
        ends = (after == delimiter) | (after == newline) | (after == ord("\r"))
        return bool(starts.all() and ends.all())


def spells_nan(array: pa.Array) -> bool:
    """Whether a NaN was read from text: the strict parser knows fewer spellings than pyarrow."""
    return bool(array.null_count != array.is_null(nan_is_null=True).true_count)
