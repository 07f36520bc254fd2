"""CSV records to sparse rows, cell by cell: the law that the fast parser must obey."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dpfit.data.advice import Cause, advice, text_advice, unknown_label
from dpfit.data.attributes import AttributeColumn, offset_and_weight
from dpfit.data.csv_records import Record, records
from dpfit.data.features import FeatureColumn, FeatureMap, hashed_feature, listed_names
from dpfit.data.numbers import BadNumber, parse_number
from dpfit.data.owners import EMPTY, HINT, OwnerColumn, coded
from dpfit.data.rows import RowBlock
from dpfit.data.schema import one_line
from dpfit.data.text_blocks import TextBlock
from dpfit.errors import DataError

Column: TypeAlias = FeatureColumn | AttributeColumn

_BLANKS = b" \t"
_NO_LABEL = "every record needs its target: is --label the right column?"
_FIELDS = "a field that holds the delimiter stands in quotes; see --delimiter"


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
    labels : tuple, optional
        The labels that may occur, of the kind that ``textual`` says.
    named : bool
        Whether a header names the columns.
    predicting : bool
        Whether a model rules the columns.
    attributes : tuple of AttributeColumn
        Those to be read.
    owner : OwnerColumn, optional
        That of the privacy units.
    """

    delimiter: bytes
    n_fields: int
    feature_map: FeatureMap
    positions: tuple[int, ...]
    label: int | None
    textual: bool
    missing: str
    labels: tuple[float, ...] | tuple[str, ...] | None = None
    named: bool = True
    predicting: bool = False
    attributes: tuple[AttributeColumn, ...] = ()
    owner: OwnerColumn | None = None


class _Cell:
    """Reads the cells of one record; knows the place for errors."""

    def __init__(self, plan: TablePlan, path: str, record: Record) -> None:
        self.plan = plan
        self.path = path
        self.record = record

    def fault(self, what: str, message: str, hint: str | None = None) -> DataError:
        return DataError(f"{what} {message}", path=self.path, line=self.record.line, hint=hint)

    def fault_of(
        self, column: Column, position: int, message: str, cause: Cause | None = None
    ) -> DataError:
        hint = advice(cause, column.name, predicting=self.plan.predicting)
        return self.fault(self.name_of(column, position), message, hint)

    def name_of(self, column: Column | OwnerColumn, position: int) -> str:
        field = f"field {position + 1}"
        return f"column '{one_line(column.name)}' ({field})" if self.plan.named else field

    def text(self, position: int, what: str) -> str:
        """The trimmed text of a cell; nothing for one that counts as empty."""
        try:
            text = self.record.fields[position].decode("utf-8").strip(" \t")
        except UnicodeDecodeError:
            raise self.fault(what, "is not UTF-8 text", "name its encoding: --encoding") from None
        return "" if text in self.plan.feature_map.na else text

    def number_text(self, position: int) -> bytes:
        """The same for a number, which must be ASCII anyway."""
        text = self.record.fields[position].strip(_BLANKS)
        return b"" if text in self.plan.feature_map.na_bytes else text

    def number(self, column: FeatureColumn, position: int) -> float:
        text = self.number_text(position)
        empty = _is_empty(text)
        if empty and self.plan.missing == "zero":
            return 0.0
        try:
            return parse_number(text)
        except BadNumber as bad:
            if bad.is_text and not empty:
                raise self.fault_of_texts() from None
            cause = Cause.MISSING if empty else None
            raise self.fault_of(column, position, str(bad), cause) from None

    def fault_of_texts(self) -> DataError:
        """All columns of numbers that hold text in this record, so that one look mends them."""
        plan = self.plan
        columns = zip(plan.feature_map.columns, plan.positions, strict=True)
        found = [(c, at) for c, at in columns if c.role == "numeric" and self._is_text(at)]
        names = [column.name for column, _ in found]
        hint = text_advice(names, predicting=plan.predicting)
        if len(found) == 1:
            return self.fault(self.name_of(*found[0]), "is not a number", hint)
        fields = [str(at + 1) for _, at in found]
        more = f" and {len(fields) - 10} more" if len(fields) > 10 else ""
        numbered = f"fields {', '.join(fields[:10])}{more}"
        what = f"columns {listed_names(names)}" if plan.named else numbered
        return self.fault(what, "are not numbers", hint)

    def _is_text(self, position: int) -> bool:
        text = self.number_text(position)
        try:
            parse_number(text)
        except BadNumber as bad:
            return bad.is_text and not _is_empty(text)
        return False


def _is_empty(text: bytes) -> bool:
    return not text or text.lower() in (b"nan", b"+nan", b"-nan")


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
    attributes: dict[str, list[float]] = {column.role: [] for column in plan.attributes}
    owners: list[str] = []
    for record in records(block, path, plan.delimiter):
        cell = _Cell(plan, path, record)
        entries = _entries(cell)
        lengths.append(len(entries))
        indices.extend(sorted(entries))
        values.extend(entries[index] for index in sorted(entries))
        if plan.label is not None:
            labels.append(_label(cell, plan.label))
        for column in plan.attributes:
            attributes[column.role].append(_attribute(cell, column))
        if plan.owner is not None:
            owners.append(_owner(cell, plan.owner))
    offset, weight = offset_and_weight(
        {role: np.array(numbers, dtype=np.float64) for role, numbers in attributes.items()}
    )
    target = np.empty(len(labels), dtype=object if plan.textual else np.float64)
    target[:] = labels
    return RowBlock(
        indptr=np.cumsum(lengths, dtype=np.int64),
        indices=np.array(indices, dtype=np.int32),
        values=np.array(values, dtype=np.float64),
        target=None if plan.label is None else target,
        offset=offset,
        weight=weight,
        owner=None if plan.owner is None else coded(owners),
    )


def _label(cell: _Cell, position: int) -> float | str:
    label = _any_label(cell, position)
    labels, predicting = cell.plan.labels, cell.plan.predicting
    if labels is not None and label not in labels:
        hint = advice(Cause.LABEL, "", predicting=predicting)
        raise cell.fault("the label", unknown_label(predicting=predicting), hint)
    return label


def _any_label(cell: _Cell, position: int) -> float | str:
    if cell.plan.textual:
        text = cell.text(position, "the label")
        if not text:
            raise cell.fault("the label", "is empty", _NO_LABEL)
        return text
    try:
        return parse_number(cell.number_text(position))
    except BadNumber as bad:
        hint = "for text labels see --labels" if bad.is_text and not cell.plan.predicting else None
        raise cell.fault("the label", str(bad), hint) from None


def _owner(cell: _Cell, column: OwnerColumn) -> str:
    name = cell.name_of(column, column.position)
    text = cell.text(column.position, name)
    if not text:
        raise cell.fault(name, EMPTY, HINT)
    return text


def _attribute(cell: _Cell, column: AttributeColumn) -> float:
    text = cell.number_text(column.position)
    try:
        number = parse_number(text)
    except BadNumber as bad:
        cause = Cause.ATTRIBUTE if _is_empty(text) else None
        raise cell.fault_of(column, column.position, str(bad), cause) from None
    if column.refused(np.array([number])).any():
        raise cell.fault_of(column, column.position, column.bound)
    return number


def _entries(cell: _Cell) -> dict[int, float]:
    plan, fields = cell.plan, cell.record.fields
    if len(fields) != plan.n_fields:
        found, expected = len(fields), plan.n_fields
        raise cell.fault("the record", f"has {found} fields where {expected} are expected", _FIELDS)
    entries: dict[int, float] = {}
    for column, position in zip(plan.feature_map.columns, plan.positions, strict=True):
        if column.role == "numeric":
            feature, value = column.start, column.mapped(cell.number(column, position))
        else:
            feature, value = _text_entry(cell, column, position)
        if value:
            entries[feature] = entries.get(feature, 0.0) + value
    return entries


def _text_entry(cell: _Cell, column: FeatureColumn, position: int) -> tuple[int, float]:
    text = cell.text(position, cell.name_of(column, position))
    if not text:
        if cell.plan.missing == "zero":
            return column.start, 0.0
        raise cell.fault_of(column, position, "is empty", Cause.MISSING)
    if column.role == "hashed":
        bits = column.width.bit_length() - 1
        return column.start + hashed_feature(column.name, text, bits), 1.0
    if text in column.feature_of:
        return column.feature_of[text], 1.0
    if column.other:
        return column.start, 0.0
    raise cell.fault_of(column, position, "has a level that is not declared", Cause.LEVEL)
