"""The one grammar of decimal numbers in text inputs."""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_LIKE_A_NUMBER = re.compile(
    r"[+-]?(?:[0-9][0-9_' ]*(?:[.,][0-9_]*)*|[.,][0-9_]+)(?:e[+-]?[0-9]+)?%?\Z"
    r"|[+-]?0x[0-9a-f.]+(?:p[+-]?[0-9]+)?\Z|[+-]?(?:nan|inf|infinity)\Z",
    re.IGNORECASE,
)
_HEXADECIMAL = re.compile(rb"[+-]?0[xX]")
_NOT_FINITE = re.compile(rb"[+-]?(?:nan|inf|infinity)\Z", re.IGNORECASE)


class BadNumber(ValueError):  # noqa: N818 - a cause to be put into a DataError
    """Why a text is no number; reads on after 'the label ...' or 'a value ...'.

    Attributes
    ----------
    is_text : bool
        Whether it was no attempt at a number at all.
    """

    @property
    def is_text(self) -> bool:
        return str(self) == _TEXT


def parse_number(text: bytes) -> float:
    """Finite float of an ASCII decimal number.

    Python's ``float`` alone would take ``1_0``, ``nan`` and digits of other scripts.
    """
    if _NUMBER.match(text):
        value = float(text)
        if math.isfinite(value):
            return value
        raise BadNumber("is too large for a float")
    raise BadNumber(_cause(text))


def is_numeric(text: str) -> bool:
    """Whether a text looks like a number in any usual spelling, NaN and decimal commas included."""
    return bool(_LIKE_A_NUMBER.match(text))


def _cause(text: bytes) -> str:
    if not text:
        return "is empty"
    if _NOT_FINITE.match(text):
        return "is not finite (NaN or infinite)"
    if _HEXADECIMAL.match(text):
        return "is a hexadecimal number, not a decimal one"
    if b"_" in text:
        return "has an underscore inside a number"
    return _TEXT


_TEXT = "is not a number"
