"""What the runs of a ledger protect, and what was spent on each, different units apart.

A run for rows says nothing about a whole unit, nor does a run for another unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dpfit.privacy.accountant import NOTHING, Cost
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.canonical_json import Json
from dpfit.privacy.ledger_document import LedgerDocument


@dataclass(frozen=True)
class Protected:
    """What a run protects.

    Attributes
    ----------
    record : str
        ``row``, ``user`` or ``unit``.
    unit : str or None
        The column that says which rows are one unit.
    """

    record: str
    unit: str | None = None

    @classmethod
    def by(cls, entry: Json) -> Protected:
        """What an entry of a ledger says; without a word it is for rows."""
        unit = entry.get("unit")
        return cls(str(entry.get("record", "row")), None if unit is None else str(unit))

    def __str__(self) -> str:
        return self.record if self.unit is None else f"{self.record}: {self.unit}"

    def to_json(self) -> dict[str, object]:
        """As the entries have it."""
        named = {} if self.unit is None else {"unit": self.unit}
        return {"record": self.record, **named}


ROW: Final = Protected("row")


@dataclass(frozen=True)
class Spent:
    """Number of runs for the same record, and what they cost together."""

    runs: int
    cost: Cost


def spent_by_protected(document: LedgerDocument, adjacency: Adjacency) -> dict[Protected, Spent]:
    """What was spent on each, in order of the first run for it."""
    found: dict[Protected, Spent] = {}
    for entry, cost in document.charges(adjacency):
        one = Protected.by(entry)
        before = found.get(one, Spent(0, NOTHING))
        found[one] = Spent(before.runs + 1, before.cost + cost)
    return found
