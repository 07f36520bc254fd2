"""TOML of unknown content, such as a schema or a configuration, read at a bounded cost."""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

LARGEST_DOCUMENT: Final = 2 << 20

# The parser keeps every prefix of a dotted name, so memory goes by the square of its parts.
_LONGEST_NAME: Final = 4
_PART: Final = rb"""(?:[\w-]+|"(?:[^"\\\n]|\\[^\n])*"|'[^'\n]*')"""
_LONG_NAME: Final = re.compile(rb"(?<![\w-])(?:%b[ \t]*\.[ \t]*){%d}" % (_PART, _LONGEST_NAME))


def parse_toml(data: bytes) -> dict[str, Any]:
    """The tables of a document.

    Raises
    ------
    ValueError
        It is not TOML, too large, or nested too deep.
    """
    if len(data) > LARGEST_DOCUMENT:
        raise ValueError(f"it is larger than {LARGEST_DOCUMENT >> 20} MiB")
    if _LONG_NAME.search(data):
        raise ValueError(f"a name has more than {_LONGEST_NAME} parts")
    try:
        return tomllib.loads(data.decode())
    except RecursionError:
        raise ValueError("it is nested too deep") from None
