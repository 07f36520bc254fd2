"""The ledger as a document: a hash chain of entries, read strictly and grown only at its end.

The file holds one JSON object::

    {"schema": "dpfit-ledger/1",
     "cap": null or {"epsilon": 8.0, "delta": 1e-06, "adjacency": "replace-one"},
     "entries": [...]}

Every entry carries ``previous``, the hash of what stands before it (the schema and cap for the
first), and ``hash``, the SHA-256 of its own canonical JSON without that field. Entry kinds:

``reserved``
    A run's charge: its events, public facts and settings. Spent from here on, whatever follows.
``released``
    The run's model was written; carries the model file's SHA-256.
``aborted``
    The run ended without a model. The charge stays.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from dpfit.errors import PrivacyError, UsageError
from dpfit.privacy.accountant import Cost, compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.events import Event, event_from_json

SCHEMA: Final = "dpfit-ledger/1"
Json: TypeAlias = Mapping[str, object]

_KINDS: Final = ("reserved", "released", "aborted")


@dataclass(frozen=True)
class Cap:
    """The most that all runs of a ledger may spend together."""

    epsilon: float
    delta: float
    adjacency: Adjacency

    def to_json(self) -> Json:
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": str(self.adjacency),
        }


@dataclass(frozen=True)
class LedgerDocument:
    """A verified ledger.

    Attributes
    ----------
    cap : Cap or None
        None: nothing is refused.
    entries : tuple of mapping
        In the order of their chain.
    """

    cap: Cap | None = None
    entries: tuple[Json, ...] = ()

    def append(self, content: Json) -> LedgerDocument:
        """The document with one more entry, chained to the last."""
        tip = str(self.entries[-1]["hash"]) if self.entries else _genesis(self.cap)
        return LedgerDocument(self.cap, (*self.entries, _chained(content, tip)))

    def reservations(self) -> Iterator[Json]:
        return (entry for entry in self.entries if entry["kind"] == "reserved")

    def outcomes(self) -> dict[str, str]:
        """By run: ``released``, ``aborted``, or ``unreleased`` (no word since the reservation)."""
        return {
            str(entry["run"]): "unreleased" if entry["kind"] == "reserved" else str(entry["kind"])
            for entry in self.entries
        }

    def cost(self, adjacency: Adjacency) -> Cost:
        """What all reservations cost together, released or not."""
        events = [event for entry in self.reservations() for event in events_of(entry)]
        return compose(events, adjacency)

    def to_bytes(self) -> bytes:
        lines = ",\n".join(_canonical(entry) for entry in self.entries)
        cap = _canonical(self.cap.to_json()) if self.cap else "null"
        text = f'{{"schema":"{SCHEMA}",\n"cap":{cap},\n"entries":[\n{lines}\n]}}\n'
        return text.encode()


def events_of(entry: Json) -> list[Event]:
    """The events of one reservation."""
    events = entry["events"]
    if not isinstance(events, list) or not events:
        raise ValueError("it lists no events")
    return [event_from_json(event) for event in events]


def parse_ledger(data: bytes, path: str) -> LedgerDocument:
    """Read and verify a ledger.

    Raises
    ------
    PrivacyError
        The document is damaged or was changed; the message names the first bad entry. Nothing is
        repaired: what a damaged ledger allows cannot be known.
    """
    try:
        root = json.loads(data, parse_constant=_no_constant, object_pairs_hook=_unique_object)
        cap, entries = _header(root)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"it is not a {SCHEMA} document ({_plain(error)})") from None
    tip, open_runs, verified = _genesis(cap), set[str](), list[Json]()
    for number, entry in enumerate(entries, start=1):
        try:
            verified.append(_verified(entry, tip, open_runs))
        except (ValueError, KeyError, RecursionError) as error:
            place = f"entry {number} of {len(entries)}"
            raise _damaged(path, f"{place}: {_plain(error)}") from None
        tip = str(verified[-1]["hash"])
    return LedgerDocument(cap, tuple(verified))


def _header(root: object) -> tuple[Cap | None, list[object]]:
    if not isinstance(root, dict) or root.keys() != {"schema", "cap", "entries"}:
        raise ValueError("it needs exactly schema, cap and entries")
    if root["schema"] != SCHEMA:
        raise ValueError("its schema is another")
    if not isinstance(root["entries"], list):
        raise ValueError("its entries are no list")
    return _cap(root["cap"]), root["entries"]


def _cap(value: object) -> Cap | None:
    if value is None:
        return None
    if not isinstance(value, dict) or value.keys() != {"epsilon", "delta", "adjacency"}:
        raise ValueError("its cap needs exactly epsilon, delta and adjacency")
    epsilon, delta = value["epsilon"], value["delta"]
    if type(epsilon) not in (int, float) or type(delta) not in (int, float):
        raise ValueError("its cap is no number")
    try:
        Budget.from_request(float(epsilon), float(delta), None, None)
    except (UsageError, OverflowError):
        raise ValueError("its cap is outside the range of budgets") from None
    return Cap(float(epsilon), float(delta), Adjacency(value["adjacency"]))


def _verified(entry: object, tip: str, open_runs: set[str]) -> Json:
    if not isinstance(entry, dict):
        raise ValueError("it is no object")
    content = {key: value for key, value in entry.items() if key not in ("previous", "hash")}
    if _chained(content, tip) != entry:
        raise ValueError("its hash does not match what stands before it and in it")
    run, kind = entry["run"], entry["kind"]
    if not isinstance(run, str) or kind not in _KINDS:
        raise ValueError("its kind or run is not one that a ledger can hold")
    if kind == "reserved":
        events_of(entry)
        open_runs.add(run)
    elif run in open_runs:
        open_runs.remove(run)
    else:
        raise ValueError("it closes a run that is not open")
    return entry


def _genesis(cap: Cap | None) -> str:
    return _digest({"schema": SCHEMA, "cap": cap.to_json() if cap else None})


def _chained(content: Json, tip: str) -> Json:
    entry = {**content, "previous": tip}
    return {**entry, "hash": _digest(entry)}


def _canonical(value: Json) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _digest(value: Json) -> str:
    return hashlib.sha256(_canonical(value).encode()).hexdigest()


def _no_constant(name: str) -> object:
    raise ValueError("it holds a number that JSON does not know")


def _unique_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key occurs twice")
    return result


def _plain(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}: not JSON"
    if isinstance(error, UnicodeDecodeError):
        return "not text"
    if isinstance(error, KeyError):
        return f"{error.args[0]} is missing"
    if isinstance(error, RecursionError):
        return "nested too deep"
    return str(error)


def _damaged(path: str, what: str) -> PrivacyError:
    return PrivacyError(
        f"{path}: damaged ledger: {what}",
        hint="what was spent cannot be known from it; restore a copy that holds every run",
    )
