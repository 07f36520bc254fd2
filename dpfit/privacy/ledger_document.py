"""The ledger as a document: a hash chain of entries, read strictly and grown only at its end.

The file holds one JSON object::

    {"schema": "dpfit-ledger/1",
     "cap": null or {"epsilon": 8.0, "delta": 1e-06, "adjacency": "replace-one"},
     "entries": [...],
     "checkpoint": {...},
     "sha256": "..."}

Every entry carries ``previous``, the hash of what stands before it (the schema and cap for the
first), and ``hash``, the SHA-256 of its own canonical JSON without that field. Entry kinds:

``reserved``
    A run's charge: its events, public facts and settings. Spent from here on, whatever follows.
``released``
    The run's model was written; carries the model file's SHA-256.
``aborted``
    The run ended without a model. The charge stays.

``checkpoint`` is what the entries come to, and ``sha256``, alone on the last line, that of all
lines before it. Together they let a run go on from a file that is as dpfit wrote it to the byte
(:func:`resume`), where :func:`parse_ledger` verifies every entry and the checkpoint against them.
Ledgers of earlier versions end with their entries.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dpfit import __version__
from dpfit.errors import PrivacyError, UsageError
from dpfit.privacy.accountant import NOTHING, Cost
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.canonical_json import Json, canonical, digest, read_strictly
from dpfit.privacy.ledger_checkpoint import Checkpoint, charge

if TYPE_CHECKING:
    from hashlib import _Hash

SCHEMA: Final = "dpfit-ledger/1"

_BEFORE_ENTRIES: Final = b'"entries":[\n'
_BETWEEN_ENTRIES: Final = b",\n"
_AFTER_ENTRIES: Final = b"\n]"
_BEFORE_CHECKPOINT: Final = b',\n"checkpoint":'
_ANOTHER_FRAME: Final = "its frame is not as dpfit writes it"
_LARGEST_FREE_LAYOUT: Final = 1 << 24  # such a file is parsed as a whole, at 20 times its size
_MEMBERS: Final = {"schema", "cap", "entries"}
_SEAL: Final = {"checkpoint", "sha256"}
_BAD: Final = (ValueError, KeyError, TypeError, ArithmeticError, RecursionError)


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
    """A ledger, verified or resumed.

    Attributes
    ----------
    cap : Cap or None
        None: nothing is refused.
    data : bytes
        The file.
    checkpoint : Checkpoint
        What its entries come to.
    """

    cap: Cap | None
    data: bytes = field(repr=False)
    checkpoint: Checkpoint = field(repr=False, compare=False)
    _end: int = field(repr=False, compare=False)  # of the last entry in ``data``
    _hashed: _Hash = field(repr=False, compare=False)  # of ``data`` up to there

    @classmethod
    def start(cls, cap: Cap | None = None) -> LedgerDocument:
        """A ledger without entries."""
        return cls._sealed(cap, b"", _head(cap), _first_checkpoint(cap), hashlib.sha256())

    @classmethod
    def _sealed(
        cls,
        cap: Cap | None,
        written: bytes | memoryview,
        more: bytes,
        checkpoint: Checkpoint,
        hashed: _Hash,
    ) -> LedgerDocument:
        """What is written (and hashed), more, and the end that belongs to it."""
        hashed.update(more)
        data = b"".join((written, more, _end(checkpoint.to_json(), hashed)))
        return cls(cap, data, checkpoint, len(written) + len(more), hashed)

    def append(self, *contents: Json) -> LedgerDocument:
        """The document with more entries, chained to the last.

        Raises
        ------
        ValueError, KeyError
            One cannot follow.
        """
        checkpoint, lines = self.checkpoint.copy(), list[bytes]()
        for content in contents:
            entry = _chained(content, checkpoint.tip)
            checkpoint.take(entry)
            lines.append(canonical(entry).encode())
        first = self._end == len(_head(self.cap))
        more = (b"" if first else _BETWEEN_ENTRIES) + _BETWEEN_ENTRIES.join(lines)
        written = memoryview(self.data)[: self._end]
        return self._sealed(self.cap, written, more, checkpoint, self._hashed.copy())

    def continues(self, other: LedgerDocument) -> bool:
        """Whether this is the other document, with more entries perhaps."""
        written = memoryview(other.data)[: other._end]
        return self._end >= other._end and memoryview(self.data)[: other._end] == written

    def entries(self) -> Iterator[Json]:
        """In the order of their chain; read one by one, so that a long ledger needs no memory."""
        return map(json.loads, _lines(self.data[len(_head(self.cap)) : self._end]))

    def outcomes(self) -> dict[str, str]:
        """By run: ``released``, ``aborted``, or ``unreleased`` (no word since the reservation)."""
        return {
            str(entry["run"]): "unreleased" if entry["kind"] == "reserved" else str(entry["kind"])
            for entry in self.entries()
        }

    def charges(self, adjacency: Adjacency) -> Iterator[tuple[Json, Cost]]:
        """Each reservation with its own cost."""
        for entry in self.entries():
            if entry["kind"] == "reserved":
                yield entry, charge(entry, adjacency)

    def cost(self, adjacency: Adjacency) -> Cost:
        """What all reservations cost together, released or not."""
        if adjacency is self.checkpoint.adjacency:
            return self.checkpoint.cost
        return sum((cost for _, cost in self.charges(adjacency)), NOTHING)


def resume(data: bytes) -> LedgerDocument | None:
    """The document by its checkpoint, its entries unread.

    None if the file is not, to the byte, as this version of the program wrote it; then it has to be
    verified as a whole.
    """
    try:
        header, _, end = _framed(data)
        adjacency = header.cap.adjacency if header.cap else None
        checkpoint = Checkpoint.from_json(header.checkpoint, adjacency)
    except _BAD:
        return None
    hashed = hashlib.sha256(memoryview(data)[:end])
    if data[end:] != _end(checkpoint.to_json(), hashed):
        return None
    return LedgerDocument(header.cap, data, checkpoint, end, hashed)


def parse_ledger(data: bytes, path: str) -> LedgerDocument:
    """Read and verify a ledger, every entry of it.

    Parameters
    ----------
    data, path : bytes, str
        The file, and its name for messages.

    Raises
    ------
    PrivacyError
        The document is damaged or was changed; the message names the first bad entry. Nothing is
        repaired: what a damaged ledger allows cannot be known.
    """
    try:
        header, start, end = _framed(data)
        lines = _lines(data[start:end])
        document = _verified(header, map(json.loads, lines), len(lines))
        if document.data[: document._end] != data[:end]:  # or a name occurs twice
            raise ValueError("its entries are not as dpfit writes them")
        return document
    except _BAD as error:
        if len(data) > _LARGEST_FREE_LAYOUT:
            raise _damaged(path, _plain(error)) from None
    try:
        header = _Header.read(data)
        return _verified(header, iter(header.entries), len(header.entries))
    except _BAD as error:
        raise _damaged(path, _plain(error)) from None


def _framed(data: bytes) -> tuple[_Header, int, int]:
    """What stands around the entries, and where their lines begin and end.

    Raises
    ------
    ValueError
        The layout is another.
    """
    start = data.find(_BEFORE_ENTRIES) + len(_BEFORE_ENTRIES)
    end = data.rfind(_AFTER_ENTRIES + _BEFORE_CHECKPOINT)
    if end < 0:
        end = data.rfind(_AFTER_ENTRIES + b"}")
    if not len(_BEFORE_ENTRIES) <= start <= end:
        raise ValueError(_ANOTHER_FRAME)
    header = _Header.read(data[:start] + data[end:])
    if data[:start] != _head(header.cap):
        raise ValueError(_ANOTHER_FRAME)
    return header, start, end


def _lines(entries: bytes) -> list[str]:
    return entries.decode("ascii").split(_BETWEEN_ENTRIES.decode()) if entries else []


def _verified(header: _Header, entries: Iterator[object], count: int) -> LedgerDocument:
    """The document, written anew from its entries.

    Raises
    ------
    ValueError
        It says which entry cannot stand there, or that the checkpoint is not that of the entries.
    """
    checkpoint, lines = _first_checkpoint(header.cap), list[bytes]()
    try:
        for entry in entries:
            if not isinstance(entry, dict):
                raise ValueError("it is no object")
            line = _line(entry, checkpoint.tip)
            checkpoint.take(entry)
            lines.append(line)
    except _BAD as error:
        place = f"entry {len(lines) + 1} of {count}"
        raise ValueError(f"{place}: {_plain(error)}") from None
    written = _head(header.cap) + _BETWEEN_ENTRIES.join(lines)
    hashed, stated = hashlib.sha256(), header.checkpoint
    document = LedgerDocument._sealed(header.cap, b"", written, checkpoint, hashed)
    if stated is None:
        return document
    if header.sha256 != _sha256(stated, hashed):
        raise ValueError("the document: its SHA-256 on the last line is another")
    if stated.get("dpfit") == __version__ and stated != checkpoint.to_json():
        raise ValueError("the document: its checkpoint is not what its entries come to")
    return document


def _line(entry: Json, tip: str) -> bytes:
    """Write an entry as it is hashed.

    Raises
    ------
    ValueError
        It is no link of the chain at this tip.
    """
    line = canonical(entry).encode()
    claimed = str(entry["hash"])
    # No text value can hold this: a quote within one is written with a backslash before it.
    unhashed = line.replace(b'"hash":"%b",' % claimed.encode(), b"", 1)
    if entry["previous"] != tip or hashlib.sha256(unhashed).hexdigest() != claimed:
        raise ValueError("its hash does not match what stands before it and in it")
    return line


@dataclass(frozen=True)
class _Header:
    """A ledger's members."""

    cap: Cap | None
    entries: Sequence[object]
    checkpoint: Json | None
    sha256: object

    @classmethod
    def read(cls, data: bytes) -> _Header:
        """Members of a document, which may have been taken out of its entries.

        Raises
        ------
        ValueError
            It is no ledger.
        """
        try:
            root = read_strictly(data)
            if not isinstance(root, dict) or root.keys() not in (_MEMBERS, _MEMBERS | _SEAL):
                raise ValueError("it needs exactly schema, cap, entries, checkpoint and sha256")
            if root["schema"] != SCHEMA:
                raise ValueError("its schema is another")
            entries, stated = root["entries"], root.get("checkpoint")
            if not isinstance(entries, list):
                raise ValueError("its entries are no list")
            if "checkpoint" in root and not isinstance(stated, dict):
                raise ValueError("its checkpoint is no object")
            return cls(_cap(root["cap"]), entries, stated, root.get("sha256"))
        except _BAD as error:
            raise ValueError(f"it is not a {SCHEMA} document ({_plain(error)})") from None


def _end(stated: Json, hashed: _Hash) -> bytes:
    """What follows the last entry: the checkpoint, and the hash of all lines before its own."""
    return _checkpoint_line(stated) + b'"sha256":"%b"}\n' % _sha256(stated, hashed).encode()


def _sha256(stated: Json, hashed: _Hash) -> str:
    hashed = hashed.copy()
    hashed.update(_checkpoint_line(stated))
    return hashed.hexdigest()


def _checkpoint_line(stated: Json) -> bytes:
    return _AFTER_ENTRIES + _BEFORE_CHECKPOINT + canonical(stated).encode() + b",\n"


def _first_checkpoint(cap: Cap | None) -> Checkpoint:
    genesis = digest({"schema": SCHEMA, "cap": cap.to_json() if cap else None})
    return Checkpoint(genesis, cap.adjacency if cap else None)


def _head(cap: Cap | None) -> bytes:
    text = canonical(cap.to_json() if cap else None)
    return f'{{"schema":"{SCHEMA}",\n"cap":{text},\n'.encode() + _BEFORE_ENTRIES


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
