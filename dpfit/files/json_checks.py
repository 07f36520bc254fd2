"""Checks of what a JSON document of unknown content holds; each `as_` raises `ValueError`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, TypeAlias

from dpfit.errors import DataError

Json: TypeAlias = Mapping[str, object]


def as_mapping(value: object, name: str) -> Json:
    """An object."""
    if not isinstance(value, dict):
        raise ValueError(f"{name} is no object")
    return value


def as_number(value: object, name: str) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is no number")
    if not math.isfinite(value):
        raise ValueError(f"{name} is not finite")
    return float(value)


def as_whole(value: object, name: str, low: int, high: int) -> int:
    """A whole number within bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name} is no whole number in range")
    return value


def as_column(columns: Json, role: str, name: str) -> str | None:
    """The name of a column, or null."""
    column = columns[role]
    if not (column is None or isinstance(column, str)):
        raise ValueError(f"{name}.{role} is no text")
    return column


def no_constant(name: str) -> object:
    """For ``parse_constant`` of `json.loads`: NaN and infinities are no JSON."""
    raise ValueError("JSON knows no such number")


NAME_A_MODEL: Final = "name the model first, which fit or complete-matrix wrote, then the data"


def not_a_document(schema: str, error: Exception, path: str) -> DataError:
    """What a failed check, or a member that is missing, says about a file."""
    what = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
    return DataError(f"is not a {schema} document: {what}", path=path, hint=NAME_A_MODEL)
