"""The one way a ledger writes a JSON value, which is what its hashes are taken of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TypeAlias

Json: TypeAlias = Mapping[str, object]


def canonical(value: object) -> str:
    """The value without blanks, members sorted, in ASCII.

    Raises
    ------
    ValueError
        It holds a number that JSON does not know.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Json) -> str:
    """SHA-256 of the canonical form, in lower-case hexadecimal."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def read_strictly(data: bytes | str) -> object:
    """The value of any JSON text, in whatever layout.

    Raises
    ------
    ValueError
        It is not JSON (RFC 8259), or a name occurs twice in an object.
    RecursionError
        It is nested too deep.
    """
    return json.loads(data, parse_constant=_no_constant, object_pairs_hook=_unique_object)


def _no_constant(name: str) -> object:
    raise ValueError("it holds a number that JSON does not know")


def _unique_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key occurs twice")
    return result
