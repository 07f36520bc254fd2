"""What is read off collected records before the public facts are settled.

It depends on the data: what becomes of it is listed as assumed, or compared with what was declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Label: TypeAlias = float | str
Target: TypeAlias = NDArray[np.float64] | NDArray[np.object_]

_Number = TypeVar("_Number", int, float)

MOST_CLASSES: Final = 1000  # more assumed labels are most likely a column of values


@dataclass(frozen=True)
class Summary:
    """Of all records, or of those in one place.

    Attributes
    ----------
    n_rows : int
        How many there are.
    columns : (int, int)
        Smallest and largest raw column index with an entry; ``(0, -1)`` when there is none.
    labels : tuple of labels
        Different values of the target, sorted: all of them, or more than can be classes.
    textual : bool
        Whether some target is a text.
    target_range : (float, float) or None
        Smallest and largest target; None for texts.
    offset, weight : float or None
        The largest; None without such a column.
    n_owners : int or None
        How many privacy units the records belong to; None where each is one of its own.
    """

    n_rows: int
    columns: tuple[int, int]
    labels: tuple[Label, ...]
    textual: bool
    target_range: tuple[float, float] | None
    offset: float | None
    weight: float | None
    n_owners: int | None = None

    @classmethod
    def of(
        cls,
        columns: tuple[int, int],
        targets: Sequence[Target],
        offsets: Sequence[Floats],
        weights: Sequence[Floats],
    ) -> Summary:
        """The summary of blocks, one array a block."""
        textual = any(target.dtype == object for target in targets)
        found: set[Label] = set()
        for target in targets:
            found.update(_distinct(target))
            if len(found) > MOST_CLASSES:
                break
        bounds = None
        if targets and not textual:
            bounds = min(float(t.min()) for t in targets), max(float(t.max()) for t in targets)
        return cls(
            n_rows=sum(map(len, targets)),
            columns=columns,
            labels=_sorted(found),
            textual=textual,
            target_range=bounds,
            offset=_largest(float(values.max()) for values in offsets),
            weight=_largest(float(values.max()) for values in weights),
        )

    @classmethod
    def of_all(cls, parts: Sequence[Summary]) -> Summary:
        """The summary of records in several places, none of which shares a unit with another."""
        filled = [part.columns for part in parts if part.columns[1] >= 0]
        ranges = [part.target_range for part in parts if part.target_range]
        return cls(
            n_rows=sum(part.n_rows for part in parts),
            columns=_hull(filled) or (0, -1),
            labels=_sorted({label for part in parts for label in part.labels}),
            textual=any(part.textual for part in parts),
            target_range=_hull(ranges),
            offset=_largest(part.offset for part in parts if part.offset is not None),
            weight=_largest(part.weight for part in parts if part.weight is not None),
            n_owners=_total(part.n_owners for part in parts if part.n_owners is not None),
        )


def _sorted(labels: set[Label]) -> tuple[Label, ...]:
    if any(isinstance(label, str) for label in labels):
        return tuple(sorted(map(str, labels)))
    return tuple(sorted(labels))


def _largest(values: Iterable[float]) -> float | None:
    return max(values, default=None)


def _distinct(target: Target) -> list[Label]:
    """As of `numpy.unique`, which imports masked arrays to ask whether it was given one."""
    ordered = np.sort(target)
    differs = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=differs[1:])
    distinct: list[Label] = ordered[differs].tolist()
    return distinct


def _total(numbers: Iterable[int]) -> int | None:
    found = list(numbers)
    return sum(found) if found else None


def _hull(ranges: Sequence[tuple[_Number, _Number]]) -> tuple[_Number, _Number] | None:
    return (min(r[0] for r in ranges), max(r[1] for r in ranges)) if ranges else None
