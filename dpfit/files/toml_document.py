"""TOML of unknown content, a schema or a configuration, read at a bounded cost.

The parser takes some microseconds and up to a kilobyte for a part of a dotted name or the name of a
table, and less for all else. Strings cost little, so that a schema may declare 100,000 levels. The
worst document takes about a second and 150 MB.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

from dpfit.errors import StorageError, UsageError, reason_of

_LARGEST: Final = 4 << 20
_LARGEST_BARE: Final = 1 << 20  # without what stands in strings and comments
_MOST_PARTS: Final = 100_000
_LONGEST_NAME: Final = 8  # the parser keeps every prefix of a dotted name

# A string that does not end is an error at its start; the parser sees nothing behind it.
_STRING: Final = re.compile(
    rb'"""(?:[^"\\]++|\\.|"(?!""))*+"""+'
    rb"|'''(?:[^']++|'(?!''))*+'''+"
    rb'|"(?!"")(?:[^"\\\n]++|\\[^\n])*+"'
    rb"|'(?!'')[^'\n]*+'"
    rb"|[\"'].*+|#[^\n]*+",
    re.DOTALL,
)
_PART: Final = re.compile(rb"\.|^[ \t]*\[", re.MULTILINE)
_LONG_NAME: Final = re.compile(rb"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){%d}" % _LONGEST_NAME)


def read_toml(path: str) -> dict[str, Any]:
    """The tables of a file.

    Raises
    ------
    StorageError
        It cannot be read.
    UsageError
        As of :func:`parse_toml`.
    """
    try:
        with open(path, "rb") as file:
            return parse_toml(file.read(_LARGEST + 1), path)
    except OSError as error:
        raise StorageError(
            f"{path}: cannot be read: {reason_of(error)}", hint="is the name right?"
        ) from None


def parse_toml(data: bytes, path: str) -> dict[str, Any]:
    """The tables of a document; ``path`` names it in errors.

    Raises
    ------
    UsageError
        It is not TOML, which the message says with the line, or larger than it may be.
    """
    if excess := _excess(data):
        raise UsageError(f"{path}: not read as TOML: {excess}")
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not UTF-8 text") from None
    except RecursionError:
        raise UsageError(f"{path}: not read as TOML: it is nested too deep") from None
    except ValueError as error:  # a number of 5,000 digits, among others
        found = re.search(r"at line (\d+)", str(error))
        place = f"{path}:{found[1]}" if found else path
        raise UsageError(
            f"{place}: not valid TOML",
            hint='a line is NAME = VALUE, with texts in quotes: label = "income"',
        ) from None


def _excess(data: bytes) -> str | None:
    """What the document has too much of for the parser."""
    if len(data) > _LARGEST:
        return f"it is larger than {_LARGEST >> 20} MiB"
    bare = _without_strings(data)
    if len(bare) > _LARGEST_BARE:
        return f"it is larger than {_LARGEST_BARE >> 20} MiB without its strings"
    if _LONG_NAME.search(bare):
        return f"a name has more than {_LONGEST_NAME} parts"
    if sum(1 for _ in _PART.finditer(bare)) > _MOST_PARTS:
        return f"its names have more than {_MOST_PARTS:,} parts"
    return None


def _without_strings(data: bytes) -> bytes:
    """The text with ``_`` for every string or comment."""
    bare, end = bytearray(), 0  # a substitution would hold every piece between them as an object
    for found in _STRING.finditer(data):
        bare += data[end : found.start()] + b"_"
        end = found.end()
    return bytes(bare + data[end:])
