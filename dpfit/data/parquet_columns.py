"""Which columns of a Parquet file mean what, and their conversion to numbers and texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.types as pat

from dpfit.data.advice import Cause, text_advice
from dpfit.data.encode import CellFault
from dpfit.data.features import listed_names
from dpfit.data.schema import one_line
from dpfit.errors import DataError

AS_TEXT: Final = "write the column as text, in pandas with .astype(str)"
AS_NUMBERS: Final = "write the column as numbers: dates, for instance, as days since a fixed one"

_INDEX_NAMES = ("index", "indices", "idx")
_VALUE_NAMES = ("value", "values", "val")


@dataclass(frozen=True)
class SparseLayout:
    """Where a Parquet file keeps sparse rows.

    Attributes
    ----------
    columns : tuple of str
        One list-of-struct column, or the list columns of indices and of values.
    fields : tuple of str, optional
        Names of index and value in the struct; None for a pair of columns.
    """

    columns: tuple[str, ...]
    fields: tuple[str, str] | None


def is_list(kind: pa.DataType) -> bool:
    """Whether it is one of the list types."""
    return bool(pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether it is a string, plain or as a dictionary."""
    if pat.is_dictionary(kind):
        kind = kind.value_type
    return bool(pat.is_string(kind) or pat.is_large_string(kind))


def sparse_layout(fields: list[pa.Field]) -> SparseLayout | None:
    """The sparse layout of the feature columns, or None if they are no such layout."""
    kinds = [field.type for field in fields]
    if len(fields) == 1 and is_list(kinds[0]) and pat.is_struct(kinds[0].value_type):
        parts = [kinds[0].value_type.field(i) for i in range(kinds[0].value_type.num_fields)]
        found = _index_and_value([(part.name, part.type) for part in parts])
        return None if found is None else SparseLayout((fields[0].name,), found)
    if len(fields) == 2 and all(map(is_list, kinds)):
        pair = _index_and_value([(field.name, field.type.value_type) for field in fields])
        return None if pair is None else SparseLayout(pair, None)
    return None


def _index_and_value(parts: list[tuple[str, pa.DataType]]) -> tuple[str, str] | None:
    if len(parts) != 2 or parts[0][0] == parts[1][0]:
        return None
    for (index, index_type), (value, value_type) in (parts, parts[::-1]):
        named = index.lower() in _INDEX_NAMES and value.lower() in _VALUE_NAMES
        typed = pat.is_floating(value_type)
        if pat.is_integer(index_type) and is_number(value_type) and (named or typed):
            return index, value
    return None


def is_number(kind: pa.DataType) -> bool:
    """Whether values of the type are numbers or booleans."""
    if pat.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pat.is_integer(kind)
        or pat.is_floating(kind)
        or pat.is_boolean(kind)
        or pat.is_decimal(kind)
    )


def nested_fault(fields: list[pa.Field], path: str, *, predicting: bool) -> DataError | None:
    """Why nested columns among the feature columns ``fields`` cannot be read; None without any."""
    nested = [field for field in fields if pat.is_nested(field.type)]
    if not nested:
        return None
    beside = [field.name for field in fields if not pat.is_nested(field.type)]
    if sparse_layout(nested) is None or not beside:
        message = (
            f"column '{one_line(nested[0].name)}' has a nested type; only one list-of-struct "
            "column or a pair of list columns (indices, values) is read"
        )
        return DataError(message, path=path)
    more = "" if len(beside) == 1 else f" and {len(beside) - 1} more"
    name = one_line(beside[0])
    ignore = "leave it out with --ignore-new-features" if predicting else "set it aside in --schema"
    return DataError(
        f"sparse rows stand alone, but the file also has column '{name}'{more}",
        path=path,
        hint=f"name the target with --label; {ignore} if it is none",
    )


def check_types(fields: Sequence[tuple[pa.Field, str]], path: str, *, predicting: bool) -> None:
    """Refuse columns whose type does not fit their role, by name, all that are no numbers at once.

    Parameters
    ----------
    fields : sequence of (pyarrow.Field, str)
        Feature columns with their roles.
    path : str
        The file's name for errors.
    predicting : bool
        Whether a model rules the columns.
    """
    texts = [one.name for one, role in fields if role == "numeric" and not _may_be_number(one.type)]
    if texts:
        what = "column {} is not numeric" if len(texts) == 1 else "columns {} are not numeric"
        hint = text_advice(texts, predicting=predicting)
        raise DataError(what.format(listed_names(texts)), path=path, hint=hint)
    for field, role in fields:
        if role != "numeric" and not _may_be_text(field.type):
            name = one_line(field.name)
            raise DataError(
                f"column '{name}' has a type that cannot be {role}", path=path, hint=AS_TEXT
            )


def _may_be_number(kind: pa.DataType) -> bool:
    return is_number(kind) or bool(pat.is_null(kind))


def _may_be_text(kind: pa.DataType) -> bool:
    plain = kind.value_type if pat.is_dictionary(kind) else kind
    found = is_text(kind) or pat.is_integer(plain) or pat.is_boolean(plain) or pat.is_null(kind)
    return bool(found)


def check_attribute(field: pa.Field, role: str, path: str) -> None:
    """Refuse an attribute column that does not hold numbers, by name."""
    if not is_number(field.type):
        name = one_line(field.name)
        raise DataError(f"the {role} column '{name}' is not numeric", path=path, hint=AS_NUMBERS)


def check_owner(field: pa.Field, path: str) -> None:
    """Refuse a column of privacy units that holds neither texts nor whole numbers, by name."""
    kind = field.type.value_type if pat.is_dictionary(field.type) else field.type
    if not (is_text(kind) or pat.is_integer(kind)):
        name = one_line(field.name)
        message = f"the unit column '{name}' is neither text nor whole numbers"
        raise DataError(message, path=path, hint=f"{AS_TEXT}; every row needs its unit")


def as_float64(array: pa.Array) -> pa.Array:
    """Numbers or booleans as float64, nulls kept."""
    if pat.is_dictionary(array.type):
        array = array.dictionary_decode()
    # Not safe: an integer over 2^53 is rounded like every decimal of a text file.
    return array.cast(pa.float64(), safe=False)


def as_text(array: pa.Array) -> pa.Array:
    """Text, integers or booleans as a string or dictionary array, nulls kept."""
    if pat.is_dictionary(array.type):
        if is_text(array.type):
            return array
        array = array.dictionary_decode()
    return array if is_text(array.type) else array.cast(pa.string())


def without_nulls(array: pa.Array) -> pa.Array:
    """The array itself; a null is a fault."""
    if array.null_count:
        row = array.is_null().to_pylist().index(True)
        raise CellFault(row, "is null", Cause.MISSING)
    return array
