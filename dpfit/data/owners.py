"""Identifiers of the privacy units that records belong to, as every reader finds them.

A unit, a person for instance, owns all records with the same identifier. Identifiers are texts,
compared letter by letter once blanks at their ends are gone; whole numbers of typed formats are the
texts of their digits.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from dpfit.data.encode import CellFault, CodedText, coded_text
from dpfit.data.id_table import first_refused
from dpfit.data.indices import LineFault

QUERY: Final = "qid"
"""What names the identifiers of a LIBSVM file."""

EMPTY: Final = "is empty"
HINT: Final = "every record needs its --unit"

_QUERY_OF_LINE = re.compile(
    rb"^[ \t]*[^ \t\n#:]+[ \t]+qid:([0-9]{1,19})(?=[ \t\r\n])", re.MULTILINE
)
_QUERY: Final = b"qid:"


@dataclass(frozen=True)
class OwnerColumn:
    """The column of a table that holds identifiers of units.

    Attributes
    ----------
    name : str
    position : int
        Its place in the file.
    """

    name: str
    position: int


def owners_of(array: pa.Array, column: OwnerColumn, na: Collection[str]) -> CodedText:
    """Identifiers of a string or dictionary array; an empty one is a fault."""
    cells = coded_text(array, na)
    empty = first_refused(cells, bool)
    if empty is not None:
        raise CellFault(empty, EMPTY, column=column.name, hint=HINT)
    return cells


def coded(texts: Sequence[str]) -> CodedText:
    """Identifiers of records, one a record, each distinct text once."""
    code = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    codes = np.fromiter((code[text] for text in texts), np.int64, count=len(texts))
    return CodedText(codes, list(code))


def query_of(line: bytes) -> str:
    """Identifier of a LIBSVM record: the one ``qid:NUMBER`` of a line that was parsed."""
    fields = line.split(b"#", 1)[0].split()
    found = [field.removeprefix(_QUERY) for field in fields if field.startswith(_QUERY)]
    if len(found) != 1:
        what = "no qid" if not found else "more than one qid"
        raise LineFault(f"the record has {what}", "--unit qid needs one on every line")
    return _number(found[0])


def queries_of(data: bytes, n_rows: int) -> CodedText | None:
    """Identifiers of the records of a block, or None if not sure.

    Each record then has its only ``qid`` right after its label.
    """
    found = _QUERY_OF_LINE.findall(data)
    if not len(found) == n_rows == data.count(_QUERY):
        return None
    return coded([_number(digits) for digits in found])


def _number(digits: bytes) -> str:
    return digits.lstrip(b"0").decode() or "0"
