"""Columns of a table (pyarrow arrays) to sparse rows, by a feature map."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpfit.data.advice import Cause
from dpfit.data.attributes import AttributeColumn
from dpfit.data.features import FeatureColumn, FeatureMap, hashed_feature
from dpfit.data.indices import sort_and_merge

_BLANKS = " \t"


class CellFault(Exception):  # noqa: N818 - becomes a DataError once the place is known
    """A cell is not what its column promises.

    Attributes
    ----------
    row : int
        Row within the encoded columns, from 0.
    message : str
        Reads on after the column's name, if there is one.
    column : str, optional
        The column's name.
    cause : Cause, optional
        What to give advice about.
    hint : str, optional
        What to do, where the cause does not tell.
    """

    def __init__(
        self,
        row: int,
        message: str,
        cause: Cause | None = None,
        *,
        column: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.row = row
        self.message = message
        self.cause = cause
        self.column = column
        self.hint = hint

    def of(self, column: str) -> CellFault:
        """The same fault, its column named."""
        return CellFault(self.row, self.message, self.cause, column=column, hint=self.hint)


@dataclass(frozen=True)
class CodedText:
    """A text column: distinct trimmed texts and, for each row, which one (-1: null)."""

    codes: NDArray[np.int64]
    texts: list[str]

    def at(self, rows: NDArray[np.int64]) -> CodedText:
        """Some of the rows, none of them null, with their texts alone."""
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        return CodedText(codes, [self.texts[code] for code in used])


def coded_text(array: pa.Array, na: Collection[str] = ()) -> CodedText:
    """Distinct texts of a string or dictionary array, blanks at their ends removed.

    Texts of ``na`` become empty.
    """
    array = _in_use(array) if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    codes = array.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    texts = [None if v is None else v.strip(_BLANKS) for v in array.dictionary.to_pylist()]
    # A dictionary may hold a null of its own: those rows are null as well.
    absent = [code for code, text in enumerate(texts) if text is None]
    if absent:
        codes = np.where(np.isin(codes, absent), -1, codes)
    return CodedText(codes, ["" if text is None or text in na else text for text in texts])


def _in_use(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same cells; the dictionary holds what occurs, in order of appearance.

    A file's dictionary is that of many blocks.
    """
    codes = array.indices.dictionary_encode()
    return pa.DictionaryArray.from_arrays(codes.indices, array.dictionary.take(codes.dictionary))


def finite_numbers(array: pa.Array, missing: Cause | None = None) -> NDArray[np.float64]:
    """Floats of a float64 array; null, NaN (with the cause ``missing``) and infinity are faults."""
    values = array.fill_null(np.nan).to_numpy(zero_copy_only=False)
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.argmin(finite))
        if np.isnan(values[row]):
            raise CellFault(row, "is empty or NaN", missing)
        raise CellFault(row, "is infinite")
    return np.asarray(values, dtype=np.float64)


def attribute_numbers(array: pa.Array, column: AttributeColumn) -> NDArray[np.float64]:
    """Numbers of a float64 array within the bounds of the attribute."""
    try:
        numbers = finite_numbers(array, Cause.ATTRIBUTE)
        refused = column.refused(numbers)
        if refused.any():
            raise CellFault(int(np.argmax(refused)), column.bound)
    except CellFault as fault:
        raise fault.of(column.name) from None
    return numbers


def text_features(
    column: FeatureColumn, cells: CodedText, missing: str
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Feature and value of each row of a categorical or hashed column; value 0 where missing."""
    feature = np.zeros(len(cells.texts) + 1, dtype=np.int32)  # the last one serves code -1
    known = np.zeros(len(cells.texts) + 1, dtype=np.bool_)
    for code, text in enumerate(cells.texts):
        found = _feature(column, text) if text else None
        if found is not None:
            feature[code], known[code] = found, True
    blank = np.array([not text for text in cells.texts] + [True])
    allowed = known | np.where(blank, missing == "zero", column.other)
    ok = allowed[cells.codes]
    if not ok.all():
        row = int(np.argmin(ok))
        if blank[cells.codes[row]]:
            raise CellFault(row, "is empty", Cause.MISSING)
        raise CellFault(row, "has a level that is not declared", Cause.LEVEL)
    return feature[cells.codes], known[cells.codes].astype(np.float64)


def _feature(column: FeatureColumn, text: str) -> int | None:
    if column.role == "hashed":
        bits = column.width.bit_length() - 1
        return column.start + hashed_feature(column.name, text, bits)
    return column.feature_of.get(text)


def text_labels(cells: CodedText) -> NDArray[np.object_]:
    """Label texts of each row; an empty one is a fault."""
    empty = np.array([not text for text in cells.texts] + [True])[cells.codes]
    if empty.any():
        raise CellFault(int(np.argmax(empty)), "is empty")
    table = np.empty(len(cells.texts), dtype=object)
    table[:] = cells.texts
    return table[cells.codes]


def check_labels(
    target: NDArray[np.float64] | NDArray[np.object_], labels: Sequence[float | str] | None
) -> None:
    """Refuse a label outside ``labels``; None allows all."""
    if labels is None:
        return
    known = np.zeros(len(target), dtype=np.bool_)
    for label in labels:
        known |= np.asarray(target == label, dtype=np.bool_)
    if not known.all():
        raise CellFault(int(np.argmin(known)), "has a label that is not declared", Cause.LABEL)


def number_matrix(arrays: Sequence[pa.Array], n_rows: int) -> NDArray[np.float64]:
    """Float64 arrays as columns of one matrix, NaN for null, in one call for all of them."""
    if not arrays or not n_rows:
        return np.empty((n_rows, len(arrays)))
    names = [str(i) for i in range(len(arrays))]
    batch = pa.RecordBatch.from_arrays(list(arrays), names=names)
    matrix = batch.to_tensor(null_to_nan=True, row_major=True).to_numpy()
    return np.asarray(matrix, dtype=np.float64).reshape(n_rows, len(arrays))


def sparse_rows(
    feature_map: FeatureMap, columns: Sequence[pa.Array], n_rows: int, missing: str
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Rows of a table in compressed form, zeros left out.

    Parameters
    ----------
    feature_map : FeatureMap
    columns : sequence of pyarrow arrays
        One per column of the map, in its order: float64 or text.
    n_rows : int
    missing : str
        ``error`` or ``zero``.

    Raises
    ------
    CellFault
        With its column's name.
    """
    order = _named_first(feature_map)
    numeric = [i for i in order if feature_map.columns[i].role == "numeric"]
    features = np.empty((n_rows, len(order)), dtype=np.int32)
    values = np.empty((n_rows, len(order)), dtype=np.float64)
    is_numeric = [feature_map.columns[i].role == "numeric" for i in order]
    places = np.flatnonzero(np.array(is_numeric, dtype=np.bool_))
    matrix = number_matrix([columns[i] for i in numeric], n_rows)
    numbers = [feature_map.columns[i] for i in numeric]
    values[:, places] = _mapped(_settled(matrix, numbers, missing), numbers)
    features[:, places] = [feature_map.columns[i].start for i in numeric]
    for place, i in enumerate(order):
        column = feature_map.columns[i]
        if column.role != "numeric":
            features[:, place], values[:, place] = _text_column(
                column, coded_text(columns[i], feature_map.na), missing
            )
    used = values != 0
    indptr = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(used.sum(axis=1), out=indptr[1:])
    rows = indptr, features[used], values[used]
    # Two hashed columns of a row may share a feature: their ones add up.
    indptr, indices, merged = sort_and_merge(rows, "sum") if feature_map.hash_bits else rows
    return indptr, indices.astype(np.int32, copy=False), merged


def _settled(
    matrix: NDArray[np.float64], columns: Sequence[FeatureColumn], missing: str
) -> NDArray[np.float64]:
    """The matrix with 0 for NaN if that is wanted; otherwise all must be finite."""
    finite = np.isfinite(matrix)
    if finite.all():
        return matrix
    empty = np.isnan(matrix)
    bad = ~finite & ~empty if missing == "zero" else ~finite
    if bad.any():
        row, at = map(int, np.argwhere(bad)[0])
        name = columns[at].name
        if empty[row, at]:
            raise CellFault(row, "is empty or NaN", Cause.MISSING, column=name)
        raise CellFault(row, "is infinite", column=name)
    return np.where(empty, 0.0, matrix)


def _mapped(matrix: NDArray[np.float64], columns: Sequence[FeatureColumn]) -> NDArray[np.float64]:
    """Columns with a range clipped to it and mapped to [0, 1]; see `FeatureColumn.mapped`."""
    ranged = [i for i, column in enumerate(columns) if column.range is not None]
    if not ranged:
        return matrix
    low, high = np.array([columns[i].range for i in ranged]).T
    matrix = matrix.copy()
    matrix[:, ranged] = (np.minimum(np.maximum(matrix[:, ranged], low), high) - low) / (high - low)
    return matrix


def _text_column(
    column: FeatureColumn, cells: CodedText, missing: str
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    try:
        return text_features(column, cells, missing)
    except CellFault as fault:
        raise fault.of(column.name) from None


def _named_first(feature_map: FeatureMap) -> list[int]:
    hashed = [i for i, column in enumerate(feature_map.columns) if column.role == "hashed"]
    return [i for i, column in enumerate(feature_map.columns) if column.role != "hashed"] + hashed
