"""Which columns of a Parquet file mean what, and their conversion to numbers and texts."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pat

from dpfit.data.advice import Cause, advice
from dpfit.data.encode import CellFault
from dpfit.data.schema import one_line
from dpfit.errors import DataError

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


def check_type(field: pa.Field, role: str, path: str, *, predicting: bool) -> None:
    """Refuse a column whose type does not fit its role, by name."""
    kind = field.type
    name = one_line(field.name)
    if role == "numeric" and not (is_number(kind) or pat.is_null(kind)):
        hint = advice(Cause.TEXT, field.name, predicting=predicting)
        raise DataError(f"column '{name}' is not numeric", path=path, hint=hint)
    plain = kind.value_type if pat.is_dictionary(kind) else kind
    if role != "numeric" and not (
        is_text(kind) or pat.is_integer(plain) or pat.is_boolean(plain) or pat.is_null(kind)
    ):
        raise DataError(f"column '{name}' has a type that cannot be {role}", path=path)


def check_attribute(field: pa.Field, role: str, path: str) -> None:
    """Refuse an attribute column that does not hold numbers, by name."""
    if not is_number(field.type):
        raise DataError(f"the {role} column '{one_line(field.name)}' is not numeric", path=path)


def check_owner(field: pa.Field, path: str) -> None:
    """Refuse a column of privacy units that holds neither texts nor whole numbers, by name."""
    kind = field.type.value_type if pat.is_dictionary(field.type) else field.type
    if not (is_text(kind) or pat.is_integer(kind)):
        name = one_line(field.name)
        raise DataError(f"the unit column '{name}' is neither text nor whole numbers", path=path)


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
