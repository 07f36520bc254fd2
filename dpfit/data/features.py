"""How the columns of a table become feature columns; stored in the model, matched at prediction."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpfit.data.indices import MAX_HASH_BITS, MAX_INDEX
from dpfit.data.schema import SINGLE_ROLES, ColumnRole, one_line
from dpfit.errors import DataError, UsageError


@dataclass(frozen=True)
class FeatureColumn:
    """One column of the table that gives features.

    Attributes
    ----------
    name : str
    role : str
        ``numeric``, ``categorical`` or ``hashed``.
    levels : tuple of str
        Of a categorical column; empty otherwise.
    start : int
        Its first feature; of a hashed column the start of the shared block.
    width : int
        Number of features: 1, the number of levels, or ``2**hash_bits``.
    other : bool
        Whether other levels give no feature instead of an error.
    range : tuple of float, optional
        Ends between which a number is clipped and which are then mapped to 0 and 1.
    """

    name: str
    role: str
    levels: tuple[str, ...]
    start: int
    width: int
    other: bool = False
    range: tuple[float, float] | None = None

    @cached_property
    def feature_of(self) -> dict[str, int]:
        """The feature of each declared level: domains of a hundred thousand levels occur."""
        return {level: feature for feature, level in enumerate(self.levels, self.start)}

    def mapped(self, value: float) -> float:
        """A number of the column as its feature's value, by the column's range."""
        if self.range is None:
            return value
        low, high = self.range
        # The same operations as `dpfit.data.encode` does on arrays, so the same bits.
        return (min(max(value, low), high) - low) / (high - low)


@dataclass(frozen=True)
class FeatureMap:
    """Ordered feature columns of a table; hashed columns share one block of features at the end.

    Attributes
    ----------
    columns : tuple of FeatureColumn
    hash_bits : int, optional
        Size of the shared hashed block; None if no column is hashed.
    ignored : tuple of str
        Columns that carried no feature at training: ignored ones, the label and attributes.
    na : tuple of str
        Texts of cells that count as empty.
    """

    columns: tuple[FeatureColumn, ...]
    hash_bits: int | None = None
    ignored: tuple[str, ...] = ()
    na: tuple[str, ...] = ()

    @classmethod
    def build(
        cls,
        names: Sequence[str],
        roles: Mapping[str, ColumnRole],
        label: str | None,
        hash_bits: int | None,
        na: tuple[str, ...] = (),
    ) -> FeatureMap:
        """Map the columns ``names`` of a table, in order.

        Raises
        ------
        UsageError
            A role for a column that is not there, a categorical column without levels and without
            ``hash_bits``, or no feature column at all.
        """
        absent = [
            name for name in roles if name not in names and roles[name].role not in SINGLE_ROLES
        ]
        if absent:
            raise UsageError(
                f"roles are given for columns that are not there: {listed_names(absent)}",
                hint="compare the names in the schema with the header (case and blanks matter)",
            )
        chosen: list[tuple[str, ColumnRole]] = []
        ignored: list[str] = []
        for name in names:
            role = ColumnRole("label") if name == label else roles.get(name, ColumnRole())
            if role.role in ("ignore", *SINGLE_ROLES):
                ignored.append(name)
            else:
                chosen.append((name, role))
        if not chosen:
            raise UsageError(
                "no column is left to be a feature",
                hint="label, weight, unit and ignored columns are none: is --delimiter right?",
            )
        return cls(*_placed(_settled(chosen, hash_bits), hash_bits), tuple(ignored), na)

    @property
    def n_features(self) -> int:
        """Number of feature columns, the hashed block included."""
        return self._n_named + (0 if self.hash_bits is None else 1 << self.hash_bits)

    @property
    def _n_named(self) -> int:
        return sum(column.width for column in self.columns if column.role != "hashed")

    @cached_property
    def names(self) -> list[str]:
        """Names of the features before the hashed block: ``age``, ``job=clerk``."""
        names: list[str] = []
        for column in self.columns:
            if column.role == "numeric":
                names.append(column.name)
            elif column.role == "categorical":
                names.extend(f"{column.name}={level}" for level in column.levels)
        return names

    @cached_property
    def na_bytes(self) -> frozenset[bytes]:
        """`na` as a text file holds it."""
        return frozenset(text.encode("utf-8", "surrogatepass") for text in self.na)

    @cached_property
    def known(self) -> set[str]:
        """Names of all columns that the map has seen, the ignored ones included."""
        return {column.name for column in self.columns} | set(self.ignored)

    def check_names(
        self,
        present: Sequence[str],
        *,
        path: str,
        ignore_new: bool = False,
        absent_hint: str | None = None,
    ) -> None:
        """Hold the columns ``present`` of a table to those of the map, in any order.

        Parameters
        ----------
        present : sequence of str
        path : str
            The table's name for errors.
        ignore_new : bool
            Whether other columns may be there.
        absent_hint : str, optional
            What to do if not one column of the map is there.

        Raises
        ------
        DataError
            Lists every missing column and counts the extra ones, whose names stay unsaid: without a
            header they are the cells of a record.
        """
        names = set(present)
        missing = [column.name for column in self.columns if column.name not in names]
        if len(missing) == len(self.columns):
            raise DataError("none of the expected columns is there", path=path, hint=absent_hint)
        n_extra = len(names - self.known)
        problems = [f"missing columns: {listed_names(missing)}"] if missing else []
        if n_extra and not ignore_new:
            problems.append("1 extra column" if n_extra == 1 else f"{n_extra} extra columns")
        if problems:
            raise DataError(
                "; ".join(problems),
                path=path,
                hint="give a file with all the columns that the model was fitted to"
                if missing
                else "--ignore-new-features leaves extra columns out",
            )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON object that `from_json` reads."""
        columns = []
        for column in self.columns:
            entry: dict[str, Any] = {"name": column.name, "role": column.role}
            if column.role == "numeric" and column.range is not None:
                entry["range"] = list(column.range)
            if column.role == "categorical":
                entry["levels"] = list(column.levels)
                entry["other"] = column.other
            columns.append(entry)
        return {
            "columns": columns,
            "hash_bits": self.hash_bits,
            "ignored": list(self.ignored),
            "na": list(self.na),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> FeatureMap:
        """Inverse of `to_json`.

        Raises
        ------
        ValueError
            The document is not one that `to_json` writes.
        """
        try:
            bits = document["hash_bits"]
            chosen = [_read_column(entry) for entry in document["columns"]]
            names = [name for name, _ in chosen]
            if not names or len(set(names)) < len(names):
                raise ValueError
            if bits is not None and not (type(bits) is int and 1 <= bits <= MAX_HASH_BITS):
                raise ValueError
            if (bits is not None) != any(role.role == "hashed" for _, role in chosen):
                raise ValueError
            ignored, na = _read_texts(document["ignored"]), _read_texts(document["na"])
            return cls(*_placed(chosen, bits), ignored, na)
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError, UsageError):
            raise ValueError("not a feature map") from None


def _read_texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError
    return tuple(value)


def _read_column(entry: Any) -> tuple[str, ColumnRole]:
    """Name and role of one column of a stored map."""
    name, role = entry["name"], entry["role"]
    if not isinstance(name, str):
        raise ValueError
    keys = {"numeric": {"range"} & set(entry), "categorical": {"levels", "other"}, "hashed": set()}
    if set(entry) != {"name", "role"} | keys[role]:
        raise ValueError
    if role == "categorical":
        levels = _read_texts(entry["levels"])
        if type(entry["other"]) is not bool or len(set(levels)) < len(levels) or not levels:
            raise ValueError
        return name, ColumnRole(role, levels, entry["other"])
    if "range" not in entry:
        return name, ColumnRole(role)
    low, high = entry["range"]
    if not all(type(end) in (int, float) for end in (low, high)):
        raise ValueError
    if not (low < high and math.isfinite(float(high) - float(low))):
        raise ValueError
    return name, ColumnRole(role, range=(float(low), float(high)))


def _settled(
    chosen: Sequence[tuple[str, ColumnRole]], hash_bits: int | None
) -> list[tuple[str, ColumnRole]]:
    """The roles feature columns really get: a categorical one without levels is hashed."""
    unsized = [
        (name, role)
        for name, role in chosen
        if role.role == "hashed" or (role.role == "categorical" and role.levels is None)
    ]
    if unsized and hash_bits is None:
        raise _without_size(unsized)
    hashed = {name for name, _ in unsized}
    return [(name, ColumnRole("hashed") if name in hashed else role) for name, role in chosen]


def _without_size(columns: Sequence[tuple[str, ColumnRole]]) -> UsageError:
    """All columns of the first one's role at once."""
    role = columns[0][1].role
    names = [name for name, other in columns if other.role == role]
    hint, missing = "give --hash-bits B, for instance 10", "hash size"
    if role == "categorical":
        hint += f", or declare {'its' if len(names) == 1 else 'their'} levels in the --schema file"
        missing = "levels"
    if len(names) == 1:
        return UsageError(f"column {listed_names(names)} is {role} but has no {missing}", hint=hint)
    return UsageError(f"columns {listed_names(names)} are {role} but have no {missing}", hint=hint)


def _placed(
    chosen: Sequence[tuple[str, ColumnRole]], hash_bits: int | None
) -> tuple[tuple[FeatureColumn, ...], int | None]:
    """Give each column its features; the hashed block starts after the last named one."""
    n_named = sum(_named_width(role) for _, role in chosen)
    hashed = any(role.role == "hashed" for _, role in chosen)
    if n_named + ((1 << (hash_bits or 0)) if hashed else 0) > MAX_INDEX:
        raise UsageError("the table has too many features")
    columns: list[FeatureColumn] = []
    start = 0
    for name, role in chosen:
        width = _named_width(role)
        if role.role == "hashed":
            columns.append(FeatureColumn(name, "hashed", (), n_named, 1 << (hash_bits or 0)))
        else:
            levels, other, ends = role.levels or (), role.other, role.range
            columns.append(FeatureColumn(name, role.role, levels, start, width, other, ends))
        start += width
    return tuple(columns), hash_bits if hashed else None


def _named_width(role: ColumnRole) -> int:
    return {"numeric": 1, "categorical": len(role.levels or ()), "hashed": 0}[role.role]


def hashed_feature(name: str, value: str, bits: int) -> int:
    """Public, stable bucket of ``name=value`` among ``2**bits``."""
    text = f"{name}={value}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=8).digest()
    return int.from_bytes(digest, "little") & ((1 << bits) - 1)


def listed_names(names: Sequence[str]) -> str:
    """The first ten, in quotes, and how many more."""
    shown = ", ".join(f"'{one_line(name)}'" for name in names[:10])
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"
