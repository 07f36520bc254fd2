"""CSV and TSV to row blocks: pyarrow's parser under strict checks, the slow second look behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from dpfit.data import table_reference
from dpfit.data.attributes import offset_and_weight
from dpfit.data.encode import (
    CellFault,
    CodedText,
    attribute_numbers,
    check_labels,
    coded_text,
    finite_numbers,
    sparse_rows,
    text_labels,
)
from dpfit.data.numbers import BadNumber, parse_number
from dpfit.data.owners import owners_of
from dpfit.data.parsed_table import NOT_PARSED, parsed_table
from dpfit.data.pipeline import ordered_map
from dpfit.data.plain_records import PlainRecords, spells_nan
from dpfit.data.rows import RowBlock
from dpfit.data.table_reference import TablePlan
from dpfit.data.text_blocks import TextBlock
from dpfit.errors import UsageError
from dpfit.files.arrow_errors import memory_apart


class LabelKind:
    """Whether labels are text: declared, or as in the first records of the input.

    Parameters
    ----------
    textual : bool, optional
        None lets the first block that holds records decide.
    """

    def __init__(self, textual: bool | None) -> None:
        self.textual = textual


def read_delimited(
    blocks: Iterator[TextBlock], path: str, plan: TablePlan, kind: LabelKind, threads: int = 1
) -> Iterator[RowBlock]:
    """Yield the row blocks of one delimited file, its header already taken off.

    Parameters
    ----------
    blocks : iterator of TextBlock
        Cut with ``quote=b'"'``.
    path : str
        The file's name for errors.
    plan : TablePlan
        Its ``textual`` is ruled by ``kind``.
    kind : LabelKind
        Shared by the files of one input.
    threads : int
        Blocks parsed at a time; the result does not depend on it.
    """
    if kind.textual is None and plan.label is not None:
        yield from _deciding_blocks(blocks, path, plan, kind)
    settled = BlockParser(path, replace(plan, textual=bool(kind.textual)))
    yield from ordered_map(settled.parse, blocks, threads)


def _deciding_blocks(
    blocks: Iterator[TextBlock], path: str, plan: TablePlan, kind: LabelKind
) -> Iterator[RowBlock]:
    parser = BlockParser(path, replace(plan, textual=True))
    for block in blocks:
        rows = parser.parse(block)
        if rows.n_rows:
            numeric = _as_numbers(rows)
            kind.textual = numeric is None
            yield rows if numeric is None else numeric
            return


def _as_numbers(rows: RowBlock) -> RowBlock | None:
    assert rows.target is not None
    try:
        known = {text: parse_number(text.encode()) for text in set(rows.target.tolist())}
    except BadNumber:
        return None
    target = np.array([known[text] for text in rows.target], dtype=np.float64)
    return replace(rows, target=target)


class BlockParser:
    """Parses the blocks of one file; the options of pyarrow are made once."""

    def __init__(self, path: str, plan: TablePlan) -> None:
        self._path = path
        self._plan = plan
        self._parse_options = pacsv.ParseOptions(
            delimiter=plan.delimiter.decode(), newlines_in_values=True
        )
        self._na_numbers = list(_numbers_among(plan.feature_map.na))
        self._names = [str(i) for i in range(plan.n_fields)]
        self._convert_options = self._conversions()
        self._plain = PlainRecords(plan.delimiter, plan.n_fields)

    def parse(self, block: TextBlock) -> RowBlock:
        """Rows of the block; see `table_reference.parse_block` for the contract."""
        rows = self.parse_fast(block.data)
        return rows or table_reference.parse_block(block, self._path, self._plan)

    def parse_fast(self, data: bytes) -> RowBlock | None:
        """Rows of the block as the reference parser would give them, or None if not sure."""
        if not data.replace(b"\r\n", b"\n").strip(b"\n"):
            return self._no_rows()
        if not self._plain.accepts(data):
            return None
        try:
            with memory_apart():
                table = parsed_table(data, self._names, self._parse_options, self._convert_options)
                return self._rows(table) if table.num_rows else None
        except (*NOT_PARSED, CellFault):
            return None

    def _no_rows(self) -> RowBlock:
        nothing = TextBlock(b"", 1, 0)
        return table_reference.parse_block(nothing, self._path, self._plan)

    def _may_be_na(self, array: pa.Array) -> bool:
        """Whether a number equals one that stands for an empty cell, in whatever spelling."""
        if array.type != pa.float64():
            return False
        return bool(np.isin(array.to_numpy(zero_copy_only=False), self._na_numbers).any())

    def _conversions(self) -> pacsv.ConvertOptions:
        plan, names = self._plan, self._names
        text = pa.dictionary(pa.int32(), pa.string())
        types = {
            names[position]: pa.float64() if column.role == "numeric" else text
            for column, position in zip(plan.feature_map.columns, plan.positions, strict=True)
        }
        if plan.label is not None:
            types[names[plan.label]] = text if plan.textual else pa.float64()
        types.update((names[column.position], pa.float64()) for column in plan.attributes)
        if plan.owner is not None:
            types[names[plan.owner.position]] = text
        return pacsv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=["", *plan.feature_map.na],
            strings_can_be_null=False,
        )

    def _rows(self, table: pa.Table) -> RowBlock:
        plan = self._plan
        # One block of pyarrow's parser holds it all, so this copies nothing.
        batch = table.combine_chunks().to_batches()[0]
        arrays = batch.columns
        if any(array.type == pa.float64() and spells_nan(array) for array in arrays):
            raise CellFault(0, "is NaN")
        if self._na_numbers and any(map(self._may_be_na, arrays)):
            raise CellFault(0, "may count as empty")
        columns = arrays[: len(plan.positions)]
        rows = sparse_rows(plan.feature_map, columns, table.num_rows, plan.missing)
        target = None if plan.label is None else self._target(arrays[len(columns)])
        attributes = {
            column.role: attribute_numbers(batch.column(self._names[column.position]), column)
            for column in plan.attributes
        }
        return RowBlock(*rows, target, *offset_and_weight(attributes), self._owner(batch))

    def _owner(self, batch: pa.RecordBatch) -> CodedText | None:
        column = self._plan.owner
        if column is None:
            return None
        cells = batch.column(self._names[column.position])
        return owners_of(cells, column, self._plan.feature_map.na)

    def _target(self, label: pa.Array) -> NDArray[np.float64] | NDArray[np.object_]:
        target: NDArray[np.float64] | NDArray[np.object_]
        if self._plan.textual:
            target = text_labels(coded_text(label, self._plan.feature_map.na))
        else:
            target = finite_numbers(label)
        check_labels(target, self._plan.labels)
        return target


def _numbers_among(texts: tuple[str, ...]) -> Iterator[float]:
    for text in texts:
        try:
            yield parse_number(text.encode("utf-8", "surrogatepass"))
        except BadNumber:
            continue


def delimiter_of(kind: str, declared: str | None) -> bytes:
    """The one-byte field separator of a format; ``declared`` wins.

    Raises
    ------
    UsageError
        If it cannot separate fields.
    """
    if declared is None:
        return b"\t" if kind == "tsv" else b","
    if declared in ("\\t", "tab"):
        return b"\t"
    allowed = len(declared) == 1 and declared.isascii() and not declared.isalnum()
    if not allowed or declared in '"\r\n\0.+-_':
        raise UsageError("--delimiter must be one character that no number and no quote uses")
    return declared.encode()
