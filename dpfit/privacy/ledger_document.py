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

A ledger that has grown long goes on in a new file, with the old one beside it; between ``cap`` and
``entries`` there then stands ``earlier``, what the new part takes over from the one before
(:class:`~dpfit.privacy.ledger_part.EarlierPart`). The chain of hashes runs through all parts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from dpfit import __version__
from dpfit.errors import PrivacyError
from dpfit.privacy.accountant import NOTHING, Cost
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.canonical_json import Json, canonical, digest
from dpfit.privacy.ledger_checkpoint import Checkpoint, charge
from dpfit.privacy.ledger_frame import (
    BETWEEN_ENTRIES,
    DAMAGE,
    SCHEMA,
    Cap,
    Header,
    entry_lines,
    framed,
    head_of,
    reason_of_damage,
    seal,
    sha256_of,
)
from dpfit.privacy.ledger_part import EarlierPart

if TYPE_CHECKING:
    from hashlib import _Hash

_LARGEST_FREE_LAYOUT: Final = 1 << 24  # such a file is parsed as a whole, at 20 times its size


@dataclass(frozen=True)
class LedgerDocument:
    """A ledger, or its last part, verified or resumed.

    Attributes
    ----------
    cap : Cap or None
        None: nothing is refused.
    earlier : EarlierPart or None
        What its file says of the part before it.
    data : bytes
        The file.
    checkpoint : Checkpoint
        What its entries and those of all earlier parts come to.
    before : LedgerDocument or None
        The part before it, if that was read.
    """

    cap: Cap | None
    earlier: EarlierPart | None = field(repr=False)
    data: bytes = field(repr=False)
    checkpoint: Checkpoint = field(repr=False, compare=False)
    before: LedgerDocument | None = field(repr=False, compare=False)
    _end: int = field(repr=False, compare=False)  # of the last entry in ``data``
    _hashed: _Hash = field(repr=False, compare=False)  # of ``data`` up to there

    @classmethod
    def start(cls, cap: Cap | None = None) -> LedgerDocument:
        """A ledger without entries."""
        checkpoint = _first_checkpoint(cap)
        return cls(cap, None, b"", checkpoint, None, 0, hashlib.sha256())._extended(
            head_of(cap, None)
        )

    def next_part(self) -> LedgerDocument:
        """A part without entries that goes on where this one ends."""
        earlier, checkpoint = self.as_earlier(), self.checkpoint.copy()
        empty = LedgerDocument(self.cap, earlier, b"", checkpoint, None, 0, hashlib.sha256())
        return empty._extended(head_of(self.cap, earlier))

    def as_earlier(self) -> EarlierPart:
        """What the next part says of this one."""
        return EarlierPart(self.part, self.checkpoint.to_json())

    @property
    def part(self) -> int:
        """Its number among the parts, from 1."""
        return 1 if self.earlier is None else self.earlier.number + 1

    @property
    def size(self) -> int:
        """Bytes of its own entries; the names of open runs around them may be longer."""
        return self._end - len(self._head)

    def _extended(self, more: bytes, checkpoint: Checkpoint | None = None) -> LedgerDocument:
        """The document with more at its end, which comes to another checkpoint perhaps."""
        checkpoint, hashed = checkpoint or self.checkpoint, self._hashed.copy()
        hashed.update(more)
        written = memoryview(self.data)[: self._end]
        data = b"".join((written, more, seal(checkpoint.to_json(), hashed)))
        end = self._end + len(more)
        return replace(self, data=data, checkpoint=checkpoint, _end=end, _hashed=hashed)

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
        first = self._end == len(self._head)
        more = (b"" if first else BETWEEN_ENTRIES) + BETWEEN_ENTRIES.join(lines)
        return self._extended(more, checkpoint)

    @property
    def _head(self) -> bytes:
        return head_of(self.cap, self.earlier)

    def continues(self, other: LedgerDocument) -> bool:
        """Whether this is the other document, the same part, with more entries perhaps."""
        written = memoryview(other.data)[: other._end]
        return self._end >= other._end and memoryview(self.data)[: other._end] == written

    def entries(self) -> Iterator[Json]:
        """In the order of their chain; read one by one, so that a long ledger needs no memory."""
        for part in self._parts():
            yield from map(json.loads, entry_lines(part.data[len(part._head) : part._end]))

    def _parts(self) -> list[LedgerDocument]:
        """All that were read, the first of the ledger first."""
        parts = [self]
        while parts[-1].before is not None:
            parts.append(parts[-1].before)
        if parts[-1].earlier is not None:
            raise ValueError("its earlier parts were not read")
        return parts[::-1]

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
    """The document by its checkpoint, its entries and earlier parts unread.

    None if the file is not, to the byte, as this version of the program wrote it; then it has to be
    verified as a whole.
    """
    try:
        header, _, end = framed(data)
        adjacency = header.cap.adjacency if header.cap else None
        checkpoint = Checkpoint.from_json(header.checkpoint, adjacency)
    except DAMAGE:
        return None
    hashed = hashlib.sha256(memoryview(data)[:end])
    if data[end:] != seal(checkpoint.to_json(), hashed):
        return None
    return LedgerDocument(header.cap, header.earlier, data, checkpoint, None, end, hashed)


def earlier_part(data: bytes) -> EarlierPart | None:
    """What a file says of the part before it; None if there is none, or it is no ledger."""
    try:
        return framed(data)[0].earlier
    except DAMAGE:
        if len(data) > _LARGEST_FREE_LAYOUT:
            return None
    try:
        return Header.read(data).earlier
    except DAMAGE:
        return None


def parse_ledger(data: bytes, path: str, before: LedgerDocument | None = None) -> LedgerDocument:
    """Read and verify a ledger, every entry of it.

    Parameters
    ----------
    data, path : bytes, str
        The file, and its name for messages.
    before : LedgerDocument, optional
        The part before it (:func:`earlier_part`), verified.

    Raises
    ------
    PrivacyError
        The document is damaged or was changed; the message names the first bad entry. Nothing is
        repaired: what a damaged ledger allows cannot be known.
    """
    try:
        header, start, end = framed(data)
        lines = entry_lines(data[start:end])
        document = _verified(header, before, map(json.loads, lines), len(lines))
        if document.data[len(document._head) : document._end] != data[start:end]:
            # Or a name occurs twice.
            raise ValueError("its entries are not as dpfit writes them")
        return document
    except DAMAGE as error:
        if len(data) > _LARGEST_FREE_LAYOUT:
            raise _damaged(path, reason_of_damage(error)) from None
    try:
        header = Header.read(data)
        return _verified(header, before, iter(header.entries), len(header.entries))
    except DAMAGE as error:
        raise _damaged(path, reason_of_damage(error)) from None


def _verified(
    header: Header, before: LedgerDocument | None, entries: Iterator[object], count: int
) -> LedgerDocument:
    """The document, written anew from its entries.

    Raises
    ------
    ValueError
        It says which entry cannot stand there, or that the checkpoint is not that of the entries.
    """
    empty = _opened(header, before)
    checkpoint, lines = empty.checkpoint.copy(), list[bytes]()
    try:
        for entry in entries:
            if not isinstance(entry, dict):
                raise ValueError("it is no object")
            line = _line(entry, checkpoint.tip)
            checkpoint.take(entry)
            lines.append(line)
    except DAMAGE as error:
        place = f"entry {len(lines) + 1} of {count}"
        raise ValueError(f"{place}: {reason_of_damage(error)}") from None
    document, stated = empty._extended(BETWEEN_ENTRIES.join(lines), checkpoint), header.checkpoint
    if stated is None:
        return document
    if header.sha256 != sha256_of(stated, _hashed_as_read(header, document)):
        raise ValueError("the document: its SHA-256 on the last line is another")
    _check_stated(stated, checkpoint, "its checkpoint is not what its entries come to")
    return document


def _opened(header: Header, before: LedgerDocument | None) -> LedgerDocument:
    """The document before its first entry.

    Raises
    ------
    ValueError
        It says of the part before it what that does not bear out.
    """
    earlier = header.earlier
    if earlier is None:
        return LedgerDocument.start(header.cap)
    if before is None:
        raise ValueError("the document: the part before it was not read")
    if (before.part, before.checkpoint.tip, before.cap) != (
        earlier.number,
        earlier.tip,
        header.cap,
    ):
        raise ValueError("the document: the part before it is another")
    what = "what it says of the part before it is not what that comes to"
    _check_stated(earlier.checkpoint, before.checkpoint, what)
    return replace(before.next_part(), before=before)


def _hashed_as_read(header: Header, document: LedgerDocument) -> _Hash:
    """Of the document up to its last entry, with what its own file says of the part before it."""
    head = head_of(header.cap, header.earlier)
    return hashlib.sha256(head + document.data[len(document._head) : document._end])


def _check_stated(stated: Json, checkpoint: Checkpoint, what: str) -> None:
    """Refuse what this version would not have said; what another said is counted anew."""
    if stated.get("dpfit") == __version__ and stated != checkpoint.to_json():
        raise ValueError(f"the document: {what}")


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


def _first_checkpoint(cap: Cap | None) -> Checkpoint:
    genesis = digest({"schema": SCHEMA, "cap": cap.to_json() if cap else None})
    return Checkpoint(genesis, cap.adjacency if cap else None)


def _chained(content: Json, tip: str) -> Json:
    entry = {**content, "previous": tip}
    return {**entry, "hash": digest(entry)}


def _damaged(path: str, what: str) -> PrivacyError:
    return PrivacyError(
        f"{path}: damaged ledger: {what}",
        hint="what was spent cannot be known from it: restore a copy that holds every run; if this "
        "file never was a ledger, name another",
    )
