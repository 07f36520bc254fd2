"""How the columns of a table become feature columns; stored in the model, matched at prediction."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpfit.data.indices import MAX_INDEX
from dpfit.data.schema import ColumnRole, one_line
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
    """

    name: str
    role: str
    levels: tuple[str, ...]
    start: int
    width: int


@dataclass(frozen=True)
class FeatureMap:
    """Ordered feature columns of a table; hashed columns share one block of features at the end.

    Attributes
    ----------
    columns : tuple of FeatureColumn
    hash_bits : int, optional
        Size of the shared hashed block; None if no column is hashed.
    ignored : tuple of str
        Columns that carried no feature at training: ignored ones and the label.
    """

    columns: tuple[FeatureColumn, ...]
    hash_bits: int | None = None
    ignored: tuple[str, ...] = ()

    @classmethod
    def build(
        cls,
        names: Sequence[str],
        roles: Mapping[str, ColumnRole],
        label: str | None,
        hash_bits: int | None,
    ) -> FeatureMap:
        """Map the columns ``names`` of a table, in order.

        Raises
        ------
        UsageError
            A role for a column that is not there, a categorical column without levels and without
            ``hash_bits``, or no feature column at all.
        """
        absent = [name for name in roles if name not in names and roles[name].role != "label"]
        if absent:
            raise UsageError(f"roles are given for columns that are not there: {_listed(absent)}")
        chosen: list[tuple[str, str, tuple[str, ...]]] = []
        ignored: list[str] = []
        for name in names:
            role = ColumnRole("label") if name == label else roles.get(name, ColumnRole())
            if role.role in ("ignore", "label"):
                ignored.append(name)
            else:
                chosen.append((name, *_settled(name, role, hash_bits)))
        if not chosen:
            raise UsageError("no column is left to be a feature")
        return cls(*_placed(chosen, hash_bits), tuple(ignored))

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

    def match(self, present: Sequence[str], *, path: str, ignore_new: bool = False) -> list[int]:
        """Positions of the map's columns in a table with the columns ``present``.

        Raises
        ------
        DataError
            Lists every missing and every extra column.
        """
        position = {name: i for i, name in enumerate(present)}
        wanted = {column.name for column in self.columns}
        missing = [column.name for column in self.columns if column.name not in position]
        if len(missing) == len(self.columns):
            # Do not list the names found: without a header they are the cells of a record.
            raise DataError(
                "none of the expected columns is there", path=path, hint="see --no-header"
            )
        extra = [name for name in present if name not in wanted and name not in self.ignored]
        problems = [f"missing columns: {_listed(missing)}"] if missing else []
        if extra and not ignore_new:
            problems.append(f"extra columns: {_listed(extra)}")
        if problems:
            raise DataError(
                "; ".join(problems),
                path=path,
                hint=None if missing else "--ignore-new-features leaves extra columns out",
            )
        return [position[column.name] for column in self.columns]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON object that `from_json` reads."""
        columns = []
        for column in self.columns:
            entry: dict[str, Any] = {"name": column.name, "role": column.role}
            if column.role == "categorical":
                entry["levels"] = list(column.levels)
            columns.append(entry)
        return {"columns": columns, "hash_bits": self.hash_bits, "ignored": list(self.ignored)}

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
            chosen = [
                (str(entry["name"]), str(entry["role"]), tuple(map(str, entry.get("levels", ()))))
                for entry in document["columns"]
            ]
            if any(role not in ("numeric", "categorical", "hashed") for _, role, _ in chosen):
                raise ValueError
            return cls(*_placed(chosen, bits), tuple(map(str, document["ignored"])))
        except (KeyError, TypeError, AttributeError, ValueError, UsageError):
            raise ValueError("not a feature map") from None


def _settled(name: str, role: ColumnRole, hash_bits: int | None) -> tuple[str, tuple[str, ...]]:
    if role.role == "categorical" and role.levels is not None:
        return "categorical", role.levels
    if role.role == "numeric":
        return "numeric", ()
    if hash_bits is None:
        missing = "levels" if role.role == "categorical" else "a hash size"
        raise UsageError(
            f"column '{one_line(name)}' is {role.role} but has no {missing.removeprefix('a ')}",
            hint="declare its levels in the schema file, or hash it with --hash-bits",
        )
    return "hashed", ()


def _placed(
    chosen: Sequence[tuple[str, str, tuple[str, ...]]], hash_bits: int | None
) -> tuple[tuple[FeatureColumn, ...], int | None]:
    """Give each column its features; the hashed block starts after the last named one."""
    n_named = sum(_named_width(role, levels) for _, role, levels in chosen)
    hashed = any(role == "hashed" for _, role, _ in chosen)
    if n_named + ((1 << (hash_bits or 0)) if hashed else 0) > MAX_INDEX:
        raise UsageError("the table has too many features")
    columns: list[FeatureColumn] = []
    start = 0
    for name, role, levels in chosen:
        width = _named_width(role, levels)
        if role == "hashed":
            columns.append(FeatureColumn(name, role, (), n_named, 1 << (hash_bits or 0)))
        else:
            columns.append(FeatureColumn(name, role, levels, start, width))
        start += width
    return tuple(columns), hash_bits if hashed else None


def _named_width(role: str, levels: tuple[str, ...]) -> int:
    return {"numeric": 1, "categorical": len(levels), "hashed": 0}[role]


def hashed_feature(name: str, value: str, bits: int) -> int:
    """Public, stable bucket of ``name=value`` among ``2**bits``."""
    text = f"{name}={value}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=8).digest()
    return int.from_bytes(digest, "little") & ((1 << bits) - 1)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{one_line(name)}'" for name in names[:10])
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"
