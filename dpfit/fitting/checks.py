"""Checks of what a user asks for; each refuses with a `UsageError` that names the option."""

from __future__ import annotations

import difflib
import math
from typing import Final

from dpfit.errors import UsageError

_USABLE: Final = (1e-100, 1e100)  # beyond, products of the public units leave the float range


def one_of(option: str, value: str, known: tuple[str, ...]) -> None:
    """Refuse a name that is not known."""
    if value not in known:
        near = difflib.get_close_matches(value, known, 1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"{option} {value!r} is not known", hint=f"{meant}choose {' or '.join(known)}"
        )


def within(option: str, value: float | None, least: float, most: float) -> None:
    """Refuse a number out of bounds; None was not given."""
    if value is not None and not (least <= value <= most and math.isfinite(value)):
        raise UsageError(f"{option} must lie between {least:g} and {most:g}, not {value!r}")


def at_least_one(option: str, value: int) -> None:
    """Refuse a number that counts nothing."""
    if value < 1:
        raise UsageError(
            f"{option} must be at least 1, not {value}",
            hint="give a larger one, or leave it out",
        )


def usable(option: str, value: float | None) -> None:
    """Refuse a public unit whose products would leave the floats; None was not given."""
    if value is not None and not _USABLE[0] <= value <= _USABLE[1]:
        raise UsageError(f"{option} is outside the range of usable numbers")


def positive(option: str, value: float | None) -> None:
    """Refuse what is no positive number; None was not given."""
    if value is not None and not 0.0 < value < math.inf:
        raise UsageError(f"{option} must be a positive finite number, not {value!r}")
