"""Checks of what a user asks for; each refuses with a `UsageError` that names the option."""

from __future__ import annotations

import difflib
import math

from dpfit.errors import UsageError


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
