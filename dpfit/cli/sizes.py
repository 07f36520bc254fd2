"""Sizes of memory as people write them."""

from __future__ import annotations

import math
import re
from typing import Final

from dpfit.errors import UsageError

_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:iB|B)?", re.IGNORECASE)


def bytes_of(option: str, text: str) -> int:
    """``2GiB``, ``512M`` or plain bytes; every unit is one of 1,024.

    Raises
    ------
    UsageError
        It is no size.
    """
    match = _SIZE.fullmatch(text.strip())
    size = float(match[1]) * _UNITS[match[2].upper()] if match else math.inf
    if size == math.inf:
        raise UsageError(f"{option} is not a size", hint="for example 2GiB or 512MiB")
    return int(size)
