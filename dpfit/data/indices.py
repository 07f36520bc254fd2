"""Rules for the column indices of sparse formats, and the vectorised way to apply them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Raw indices are int32 and a one-based index d must leave room for d columns.
MAX_INDEX = 2**31 - 2
MAX_HASHED_INDEX = 2**63 - 1
MAX_HASH_BITS = 30

_CORRECT_WIDTH = "correct --n-features or the schema, or see --index-base"


Indices = NDArray[np.integer[Any]]
Rows = tuple[NDArray[np.int64], Indices, NDArray[np.float64]]


class NotCanonical(Exception):  # noqa: N818 - a signal to take the slow second look, not an error
    """Some entry breaks a rule; the reference parser will say which one and where."""


class LineFault(Exception):  # noqa: N818 - carries a DataError's text until the line is known
    """What is wrong with one line, and what to do about it."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class IndexRules:
    """What a raw column index may be and what happens to the rest.

    Attributes
    ----------
    base : int, optional
        Declared index base, 0 or 1.
    n_features : int, optional
        Declared number of columns.
    duplicates : str
        ``error``, ``sum`` (in file order) or ``last``.
    hash_bits : int, optional
        Fold indices into ``2**hash_bits`` columns; the resulting indices count from 0.
    ignore_new : bool
        Drop entries beyond ``n_features`` instead of refusing them.
    predicting : bool
        Whether ``n_features`` is a model's, not what the user declared.
    """

    base: int | None = None
    n_features: int | None = None
    duplicates: str = "error"
    hash_bits: int | None = None
    ignore_new: bool = False
    predicting: bool = False

    @property
    def last(self) -> int | None:
        """Largest raw index allowed by the declared width (the lenient one if the base is open)."""
        if self.n_features is None or self.hash_bits is not None:
            return None
        return self.n_features - 1 + (1 if self.base is None else self.base)

    @property
    def ceiling(self) -> int:
        """Largest raw index that can be represented at all."""
        return MAX_INDEX if self.hash_bits is None else MAX_HASHED_INDEX


def fold(raw: NDArray[np.uint64], bits: int) -> NDArray[np.int32]:
    """Low ``bits`` bits of the splitmix64 finaliser of each index: public, fixed, well mixed."""
    z = raw + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z & np.uint64((1 << bits) - 1)).astype(np.int32)


def checked_index(index: int, rules: IndexRules) -> int | None:
    """The raw index if allowed, None for an entry that is to be dropped.

    Raises
    ------
    LineFault
        One message per cause.
    """
    if index < 0:
        raise LineFault("a column index is negative")
    if index == 0 and rules.base == 1:
        hint = None if rules.predicting else "see --index-base"
        raise LineFault("a column index is 0, but indices count from 1", hint)
    if rules.last is not None and index > rules.last:
        if rules.ignore_new:
            return None
        if rules.predicting:
            message, hint = "the model's features", "--ignore-new-features"
        else:
            message, hint = "the declared number of features", _CORRECT_WIDTH
        raise LineFault(f"a column index is beyond {message}", hint)
    if index > rules.ceiling:
        bound = "2^31 - 2" if rules.hash_bits is None else "2^63 - 1"
        fold_hint = None if rules.predicting else "fold large indices with --hash-bits"
        raise LineFault(f"a column index is over {bound}", fold_hint)
    return index


def store_entry(entries: dict[int, float], index: int, value: float, duplicates: str) -> None:
    """Add one entry of a row in file order, by the rule for repeated columns."""
    if index not in entries or duplicates == "last":
        entries[index] = value
    elif duplicates == "sum":
        entries[index] += value
    else:
        raise LineFault("a column index is repeated", "see --duplicates sum or last")


def canonical(
    indptr: NDArray[np.int64], raw: Indices, values: NDArray[np.float64], rules: IndexRules
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Apply ``rules`` to entries in file order; sort and merge within each row.

    Parameters
    ----------
    indptr : int64 array, shape (n_rows + 1,)
    raw : unsigned or non-negative integer array, shape (nnz,)
    values : float64 array, shape (nnz,)
        Finite.
    rules : IndexRules

    Returns
    -------
    indptr, indices, values
        As in `RowBlock`.

    Raises
    ------
    NotCanonical
        If a rule is broken or a sum overflows.
    """
    rows = sort_and_merge(_within_range((indptr, raw, values), rules), rules.duplicates)
    if rules.hash_bits is not None:
        folded = fold(rows[1].astype(np.uint64), rules.hash_bits)
        rows = sort_and_merge((rows[0], folded, rows[2]), "sum")
    indptr, indices, values = rows
    if indices.dtype == np.uint32:
        return indptr, indices.view(np.int32), values
    return indptr, indices.astype(np.int32, copy=False), values


def _within_range(rows: Rows, rules: IndexRules) -> Rows:
    raw = rows[1]
    if not len(raw):
        return rows
    if rules.base == 1 and raw.min() == 0:
        raise NotCanonical
    largest = int(raw.max())
    if rules.last is not None and largest > rules.last:
        if not rules.ignore_new:
            raise NotCanonical
        return _keep(rows, raw <= rules.last)
    if largest > rules.ceiling:
        raise NotCanonical
    return rows


def _keep(rows: Rows, mask: NDArray[np.bool_]) -> Rows:
    indptr, raw, values = rows
    kept_before = np.concatenate(([0], np.cumsum(mask, dtype=np.int64)))
    return kept_before[indptr], raw[mask], values[mask]


def sort_and_merge(rows: Rows, duplicates: str) -> Rows:
    """Sort each row by index and merge equal indices (``error``, ``sum``, ``last``)."""
    indptr, raw, values = rows
    if len(raw) < 2 or not _disorder(indptr, raw).any():
        return rows
    row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = _sorting(row, raw)
    raw, values = raw[order], values[order]
    fresh = np.ones(len(raw), dtype=np.bool_)
    fresh[1:] = (raw[1:] != raw[:-1]) | (row[1:] != row[:-1])
    if fresh.all():
        return indptr, raw, values
    if duplicates == "error":
        raise NotCanonical
    merged = _merge_values(fresh, values, duplicates)
    kept_before = np.concatenate(([0], np.cumsum(fresh, dtype=np.int64)))
    return kept_before[indptr], raw[fresh], merged


def _sorting(row: NDArray[np.int64], raw: Indices) -> NDArray[np.int64]:
    """The stable order by row, then index: equal indices stay in file order."""
    if raw.dtype.itemsize > 4:
        return np.lexsort((raw, row))
    # One key is nearly sorted, which a stable argsort uses and lexsort does not.
    return np.argsort(row << 32 | raw.astype(np.int64), kind="stable")


def _disorder(indptr: NDArray[np.int64], raw: Indices) -> NDArray[np.bool_]:
    bad: NDArray[np.bool_] = raw[1:] <= raw[:-1]
    starts = indptr[1:-1]
    starts = starts[(starts > 0) & (starts < len(raw))]
    bad[starts - 1] = False
    return bad


def _merge_values(
    fresh: NDArray[np.bool_], values: NDArray[np.float64], duplicates: str
) -> NDArray[np.float64]:
    starts = np.flatnonzero(fresh)
    ends = np.append(starts[1:], len(values))
    if duplicates == "last":
        last: NDArray[np.float64] = values[ends - 1]
        return last
    # bincount adds one by one in file order; reduceat would add pairwise and round differently.
    sums = np.bincount(np.cumsum(fresh) - 1, weights=values, minlength=len(starts))
    merged = np.where(ends - starts > 1, sums, values[starts])
    if not np.isfinite(merged).all():
        raise NotCanonical
    return merged
