"""What the runs of a ledger protect, and what was spent on each.

A run for rows says nothing about a whole unit. Runs for units add up for whoever is a unit of all
of them, and names do not tell: ``user`` of a completion and the unit ``who`` of a fit may be the
same people. So beside what was spent under each name stands the sum over all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
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
        """What an entry of a ledger, or a model, says; without a word it is for rows."""
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
    """Number of runs, and what they cost together."""

    runs: int
    cost: Cost

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.runs + other.runs, self.cost + other.cost)


_UNSPENT: Final = Spent(0, NOTHING)


@dataclass(frozen=True)
class Share:
    """What was spent on some of those whom a ledger's runs protect.

    Attributes
    ----------
    on : str
        Who they are.
    names : str or None
        Where they have several, all of them.
    spent : Spent
    counted : str
        How many of all runs that were.
    others : str
        What the other runs are to them; empty if there are none.
    """

    on: str
    names: str | None
    spent: Spent
    counted: str
    others: str


@dataclass(frozen=True)
class SpentOnEach:
    """What was spent on all that the runs of a ledger protect.

    Attributes
    ----------
    adjacency : Adjacency
        The relation that costs are under.
    by : mapping of Protected to Spent
        In order of the first run for it.
    """

    adjacency: Adjacency
    by: Mapping[Protected, Spent] = field(hash=False)

    @classmethod
    def of(cls, document: LedgerDocument, adjacency: Adjacency) -> SpentOnEach:
        """That of a ledger, all parts of it."""
        charges = document.charges(adjacency)
        return cls.of_charges(((Protected.by(entry), cost) for entry, cost in charges), adjacency)

    @classmethod
    def of_charges(
        cls, charges: Iterable[tuple[Protected, Cost]], adjacency: Adjacency
    ) -> SpentOnEach:
        """That of runs, by what each protects and costs."""
        found: dict[Protected, Spent] = {}
        for one, cost in charges:
            found[one] = found.get(one, _UNSPENT) + Spent(1, cost)
        return cls(adjacency, found)

    @property
    def total(self) -> Spent:
        """Of all runs, whatever they protect: what a cap is compared with."""
        return sum(self.by.values(), _UNSPENT)

    @property
    def names(self) -> list[Protected]:
        """Whatever a run protects as a whole."""
        return [one for one in self.by if one != ROW]

    @property
    def on_units(self) -> Spent:
        """On whoever is a unit under all names."""
        return sum((self.by[one] for one in self.names), _UNSPENT)

    def on(self, record: str) -> Spent | None:
        """What counts against one such record; None if no run protects it.

        A replaced unit may differ in one row, so that all runs count for a row then; a row that is
        taken away leaves the rest of its unit.
        """
        spent = self.on_units
        if record == ROW.record:
            every = self.adjacency is Adjacency.REPLACE_ONE
            spent = self.total if every else self.by.get(ROW, _UNSPENT)
        return spent if spent.runs else None

    @property
    def mixed(self) -> bool:
        """Whether the total of all runs is not that of one kind of record."""
        return len(self.by) > 1

    @property
    def of_total(self) -> str:
        """For whom the total of all runs holds, where they protect different records."""
        if self.adjacency is Adjacency.REPLACE_ONE:
            return "a single row, by all runs"
        return "nothing by itself: the runs are for different records"

    def shares(self) -> list[Share]:
        """Beside the total: on each name, and on all of them; nothing where the total says it."""
        if not self.mixed:
            return []
        names = self.names
        if len(names) == 1:
            return [self._share(names[0], f"the others do not protect a whole {names[0].record}")]
        elsewhere = "the others have another name" + (" or are for rows" if ROW in self.by else "")
        return [*(self._share(one, elsewhere) for one in names), self._together(names)]

    def _share(self, one: Protected, others: str) -> Share:
        spent = self.by[one]
        return Share(f"a {one}", None, spent, self._counted(spent), others)

    def _together(self, names: list[Protected]) -> Share:
        spent, listed = self.on_units, ", ".join(map(str, names))
        others = "the others do not protect a whole unit" if ROW in self.by else ""
        on = "whoever is one unit under all names"
        return Share(on, listed, spent, self._counted(spent), others)

    def _counted(self, spent: Spent) -> str:
        return f"{spent.runs:,} of {self.total.runs:,}"
