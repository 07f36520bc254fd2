"""Parquet files to row blocks: wide tables, and two layouts for sparse rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pac
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpfit.data.advice import advice
from dpfit.data.attributes import AttributeColumn, offset_and_weight
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
from dpfit.data.features import FeatureMap
from dpfit.data.indices import (
    IndexRules,
    LineFault,
    NotCanonical,
    canonical,
    checked_index,
    store_entry,
)
from dpfit.data.owners import OwnerColumn, owners_of
from dpfit.data.parquet_columns import SparseLayout, as_float64, as_text, without_nulls
from dpfit.data.parquet_file import NOT_READABLE, damaged, entries_of_row
from dpfit.data.rows import RowBlock
from dpfit.data.schema import one_line
from dpfit.errors import DataError
from dpfit.files.arrow_errors import memory_apart

_CELLS_PER_BATCH = 1 << 19
_ROWS_PER_BATCH = 1 << 15


@dataclass(frozen=True)
class ParquetPlan:
    """How to read the rows of one Parquet file.

    Attributes
    ----------
    features : FeatureMap or SparseLayout
    rules : IndexRules
        For the sparse layouts.
    label : str, optional
        Name of the label column.
    textual : bool
        Whether labels are text.
    missing : str
        ``error`` or ``zero``.
    labels : tuple, optional
        The labels that may occur, of the kind that ``textual`` says.
    predicting : bool
        Whether a model rules the columns.
    attributes : tuple of AttributeColumn
        Those to be read.
    owner : OwnerColumn, optional
        That of the privacy units.
    """

    features: FeatureMap | SparseLayout
    rules: IndexRules
    label: str | None
    textual: bool
    missing: str
    labels: tuple[float, ...] | tuple[str, ...] | None = None
    predicting: bool = False
    attributes: tuple[AttributeColumn, ...] = ()
    owner: OwnerColumn | None = None

    @property
    def columns(self) -> list[str]:
        """Names of the columns to read."""
        if isinstance(self.features, SparseLayout):
            names = list(self.features.columns)
        else:
            names = [column.name for column in self.features.columns]
        names += [] if self.label is None else [self.label]
        names += [] if self.owner is None else [self.owner.name]
        return names + [column.name for column in self.attributes]

    @property
    def na(self) -> tuple[str, ...]:
        """Texts that count as empty."""
        return self.features.na if isinstance(self.features, FeatureMap) else ()


def read_parquet(
    file: pq.ParquetFile, source: IO[bytes], path: str, plan: ParquetPlan, threads: int = 1
) -> Iterator[RowBlock]:
    """Yield the row blocks of one open Parquet file.

    Parameters
    ----------
    file : ParquetFile
    source : binary file
        What it was opened from.
    path : str
        The file's name for errors.
    plan : ParquetPlan
    threads : int
        More than one lets pyarrow decode columns in parallel; the result does not depend on it.
    """
    make = _sparse_block if isinstance(plan.features, SparseLayout) else _wide_block
    first_row = 1
    for batch in _batches(file, source, path, plan, threads):
        try:
            with memory_apart():
                block = make(batch, plan)
        except CellFault as fault:
            raise _data_error(fault, path, first_row, plan) from None
        except NOT_READABLE:
            raise damaged(path) from None
        first_row += batch.num_rows
        if block.n_rows:
            yield block


def _data_error(fault: CellFault, path: str, first_row: int, plan: ParquetPlan) -> DataError:
    what = "" if fault.column is None else f"column '{one_line(fault.column)}' "
    hint = fault.hint or advice(fault.cause, fault.column or "", predicting=plan.predicting)
    return DataError(f"{what}{fault.message} (row {first_row + fault.row})", path=path, hint=hint)


def _batches(
    file: pq.ParquetFile, source: IO[bytes], path: str, plan: ParquetPlan, threads: int
) -> Iterator[pa.RecordBatch]:
    sparse = isinstance(plan.features, SparseLayout)
    try:
        with memory_apart():
            cells = entries_of_row(file, source) if sparse else len(plan.columns)
            rows = max(1, min(_ROWS_PER_BATCH, _CELLS_PER_BATCH // max(1, cells)))
            yield from file.iter_batches(
                batch_size=rows, columns=plan.columns, use_threads=threads > 1
            )
    except NOT_READABLE:
        raise damaged(path) from None


def _target(
    batch: pa.RecordBatch, plan: ParquetPlan
) -> NDArray[np.float64] | NDArray[np.object_] | None:
    if plan.label is None:
        return None
    column = batch.column(plan.label)
    target: NDArray[np.float64] | NDArray[np.object_]
    try:
        if plan.textual:
            target = text_labels(coded_text(as_text(column), plan.na))
        else:
            target = finite_numbers(as_float64(column))
        check_labels(target, plan.labels)
    except CellFault as fault:
        raise fault.of(plan.label) from None
    return target


def _offset_and_weight(
    batch: pa.RecordBatch, plan: ParquetPlan
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
    return offset_and_weight(
        {
            column.role: attribute_numbers(as_float64(batch.column(column.name)), column)
            for column in plan.attributes
        }
    )


def _owner(batch: pa.RecordBatch, plan: ParquetPlan) -> CodedText | None:
    column = plan.owner
    return (
        None if column is None else owners_of(as_text(batch.column(column.name)), column, plan.na)
    )


def _wide_block(batch: pa.RecordBatch, plan: ParquetPlan) -> RowBlock:
    assert isinstance(plan.features, FeatureMap)
    columns = [
        (as_float64 if column.role == "numeric" else as_text)(batch.column(column.name))
        for column in plan.features.columns
    ]
    rows = sparse_rows(plan.features, columns, batch.num_rows, plan.missing)
    attributes = _offset_and_weight(batch, plan)
    return RowBlock(*rows, _target(batch, plan), *attributes, _owner(batch, plan))


def _sparse_block(batch: pa.RecordBatch, plan: ParquetPlan) -> RowBlock:
    assert isinstance(plan.features, SparseLayout)
    indptr, raw, values = _entries(batch, plan.features)
    row_of = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    _refuse(np.asarray(raw < 0), row_of, "a column index is negative")
    _refuse(~np.isfinite(values), row_of, "a value is not finite (NaN or infinite)")
    try:
        rows = canonical(indptr, raw.astype(np.uint64), values, plan.rules)
    except NotCanonical:
        raise _index_fault(indptr, raw, values, plan.rules) from None
    attributes = _offset_and_weight(batch, plan)
    return RowBlock(*rows, _target(batch, plan), *attributes, _owner(batch, plan))


def _refuse(bad: NDArray[np.bool_], row_of: NDArray[np.int64], message: str) -> None:
    if bad.any():
        raise CellFault(int(row_of[np.argmax(bad)]), message)


def _entries(
    batch: pa.RecordBatch, layout: SparseLayout
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    lists = [batch.column(name) for name in layout.columns]
    lengths = [_lengths(column) for column in lists]
    unequal = lengths[0] != lengths[-1]
    if unequal.any():
        raise CellFault(int(np.argmax(unequal)), "indices and values differ in length")
    indptr = np.zeros(len(lengths[0]) + 1, dtype=np.int64)
    np.cumsum(lengths[0], out=indptr[1:])
    flat = [column.flatten() for column in lists]
    if layout.fields is not None:
        flat = [pac.struct_field(flat[0], name) for name in layout.fields]
    row_of = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    for part, what in zip(flat, ("a column index", "a value"), strict=True):
        if part.null_count:
            _refuse(part.is_null().to_numpy(zero_copy_only=False), row_of, f"{what} is null")
    index = flat[0]
    if index.type == pa.uint64():
        # Beyond int64 nothing is allowed anyway; the largest one stays out of every range.
        index = pac.min_element_wise(index, pa.scalar(2**63 - 1, pa.uint64()))
    raw = index.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return indptr, raw, as_float64(flat[1]).to_numpy(zero_copy_only=False)


def _lengths(column: pa.Array) -> NDArray[np.int64]:
    lengths = pac.list_value_length(without_nulls(column))
    return lengths.cast(pa.int64()).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _index_fault(
    indptr: NDArray[np.int64],
    raw: NDArray[np.int64],
    values: NDArray[np.float64],
    rules: IndexRules,
) -> CellFault:
    """Say which row broke the rules, and how."""
    for row in range(len(indptr) - 1):
        entries: dict[int, float] = {}
        try:
            for at in range(indptr[row], indptr[row + 1]):
                index = checked_index(int(raw[at]), rules)
                if index is not None:
                    store_entry(entries, index, float(values[at]), rules.duplicates)
        except LineFault as line_fault:
            return CellFault(row, line_fault.message, hint=line_fault.hint)
        if not all(map(np.isfinite, entries.values())):
            return CellFault(row, "the sum of a repeated column is too large for a float")
    return CellFault(0, "the sum of columns that share a hash is too large for a float")
