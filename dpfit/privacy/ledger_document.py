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

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from dpfit.errors import PrivacyError, UsageError
from dpfit.privacy.accountant import NOTHING, Cost, compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.canonical_json import Json, canonical, digest, read_strictly
from dpfit.privacy.events import Event, event_from_json
from dpfit.privacy.ledger_lines import LineReader, NotCanonicalError

SCHEMA: Final = "dpfit-ledger/1"

_KINDS: Final = ("reserved", "released", "aborted")
_BEFORE_ENTRIES: Final = b'"entries":[\n'
_AFTER_ENTRIES: Final = b"\n]}\n"
_BETWEEN_ENTRIES: Final = b",\n"
_LARGEST_FREE_LAYOUT: Final = 1 << 24  # such a file is parsed as a whole, at 20 times its size


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
    _lines: tuple[bytes, ...] = field(default=(), repr=False, compare=False)
    """Canonical forms of the first entries, as far as they are known."""

    def append(self, content: Json) -> LedgerDocument:
        """The document with one more entry, chained to the last."""
        tip = str(self.entries[-1]["hash"]) if self.entries else _genesis(self.cap)
        entry, lines = _chained(content, tip), self._lines
        if len(lines) == len(self.entries):
            lines = (*lines, canonical(entry).encode())
        return LedgerDocument(self.cap, (*self.entries, entry), lines)

    def reservations(self) -> Iterator[Json]:
        return (entry for entry in self.entries if entry["kind"] == "reserved")

    def outcomes(self) -> dict[str, str]:
        """By run: ``released``, ``aborted``, or ``unreleased`` (no word since the reservation)."""
        return {
            str(entry["run"]): "unreleased" if entry["kind"] == "reserved" else str(entry["kind"])
            for entry in self.entries
        }

    def charges(self, adjacency: Adjacency) -> Iterator[tuple[Json, Cost]]:
        """Each reservation with its own cost."""
        costs: dict[int, Cost] = {}  # by the list of events, which reservations share
        for entry in self.reservations():
            shared = id(entry["events"])
            if shared not in costs:
                costs[shared] = compose(events_of(entry), adjacency)
            yield entry, costs[shared]

    def cost(self, adjacency: Adjacency) -> Cost:
        """What all reservations cost together, released or not."""
        counts = Counter(id(entry["events"]) for entry in self.reservations())
        charges = {id(entry["events"]): cost for entry, cost in self.charges(adjacency)}
        return sum((cost * counts[shared] for shared, cost in charges.items()), NOTHING)

    def to_bytes(self) -> bytes:
        new = (canonical(entry).encode() for entry in self.entries[len(self._lines) :])
        lines = _BETWEEN_ENTRIES.join((*self._lines, *new))
        return _head(self.cap) + lines + _AFTER_ENTRIES


def events_of(entry: Json) -> list[Event]:
    """The events of one reservation."""
    events = entry["events"]
    if not isinstance(events, list) or not events:
        raise ValueError("it lists no events")
    return [event_from_json(event) for event in events]


def parse_ledger(data: bytes, path: str, known: LedgerDocument | None = None) -> LedgerDocument:
    """Read and verify a ledger.

    Parameters
    ----------
    data, path : bytes, str
        The file, and its name for messages.
    known : LedgerDocument, optional
        Verified before: lines that are the same to the byte are not verified once more.

    Raises
    ------
    PrivacyError
        The document is damaged or was changed; the message names the first bad entry. Nothing is
        repaired: what a damaged ledger allows cannot be known.
    """
    try:
        return _parse_as_written(data, known or LedgerDocument())
    except NotCanonicalError as error:
        if len(data) > _LARGEST_FREE_LAYOUT:
            raise _damaged(path, str(error)) from None
    try:
        root = read_strictly(data)
        cap, entries = _header(root)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"it is not a {SCHEMA} document ({_plain(error)})") from None
    tip, order, verified = _genesis(cap), _Order(), list[Json]()
    for number, entry in enumerate(entries, start=1):
        try:
            verified.append(_verified(entry, tip, order))
        except (ValueError, KeyError, RecursionError) as error:
            place = f"entry {number} of {len(entries)}"
            raise _damaged(path, f"{place}: {_plain(error)}") from None
        tip = str(verified[-1]["hash"])
    return LedgerDocument(cap, tuple(verified))


def _parse_as_written(data: bytes, known: LedgerDocument) -> LedgerDocument:
    """The document, read line by line.

    Raises
    ------
    NotCanonicalError
        Its layout is another, or anything is wrong.
    """
    head, mark, rest = data.partition(_BEFORE_ENTRIES)
    body = rest.removesuffix(_AFTER_ENTRIES)
    lines = tuple(body.split(_BETWEEN_ENTRIES)) if body else ()
    try:
        cap, _ = _header(read_strictly(head + mark + b"]}"))
        as_written = head + mark == _head(cap) and body + _AFTER_ENTRIES == rest
    except (ValueError, RecursionError):
        as_written = False
    if not as_written:
        raise NotCanonicalError("its frame is not as dpfit writes it")
    tip, order, reader, verified = _genesis(cap), _Order(), LineReader(), list[Json]()
    if cap == known.cap and known.entries and known._lines == lines[: len(known.entries)]:
        for entry in known.entries:
            order.take(entry)
        tip, verified = str(known.entries[-1]["hash"]), [*known.entries]
    for number, line in enumerate(lines[len(verified) :], start=len(verified) + 1):
        try:
            entry = reader.entry(line)
            if entry["previous"] != tip:
                raise NotCanonicalError
            order.check(entry)
        except (ValueError, KeyError, RecursionError):
            place = f"entry {number} of {len(lines)}"
            raise NotCanonicalError(f"{place}: it does not follow, or is changed") from None
        verified.append(entry)
        tip = str(entry["hash"])
    return LedgerDocument(cap, tuple(verified), lines)


def _head(cap: Cap | None) -> bytes:
    text = canonical(cap.to_json() if cap else None)
    return f'{{"schema":"{SCHEMA}",\n"cap":{text},\n'.encode() + _BEFORE_ENTRIES


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


def _verified(entry: object, tip: str, order: _Order) -> Json:
    if not isinstance(entry, dict):
        raise ValueError("it is no object")
    content = {key: value for key, value in entry.items() if key not in ("previous", "hash")}
    if _chained(content, tip) != entry:
        raise ValueError("its hash does not match what stands before it and in it")
    order.check(entry)
    return entry


class _Order:
    """What entries may follow those seen so far."""

    def __init__(self) -> None:
        self._open_runs: set[str] = set()
        self._sound: dict[int, object] = {}  # lists of events already checked, which entries share

    def check(self, entry: Json) -> None:
        """Take up one more entry.

        Raises
        ------
        ValueError, KeyError
            It says what cannot be.
        """
        if not isinstance(entry["run"], str) or entry["kind"] not in _KINDS:
            raise ValueError("its kind or run is not one that a ledger can hold")
        if entry["kind"] == "reserved" and id(entry["events"]) not in self._sound:
            events_of(entry)
            self._sound[id(entry["events"])] = entry["events"]
        self.take(entry)

    def take(self, entry: Json) -> None:
        """Take up an entry that is sound in itself."""
        run = str(entry["run"])
        if entry["kind"] == "reserved":
            self._open_runs.add(run)
        elif run in self._open_runs:
            self._open_runs.remove(run)
        else:
            raise ValueError("it closes a run that is not open")


def _genesis(cap: Cap | None) -> str:
    return digest({"schema": SCHEMA, "cap": cap.to_json() if cap else None})


def _chained(content: Json, tip: str) -> Json:
    entry = {**content, "previous": tip}
    return {**entry, "hash": digest(entry)}


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
