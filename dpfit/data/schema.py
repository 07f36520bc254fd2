"""The schema file (TOML): public facts about an input and the roles of its columns.

::

    rows = 32561                    # or features, target_range, index_base, row_norm
    label = "income"
    labels = ["low", "high"]
    na = ["?", "NA"]                # cells with these texts count as empty: see --missing

    [columns]
    name = { role = "ignore" }
    age = { range = [0, 100] }      # clipped to the range, which is then mapped to [0, 1]
    job = { levels = ["clerk", "farmer"], other = true }
    city = { role = "hashed" }      # needs --hash-bits
    months = { role = "exposure" }  # or weight, offset: attributes of the record, no features
    person = { role = "unit" }      # whose records are protected together

``range`` brings numbers of different scales together. It is a map of each cell by itself: the low
end becomes 0 and the number 0 does not stay 0. An empty cell that ``--missing zero`` lets pass
counts as the number 0 and is mapped like any other. With ``other`` a level that is not declared
becomes no feature (zero in all columns) instead of an error. Range, ``other`` and ``na`` are stored
in the model, so prediction does the same.

A record's weight is 0 or more and its exposure above 0. An empty cell of these columns is an error
even with ``--missing zero``: no number stands for a weight or an offset that is not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpfit.data.attributes import ATTRIBUTES
from dpfit.errors import UsageError
from dpfit.files.toml_document import read_toml

SINGLE_ROLES = ("label", *ATTRIBUTES, "unit")  # of one column at most, which gives no feature
ROLES = ("numeric", "categorical", "hashed", "ignore", *SINGLE_ROLES)


def one_line(name: str) -> str:
    """A name of the user's fit for one line of an error."""
    return "".join(letter if letter.isprintable() else "?" for letter in name[:60])


@dataclass(frozen=True)
class ColumnRole:
    """What a column of a table means.

    Attributes
    ----------
    role : str
        ``numeric``, ``categorical``, ``hashed``, ``ignore``, ``label``, ``weight``, ``offset``,
        ``exposure`` or ``unit``.
    levels : tuple of str, optional
        The declared levels of a categorical column, in feature order.
    other : bool
        Whether a categorical column may have levels that are not declared; they give no feature.
    range : tuple of float, optional
        Ends of a numeric column that is to be clipped and mapped to [0, 1].
    """

    role: str = "numeric"
    levels: tuple[str, ...] | None = None
    other: bool = False
    range: tuple[float, float] | None = None


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
    na : tuple of str
        Texts of a table's cells that count as empty.
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
    na: tuple[str, ...] = ()
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
        return parse_schema(read_toml(path), path)


def parse_schema(document: Mapping[str, Any], path: str) -> Schema:
    """Check a parsed TOML document; ``path`` names it in errors."""
    facts: dict[str, Any] = {}
    for key, value in document.items():
        if key not in _CHECKS:
            known = ", ".join(_CHECKS)
            raise UsageError(f"{path}: unknown key '{one_line(key)}'", hint=f"the keys are {known}")
        facts[key] = _checked(_CHECKS[key], value, path, key)
    schema = Schema(**facts)
    _check_single_roles(schema, path)
    for name, column in schema.columns.items():
        if set(column.levels or ()) & set(schema.na):
            raise UsageError(f"{path}: a level of column '{one_line(name)}' also stands under 'na'")
    return schema


def _check_single_roles(schema: Schema, path: str) -> None:
    named: dict[str, set[str]] = {role: set() for role in SINGLE_ROLES}
    for name, column in schema.columns.items():
        if column.role in named:
            named[column.role].add(name)
    if schema.label is not None:
        named["label"].add(schema.label)
        if schema.columns.get(schema.label, ColumnRole("label")).role != "label":
            raise UsageError(f"{path}: the label column has another role under 'columns'")
    for role, names in named.items():
        if len(names) > 1:
            raise UsageError(f"{path}: more than one column has the role '{role}'")


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


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not _is_finite(value):
        raise _wrong("a finite number")
    return float(value)


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


def _range(value: Any, below: str = "") -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise _wrong("a list of two numbers", below)
    if not all(type(v) in (int, float) and _is_finite(v) for v in value):
        raise _wrong("a list of two finite numbers", below)
    low, high = map(float, value)
    if not (low < high and math.isfinite(high - low)):
        raise _wrong("a list of two numbers, the smaller one first, their difference finite", below)
    return low, high


def _labels(value: Any) -> tuple[str, ...] | tuple[float, ...]:
    if isinstance(value, list) and len(value) >= 2:
        distinct = tuple(value) if all(isinstance(v, str) for v in value) else None
        if distinct is None and all(type(v) in (int, float) for v in value):
            distinct = tuple(map(_number, value))
        if distinct is not None and len(set(distinct)) == len(distinct):
            return distinct
    raise _wrong("a list of two or more distinct values, all text or all numbers")


def _texts(value: Any, what: str, below: str = "") -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise _wrong(f"a non-empty list of {what}", below)
    texts = tuple(str(v) if type(v) is int else v for v in value)
    if not all(isinstance(text, str) and text == text.strip(" \t") for text in texts):
        raise _wrong("a list of texts without blanks at their ends", below)
    if len(set(texts)) != len(texts) or "" in texts:
        raise _wrong(f"a list of distinct, non-empty {what}", below)
    return texts


def _na(value: Any) -> tuple[str, ...]:
    return _texts(value, "texts")


def _columns(value: Any) -> dict[str, ColumnRole]:
    if not isinstance(value, dict):
        raise _wrong("a table of columns")
    return {name: _column(entry, f".{name}") for name, entry in value.items()}


_COLUMN_KEYS = ("role", "levels", "other", "range")


def _column(entry: Any, below: str) -> ColumnRole:
    keys = "'role', 'levels', 'other' and 'range'"
    if not isinstance(entry, dict):
        raise _wrong(f"a table with some of {keys}", below)
    if set(entry) - set(_COLUMN_KEYS):
        raise _wrong(f"a table with no other keys than {keys}", below)
    levels = _texts(entry["levels"], "levels", f"{below}.levels") if "levels" in entry else None
    role = entry.get("role", "numeric" if levels is None else "categorical")
    if role not in ROLES:
        raise _wrong(f"one of {', '.join(ROLES)}", f"{below}.role")
    if levels is not None and role != "categorical":
        raise _wrong("left out unless the role is 'categorical'", f"{below}.levels")
    other = entry.get("other", False)
    if type(other) is not bool:
        raise _wrong("true or false", f"{below}.other")
    if other and levels is None:
        raise _wrong("left out unless the column has levels", f"{below}.other")
    return ColumnRole(role, levels, other, _column_range(entry, role, f"{below}.range"))


def _column_range(entry: Mapping[str, Any], role: str, below: str) -> tuple[float, float] | None:
    if "range" not in entry:
        return None
    if role != "numeric":
        raise _wrong("left out unless the role is 'numeric'", below)
    return _range(entry["range"], below)


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "rows": _whole(1, "a whole number, at least 1"),
    "features": _whole(1, "a whole number, at least 1"),
    "labels": _labels,
    "target_range": _range,
    "index_base": _base,
    "row_norm": _positive,
    "label": _text,
    "na": _na,
    "columns": _columns,
}
