"""The one grammar of decimal numbers in text inputs."""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_HEXADECIMAL = re.compile(rb"[+-]?0[xX]")
_NOT_FINITE = re.compile(rb"[+-]?(?:nan|inf|infinity)\Z", re.IGNORECASE)


class BadNumber(ValueError):  # noqa: N818 - a cause to be put into a DataError
    """Why a text is no number; reads on after 'the label ...' or 'a value ...'."""


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


def _cause(text: bytes) -> str:
    if not text:
        return "is empty"
    if _NOT_FINITE.match(text):
        return "is not finite (NaN or infinite)"
    if _HEXADECIMAL.match(text):
        return "is a hexadecimal number, not a decimal one"
    if b"_" in text:
        return "has an underscore inside a number"
    return "is not a number"
