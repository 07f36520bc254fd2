"""What a ledger's entries come to, kept at its end: all that a run needs to know of those before.

It spares a run the reading of every entry, and nothing else: whoever adds a ledger up verifies the
entries and holds the checkpoint against them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Final

from dpfit import __version__
from dpfit.privacy.accountant import NOTHING, Cost, compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.canonical_json import Json, canonical
from dpfit.privacy.events import Event, event_from_json

_KINDS: Final = ("reserved", "released", "aborted")
_CURRENCIES: Final = ("gaussian", "rho", "noise", "pure")
_LONGEST_FRACTION: Final = 1 << 12  # digits; denominators end at 2^4096
_REMEMBERED: Final = 1 << 14  # costs of lists of events; most runs of a ledger are alike


@dataclass
class Checkpoint:
    """The state of a chain after its last entry.

    Attributes
    ----------
    tip : str
        Hash of the last entry, or what the first has for ``previous``.
    adjacency : Adjacency or None
        That of the cap. None: no cap, and no cost is kept.
    open_runs : set of str
        Reserved, and no word since.
    cost : Cost
        Of all reservations under ``adjacency``, added in their order.
    """

    tip: str
    adjacency: Adjacency | None
    open_runs: set[str] = field(default_factory=set)
    cost: Cost = NOTHING

    def take(self, entry: Json) -> None:
        """Take up one more entry, already hashed.

        Raises
        ------
        ValueError, KeyError
            It cannot follow; the message says why.
        """
        kind, run = entry["kind"], entry["run"]
        if kind not in _KINDS or not isinstance(run, str):
            raise ValueError("its kind or run is not one that a ledger can hold")
        if kind == "reserved":
            cost = charge(entry, self.adjacency or Adjacency.REPLACE_ONE)
            if self.adjacency is not None:
                self.cost += cost
            self.open_runs.add(run)
        elif run in self.open_runs:
            self.open_runs.remove(run)
        else:
            raise ValueError("it closes a run that is not open")
        self.tip = str(entry["hash"])

    def copy(self) -> Checkpoint:
        return replace(self, open_runs=set(self.open_runs))

    def to_json(self) -> Json:
        """Fractions in hexadecimal, whose length has no limit; the version that computed them."""
        cost = {
            name: f"{value.numerator:x}/{value.denominator:x}"
            if isinstance(value, Fraction)
            else value
            for name, value in asdict(self.cost).items()
        }
        return {
            "cost": None if self.adjacency is None else cost,
            "dpfit": __version__,
            "open": sorted(self.open_runs),
            "tip": self.tip,
        }

    @classmethod
    def from_json(cls, value: object, adjacency: Adjacency | None) -> Checkpoint:
        """The inverse of :meth:`to_json`.

        Raises
        ------
        ValueError, KeyError, TypeError
            It is none. One of another version may pass, but is not written so by this one.
        """
        if not isinstance(value, dict):
            raise TypeError("its checkpoint is no object")
        tip, runs = value["tip"], value["open"]
        if not all(isinstance(name, str) for name in (tip, *runs)):
            raise ValueError("its checkpoint holds no names")
        return cls(
            tip, adjacency, set(runs), NOTHING if adjacency is None else _cost(value["cost"])
        )


def events_of(listed: object) -> list[Event]:
    """The events of one reservation, from what it has for ``events``."""
    if not isinstance(listed, list) or not listed:
        raise ValueError("it lists no events")
    return [event_from_json(event) for event in listed]


def charge(entry: Json, adjacency: Adjacency) -> Cost:
    """The cost of one reservation.

    Raises
    ------
    ValueError, KeyError
        Its events are none.
    """
    return _charge(canonical(entry["events"]), adjacency)


@lru_cache(_REMEMBERED)
def _charge(events: str, adjacency: Adjacency) -> Cost:
    return compose(events_of(json.loads(events)), adjacency)


def _cost(value: dict[str, object]) -> Cost:
    parts = {name: _fraction(value[name]) for name in _CURRENCIES}
    doublings, infinite = value["doublings"], value["infinite"]
    if type(doublings) is not int or type(infinite) is not bool:
        raise ValueError("its checkpoint holds no cost")
    shift, log_multiple = _fraction(value["shift"]), _fraction(value["log_multiple"])
    if shift is None or log_multiple is None:
        raise ValueError("its checkpoint holds no cost")
    return Cost(
        **parts,
        doublings=doublings,
        shift=shift,
        log_multiple=log_multiple,
        infinite=infinite,
    )


def _fraction(text: object) -> Fraction | None:
    if text is None:
        return None
    if len(str(text)) > _LONGEST_FRACTION:
        raise ValueError("its checkpoint holds a number longer than a cost can be")
    numerator, denominator = str(text).split("/")
    return Fraction(int(numerator, 16), int(denominator, 16))
