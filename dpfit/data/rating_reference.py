"""CSV records to ratings, one by one: the law that the fast parser must obey."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpfit.data.csv_records import Record, records
from dpfit.data.encode import CodedText
from dpfit.data.numbers import BadNumber, parse_number
from dpfit.data.rating_rows import CodedRatings, ItemRule
from dpfit.data.text_blocks import TextBlock
from dpfit.errors import DataError

_BLANKS = b" \t"


@dataclass(frozen=True)
class RatingPlan:
    """How to read the records of one delimited file of ratings.

    Attributes
    ----------
    delimiter : bytes
        One byte.
    n_fields : int
        Fields of every record.
    user, item : int
        Their fields.
    value : int, optional
        Its field; None if values are not read.
    rule : ItemRule
    """

    delimiter: bytes
    n_fields: int
    user: int
    item: int
    value: int | None
    rule: ItemRule


class Codes:
    """Texts as they come, numbered by first appearance."""

    def __init__(self) -> None:
        self._code: dict[str, int] = {}
        self._cells: list[int] = []

    def add(self, text: str) -> None:
        self._cells.append(self._code.setdefault(text, len(self._code)))

    def coded(self) -> CodedText:
        return CodedText(np.array(self._cells, dtype=np.int64), list(self._code))


def parse_block(block: TextBlock, path: str, plan: RatingPlan) -> CodedRatings:
    """Parse a block record by record.

    Raises
    ------
    DataError
        At the first faulty record.
    """
    users, items = Codes(), Codes()
    values: list[float] = []
    for record in records(block, path, plan.delimiter):
        found, expected = len(record.fields), plan.n_fields
        if found != expected:
            message = f"the record has {found} fields where {expected} are expected"
            raise DataError(message, path=path, line=record.line)
        users.add(_id(record, plan.user, "the user", path))
        item = _id(record, plan.item, "the item", path)
        if not plan.rule.allows(item):
            message = f"the item (field {plan.item + 1}) {plan.rule.message}"
            raise DataError(message, path=path, line=record.line, hint=plan.rule.hint)
        items.add(item)
        if plan.value is not None:
            values.append(_value(record, plan.value, path))
    numbers = None if plan.value is None else np.array(values, dtype=np.float64)
    return CodedRatings(users.coded(), items.coded(), numbers)


def _id(record: Record, position: int, what: str, path: str) -> str:
    what = f"{what} (field {position + 1})"
    try:
        text = record.fields[position].decode("utf-8").strip(" \t")
    except UnicodeDecodeError:
        raise DataError(
            f"{what} is not UTF-8 text",
            path=path,
            line=record.line,
            hint="name its encoding: --encoding",
        ) from None
    if not text:
        raise DataError(f"{what} is empty", path=path, line=record.line)
    return text


def _value(record: Record, position: int, path: str) -> float:
    try:
        return parse_number(record.fields[position].strip(_BLANKS))
    except BadNumber as bad:
        message = f"the value (field {position + 1}) {bad}"
        raise DataError(message, path=path, line=record.line) from None
