"""A long ledger in parts: what the file of one says of the part before it.

A run reads and writes the last part alone, so it takes as long on the ten-thousandth run as on the
first. Whoever adds a ledger up reads every part.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from dpfit.privacy.canonical_json import Json

_HASH: Final = re.compile("[0-9a-f]{64}")
_MOST_PARTS: Final = 10**9
_SHOWN: Final = 12  # digits of a hash in a file name
LONGEST_ENDING: Final = len(f".{_MOST_PARTS}-") + _SHOWN  # of a part's name, beyond the ledger's


@dataclass(frozen=True)
class EarlierPart:
    """The part of a ledger that ended where this one begins.

    Attributes
    ----------
    number : int
        1 for the first part of a ledger.
    checkpoint : mapping
        What it and all before it come to, as its file says.
    """

    number: int
    checkpoint: Json

    @classmethod
    def from_json(cls, value: object) -> EarlierPart:
        """The inverse of :meth:`to_json`.

        Raises
        ------
        ValueError, KeyError, TypeError
            It is none.
        """
        if not isinstance(value, dict) or value.keys() != {"part", "checkpoint"}:
            raise ValueError("its earlier part needs exactly part and checkpoint")
        number, checkpoint = value["part"], value["checkpoint"]
        if type(number) is not int or not 1 <= number <= _MOST_PARTS:
            raise ValueError("its earlier part has no number")
        if not isinstance(checkpoint, dict) or type(checkpoint["tip"]) is not str:
            raise ValueError("its earlier part has no checkpoint")
        if not _HASH.fullmatch(checkpoint["tip"]):  # it becomes part of a path
            raise ValueError("its earlier part has no hash")
        return cls(number, checkpoint)

    def to_json(self) -> Json:
        return {"part": self.number, "checkpoint": self.checkpoint}

    @property
    def tip(self) -> str:
        """Hash of its last entry."""
        return str(self.checkpoint["tip"])

    def path(self, ledger: str) -> str:
        """Its file, beside that of the ledger; named by the hash, so that no other has its name."""
        return f"{ledger}.{self.number}-{self.tip[:_SHOWN]}"
