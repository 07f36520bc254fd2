"""The schema file (TOML): public facts about an input and the roles of its columns."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpfit.errors import StorageError, UsageError

ROLES = ("numeric", "categorical", "hashed", "ignore", "label")


def one_line(name: str) -> str:
    """A name of the user's fit for one line of an error."""
    return "".join(letter if letter.isprintable() else "?" for letter in name[:60])


@dataclass(frozen=True)
class ColumnRole:
    """What a column of a table means.

    Attributes
    ----------
    role : str
        ``numeric``, ``categorical``, ``hashed``, ``ignore`` or ``label``.
    levels : tuple of str, optional
        The declared levels of a categorical column, in feature order.
    """

    role: str = "numeric"
    levels: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Schema:
    """Declared public facts; every one may be missing.

    Attributes
    ----------
    rows : int, optional
        Number of records.
    features : int, optional
        Number of columns of a LIBSVM file.
    labels : tuple, optional
        The label values, all text or all numbers; of two the second is the positive one.
    target_range : tuple of float, optional
        Smallest and largest target of a regression.
    index_base : int, optional
        0 or 1.
    row_norm : float, optional
        Bound on the Euclidean norm of a row.
    label : str, optional
        Name of the label column.
    columns : mapping of str to ColumnRole
        Roles of the columns that are not simply numeric.
    """

    rows: int | None = None
    features: int | None = None
    labels: tuple[str, ...] | tuple[float, ...] | None = None
    target_range: tuple[float, float] | None = None
    index_base: int | None = None
    row_norm: float | None = None
    label: str | None = None
    columns: Mapping[str, ColumnRole] = field(default_factory=dict)

    @classmethod
    def from_file(cls, path: str) -> Schema:
        """Read a schema file.

        Raises
        ------
        UsageError
            The file is no schema; the message names the key.
        StorageError
            The file cannot be read.
        """
        return parse_schema(_load(path), path)


def _load(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise StorageError(f"{path}: {reason}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: the schema is not UTF-8 text") from None
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        found = re.search(r"at line (\d+)", str(error))
        place = f"{path}:{found[1]}" if found else path
        raise UsageError(f"{place}: the schema is not valid TOML") from None


def parse_schema(document: Mapping[str, Any], path: str) -> Schema:
    """Check a parsed TOML document; ``path`` names it in errors."""
    facts: dict[str, Any] = {}
    for key, value in document.items():
        if key not in _CHECKS:
            known = ", ".join(_CHECKS)
            raise UsageError(f"{path}: unknown key '{one_line(key)}'", hint=f"the keys are {known}")
        facts[key] = _checked(_CHECKS[key], value, path, key)
    schema = Schema(**facts)
    _check_label_roles(schema, path)
    return schema


def _check_label_roles(schema: Schema, path: str) -> None:
    labels = {name for name, column in schema.columns.items() if column.role == "label"}
    if schema.label is not None:
        labels.add(schema.label)
        if schema.columns.get(schema.label, ColumnRole("label")).role != "label":
            raise UsageError(f"{path}: the label column has another role under 'columns'")
    if len(labels) > 1:
        raise UsageError(f"{path}: more than one column has the role 'label'")


class _Wrong(Exception):  # noqa: N818 - carries what was expected until the key is known
    pass


def _checked(check: Callable[[Any], Any], value: Any, path: str, key: str) -> Any:
    try:
        return check(value)
    except _Wrong as wrong:
        place = one_line(f"{key}{wrong.args[1]}")
        raise UsageError(f"{path}: '{place}' must be {wrong.args[0]}") from None


def _wrong(expected: str, below: str = "") -> _Wrong:
    return _Wrong(expected, below)


def _whole(smallest: int, expected: str) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if type(value) is not int or value < smallest:
            raise _wrong(expected)
        return value

    return check


def _number(value: Any) -> float:
    if type(value) not in (int, float):
        raise _wrong("a finite number")
    try:
        number = float(value)
    except OverflowError:
        raise _wrong("a finite number") from None
    if not math.isfinite(number):
        raise _wrong("a finite number")
    return number


def _positive(value: Any) -> float:
    number = _number(value)
    if number <= 0:
        raise _wrong("a positive number")
    return number


def _base(value: Any) -> int:
    if type(value) is not int or value not in (0, 1):
        raise _wrong("0 or 1")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _wrong("a non-empty text")
    return value


def _range(value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise _wrong("a list of two numbers")
    low, high = map(_number, value)
    if not low < high:
        raise _wrong("a list of two numbers, the smaller one first")
    return low, high


def _labels(value: Any) -> tuple[str, ...] | tuple[float, ...]:
    if isinstance(value, list) and len(value) >= 2:
        distinct = tuple(value) if all(isinstance(v, str) for v in value) else None
        if distinct is None and all(type(v) in (int, float) for v in value):
            distinct = tuple(map(_number, value))
        if distinct is not None and len(set(distinct)) == len(distinct):
            return distinct
    raise _wrong("a list of two or more distinct values, all text or all numbers")


def _levels(value: Any, below: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise _wrong("a non-empty list of levels", below)
    levels = tuple(str(v) if type(v) is int else v for v in value)
    if not all(isinstance(level, str) and level == level.strip(" \t") for level in levels):
        raise _wrong("a list of texts without blanks at their ends", below)
    if len(set(levels)) != len(levels) or "" in levels:
        raise _wrong("a list of distinct, non-empty levels", below)
    return levels


def _columns(value: Any) -> dict[str, ColumnRole]:
    if not isinstance(value, dict):
        raise _wrong("a table of columns")
    return {name: _column(entry, f".{name}") for name, entry in value.items()}


def _column(entry: Any, below: str) -> ColumnRole:
    if not isinstance(entry, dict):
        raise _wrong("a table with 'role' and 'levels'", below)
    if set(entry) - {"role", "levels"}:
        raise _wrong("a table with no other keys than 'role' and 'levels'", below)
    levels = _levels(entry["levels"], f"{below}.levels") if "levels" in entry else None
    role = entry.get("role", "numeric" if levels is None else "categorical")
    if role not in ROLES:
        raise _wrong(f"one of {', '.join(ROLES)}", f"{below}.role")
    if levels is not None and role != "categorical":
        raise _wrong("left out unless the role is 'categorical'", f"{below}.levels")
    return ColumnRole(role, levels)


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "rows": _whole(1, "a whole number, at least 1"),
    "features": _whole(1, "a whole number, at least 1"),
    "labels": _labels,
    "target_range": _range,
    "index_base": _base,
    "row_norm": _positive,
    "label": _text,
    "columns": _columns,
}
