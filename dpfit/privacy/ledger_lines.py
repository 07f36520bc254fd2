"""Entries read and verified from their lines, at little more than the cost of hashing them.

A line that dpfit wrote is the canonical form of its entry, so what was hashed is the line without
its hash, and nothing needs to be written again to check it. And runs are alike: their lines differ
in names, times and hashes only. Two lines that differ within the same text values, none of which
can hold a quote or an escape, have the same structure; so a line is parsed once for each *form*,
and a further line of a known form only has its values set in. Whatever does not fit is left to the
slow reader of :mod:`dpfit.privacy.ledger_document`, which accepts no less and no more.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Final

from dpfit.privacy.canonical_json import Json, canonical

_VARYING: Final = re.compile(
    rb'"(dataset|hash|model_sha256|previous|run|time)":"([ !#-\[\]-~]*)"'  # no quote, no escape
)
_MOST_FORMS: Final = 4096  # a bound on memory; runs of one ledger are of few forms


class NotCanonicalError(ValueError):
    """A line is not the canonical form of an entry, or not of one that can be read by its form."""


@dataclass(frozen=True)
class _Form:
    """Lines that differ in the values of ``names`` only, each a text and a member of the entry."""

    names: tuple[str, ...]
    content: Json


class LineReader:
    """Reads lines of one ledger; equal lists of events become one object."""

    def __init__(self) -> None:
        self._forms: dict[tuple[bytes, ...], _Form] = {}
        self._events: dict[str, object] = {}

    def entry(self, line: bytes) -> Json:
        """The entry of a canonical line; its hash is that of the line, its chain not yet checked.

        Raises
        ------
        NotCanonicalError
            The line is something else, or its hash another.
        """
        parts = _VARYING.split(line)
        values = parts[2::3]
        del parts[2::3]
        key = tuple(parts)
        form = self._forms.get(key) or self._learn(key, line, values)
        entry = {**form.content, **dict(zip(form.names, map(bytes.decode, values), strict=True))}
        # No text value can hold this: a quote within one is written with a backslash before it.
        unhashed = line.replace(b'"hash":"%b",' % str(entry["hash"]).encode(), b"", 1)
        if hashlib.sha256(unhashed).hexdigest() != entry["hash"]:
            raise NotCanonicalError
        return entry

    def _learn(self, key: tuple[bytes, ...], line: bytes, values: list[bytes]) -> _Form:
        """Take up the form of a line, once it is sure where in its entry the values stand."""
        value = _parsed(line)
        names = tuple(name.decode() for name in key[1::2])
        marks = [str(number) for number in range(len(names))]
        marked = b"".join(
            text + (b'"%b":"%b"' % (name, mark.encode()) if name else b"")
            for text, name, mark in zip(key[::2], (*key[1::2], b""), (*marks, ""), strict=True)
        )
        marked_value = {**value, **dict(zip(names, marks, strict=True))}
        if not {"hash", "previous", "run"} <= set(names) or len(set(names)) < len(names):
            raise NotCanonicalError
        if canonical(value).encode() != line or _parsed(marked) != marked_value:
            raise NotCanonicalError
        content = {name: member for name, member in value.items() if name not in names}
        if "events" in content:
            text = canonical(content["events"])
            content["events"] = self._events.setdefault(text, content["events"])
        if len(self._forms) == _MOST_FORMS:
            self._forms.clear()
        form = self._forms[key] = _Form(names, content)
        return form


def _parsed(line: bytes) -> dict[str, object]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise NotCanonicalError from None
    if not isinstance(value, dict):
        raise NotCanonicalError
    return value
