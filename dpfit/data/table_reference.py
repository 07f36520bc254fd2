"""CSV records to sparse rows, cell by cell: the law that the fast parser must obey."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpfit.data.csv_records import Record, records
from dpfit.data.features import FeatureColumn, FeatureMap, hashed_feature
from dpfit.data.numbers import BadNumber, parse_number
from dpfit.data.rows import RowBlock
from dpfit.data.text_blocks import TextBlock
from dpfit.errors import DataError

_BLANKS = b" \t"


@dataclass(frozen=True)
class TablePlan:
    """How to read the records of one delimited file.

    Attributes
    ----------
    delimiter : bytes
        One byte.
    n_fields : int
        Fields of every record.
    feature_map : FeatureMap
    positions : tuple of int
        Field of each column of the map.
    label : int, optional
        Field of the label.
    textual : bool
        Whether labels are text.
    missing : str
        ``error`` or ``zero``.
    """

    delimiter: bytes
    n_fields: int
    feature_map: FeatureMap
    positions: tuple[int, ...]
    label: int | None
    textual: bool
    missing: str


class _Cell:
    """Reads the cells of one record; knows the place for errors."""

    def __init__(self, plan: TablePlan, path: str, record: Record) -> None:
        self.plan = plan
        self.path = path
        self.record = record

    def fault(self, what: str, message: str, hint: str | None = None) -> DataError:
        return DataError(f"{what} {message}", path=self.path, line=self.record.line, hint=hint)

    def text(self, position: int, what: str) -> str:
        try:
            return self.record.fields[position].decode("utf-8").strip(" \t")
        except UnicodeDecodeError:
            raise self.fault(what, "is not UTF-8 text", "name its encoding: --encoding") from None

    def number(self, position: int, what: str, empty_is_zero: bool) -> float:
        text = self.record.fields[position].strip(_BLANKS)
        if empty_is_zero and (not text or text.lower() in (b"nan", b"+nan", b"-nan")):
            return 0.0
        try:
            return parse_number(text)
        except BadNumber as bad:
            raise self.fault(what, str(bad), _number_hint(text)) from None


def _number_hint(text: bytes) -> str | None:
    if not text or text.lower() == b"nan":
        return "see --missing zero"
    return "declare a text column as categorical or hashed"


def parse_block(block: TextBlock, path: str, plan: TablePlan) -> RowBlock:
    """Parse a block record by record.

    Raises
    ------
    DataError
        At the first faulty record.
    """
    lengths: list[int] = [0]
    indices: list[int] = []
    values: list[float] = []
    labels: list[float | str] = []
    for record in records(block, path, plan.delimiter):
        cell = _Cell(plan, path, record)
        entries = _entries(cell)
        lengths.append(len(entries))
        indices.extend(sorted(entries))
        values.extend(entries[index] for index in sorted(entries))
        if plan.label is not None:
            labels.append(_label(cell, plan.label))
    target = np.empty(len(labels), dtype=object if plan.textual else np.float64)
    target[:] = labels
    return RowBlock(
        indptr=np.cumsum(lengths, dtype=np.int64),
        indices=np.array(indices, dtype=np.int32),
        values=np.array(values, dtype=np.float64),
        target=None if plan.label is None else target,
    )


def _label(cell: _Cell, position: int) -> float | str:
    if not cell.plan.textual:
        return cell.number(position, "the label", False)
    text = cell.text(position, "the label")
    if not text:
        raise cell.fault("the label", "is empty")
    return text


def _entries(cell: _Cell) -> dict[int, float]:
    plan, fields = cell.plan, cell.record.fields
    if len(fields) != plan.n_fields:
        found, expected = len(fields), plan.n_fields
        raise cell.fault("the record", f"has {found} fields where {expected} are expected")
    entries: dict[int, float] = {}
    for column, position in zip(plan.feature_map.columns, plan.positions, strict=True):
        what = f"field {position + 1}"
        if column.role == "numeric":
            feature, value = column.start, cell.number(position, what, plan.missing == "zero")
        else:
            feature, value = _text_entry(cell, column, position, what)
        if value:
            entries[feature] = entries.get(feature, 0.0) + value
    return entries


def _text_entry(cell: _Cell, column: FeatureColumn, position: int, what: str) -> tuple[int, float]:
    text = cell.text(position, what)
    if not text:
        if cell.plan.missing == "zero":
            return column.start, 0.0
        raise cell.fault(what, "is empty", "see --missing zero")
    if column.role == "hashed":
        bits = column.width.bit_length() - 1
        return column.start + hashed_feature(column.name, text, bits), 1.0
    if text not in column.levels:
        raise cell.fault(what, "is none of the declared levels")
    return column.start + column.levels.index(text), 1.0
