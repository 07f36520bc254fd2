"""The frame of a ledger's file: what stands before and after its entries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dpfit.errors import UsageError
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.canonical_json import Json, canonical, read_strictly
from dpfit.privacy.ledger_part import EarlierPart

if TYPE_CHECKING:
    from hashlib import _Hash

SCHEMA: Final = "dpfit-ledger/1"
BETWEEN_ENTRIES: Final = b",\n"
DAMAGE: Final = (ValueError, KeyError, TypeError, ArithmeticError, RecursionError)

_BEFORE_ENTRIES: Final = b'"entries":[\n'
_AFTER_ENTRIES: Final = b"\n]"
_BEFORE_CHECKPOINT: Final = b',\n"checkpoint":'
_ANOTHER_FRAME: Final = "its frame is not as dpfit writes it"
_MEMBERS: Final = {"schema", "cap", "entries"}
_SEALED: Final = _MEMBERS | {"checkpoint", "sha256"}
_LAYOUTS: Final = (_SEALED, _SEALED | {"earlier"}, _MEMBERS)


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
class Header:
    """A ledger's members."""

    cap: Cap | None
    earlier: EarlierPart | None
    entries: Sequence[object]
    checkpoint: Json | None
    sha256: object

    @classmethod
    def read(cls, data: bytes) -> Header:
        """Members of a document, which may have been taken out of its entries.

        Raises
        ------
        ValueError
            It is no ledger.
        """
        try:
            root = read_strictly(data)
            if not isinstance(root, dict) or root.keys() not in _LAYOUTS:
                raise ValueError("it needs exactly schema, cap, entries, checkpoint and sha256")
            if root["schema"] != SCHEMA:
                raise ValueError("its schema is another")
            entries, stated = root["entries"], root.get("checkpoint")
            if not isinstance(entries, list):
                raise ValueError("its entries are no list")
            if "checkpoint" in root and not isinstance(stated, dict):
                raise ValueError("its checkpoint is no object")
            earlier = EarlierPart.from_json(root["earlier"]) if "earlier" in root else None
            return cls(_cap(root["cap"]), earlier, entries, stated, root.get("sha256"))
        except DAMAGE as error:
            raise ValueError(f"it is not a {SCHEMA} document ({reason_of_damage(error)})") from None


def seal(stated: Json, hashed: _Hash) -> bytes:
    """What follows the last entry: the checkpoint, and the hash of all lines before its own."""
    return _checkpoint_line(stated) + b'"sha256":"%b"}\n' % sha256_of(stated, hashed).encode()


def sha256_of(stated: Json, hashed: _Hash) -> str:
    """Hash of the lines before the last, from that of what stands before the checkpoint."""
    hashed = hashed.copy()
    hashed.update(_checkpoint_line(stated))
    return hashed.hexdigest()


def _checkpoint_line(stated: Json) -> bytes:
    return _AFTER_ENTRIES + _BEFORE_CHECKPOINT + canonical(stated).encode() + b",\n"


def framed(data: bytes) -> tuple[Header, int, int]:
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
    header = Header.read(data[:start] + data[end:])
    if data[:start] != head_of(header.cap, header.earlier):
        raise ValueError(_ANOTHER_FRAME)
    return header, start, end


def entry_lines(entries: bytes) -> list[str]:
    """The entries, each in its line."""
    return entries.decode("ascii").split(BETWEEN_ENTRIES.decode()) if entries else []


def head_of(cap: Cap | None, earlier: EarlierPart | None) -> bytes:
    """What stands before the first entry."""
    text = canonical(cap.to_json() if cap else None)
    more = f'"earlier":{canonical(earlier.to_json())},\n' if earlier else ""
    return f'{{"schema":"{SCHEMA}",\n"cap":{text},\n{more}'.encode() + _BEFORE_ENTRIES


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


def reason_of_damage(error: Exception) -> str:
    """In words that hold no value of the file."""
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}: not JSON"
    if isinstance(error, UnicodeDecodeError):
        return "not text"
    if isinstance(error, KeyError):
        return f"{error.args[0]} is missing"
    if isinstance(error, RecursionError):
        return "nested too deep"
    return str(error)
