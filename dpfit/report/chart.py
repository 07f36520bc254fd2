"""A picture before it is drawn: the same for a page, a PNG file and a terminal."""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

Points: TypeAlias = tuple[tuple[float, float], ...]
Ticks: TypeAlias = tuple[tuple[float, str], ...]

_UP: Final = decimal.Context(prec=3, rounding=decimal.ROUND_CEILING)
_DOWN: Final = decimal.Context(prec=3, rounding=decimal.ROUND_FLOOR)
_STEPS: Final = (1.0, 2.0, 5.0, 10.0)
_MOST_DECADES: Final = 7  # between the ticks of an axis, more would touch


@dataclass(frozen=True)
class Axis:
    """One axis.

    Attributes
    ----------
    label : str
    low, high : float
        Ends, low below high; positive when ``log``.
    ticks : tuple of (float, str)
        Where and what.
    log : bool
        Whether equal ratios have equal lengths.
    """

    label: str
    low: float
    high: float
    ticks: Ticks
    log: bool = False

    @classmethod
    def linear(cls, label: str, low: float, high: float, *, at_most: int = 6) -> Axis:
        """With ticks at round numbers; ``high`` moves up where it meets ``low``."""
        high = high if high > low else low + 1.0
        step = _round_step((high - low) / at_most)
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        ticks = ((number * step, f"{number * step:.6g}") for number in range(first, last + 1))
        return cls(label, low, high, tuple(ticks))

    @classmethod
    def decades(cls, label: str, low: int, high: int) -> Axis:
        """From ``10**low`` to ``10**high``."""
        every = -(-(high - low) // _MOST_DECADES)
        powers = range(high, low - 1, -every)
        ticks = ((10.0**power, _power_of_ten(power)) for power in powers)
        return cls(label, 10.0**low, 10.0**high, tuple(ticks)[::-1], log=True)

    def place(self, value: float) -> float:
        """Where a value lies between the ends, from 0 to 1; beyond them at the nearer one."""
        if not self.log:
            share = (value - self.low) / (self.high - self.low)
        elif value <= 0.0:
            return 0.0
        else:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        return min(max(share, 0.0), 1.0)


@dataclass(frozen=True)
class Series:
    """One line: through its points, or as steps that rise at them."""

    name: str
    points: Points
    steps: bool = False

    def corners(self) -> Points:
        """The points of the line as it is drawn."""
        if not self.steps:
            return self.points
        corners = [self.points[0]]
        for x, y in self.points[1:]:
            corners += [(x, corners[-1][1]), (x, y)]
        return tuple(corners)


@dataclass(frozen=True)
class Chart:
    """A picture with the words and the table that stand for it.

    Attributes
    ----------
    name : str
        Identifier in the page.
    title : str
    description : str
        What a reader who does not see it should know.
    x, y : Axis
    series : tuple of Series
        At most three; the first is the one that matters.
    head, rows : tuple of str, tuple of tuples of str
        Table of its numbers.
    """

    name: str
    title: str
    description: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def number(value: float) -> str:
    """A number for the eye."""
    if math.isinf(value):
        return "unbounded"
    return f"{value:.3g}" if abs(value) < 1000 or abs(value) >= 1e6 else f"{value:,.0f}"


def at_most(value: float) -> str:
    """A bound from above, rounded up."""
    if math.isinf(value):
        return "unbounded"
    return f"{float(_UP.create_decimal_from_float(value)):.3g}"


def percent_at_most(value: float) -> str:
    """A chance bounded from above, rounded up."""
    return f"{at_most(100.0 * value)} %"


def percent_at_least(value: float) -> str:
    """A chance bounded from below, rounded down."""
    return f"{float(_DOWN.create_decimal_from_float(100.0 * value)):.3g} %"


def decades_around(values: Sequence[float], *, least: int, most: int) -> tuple[int, int]:
    """Powers of ten that hold the positive values, within bounds and at least one apart."""
    positive = [value for value in values if 0.0 < value < math.inf]
    low = math.floor(math.log10(min(positive))) if positive else least
    high = math.ceil(math.log10(max(positive))) if positive else most
    low = min(max(low, least), most - 1)
    return low, max(min(high, most), low + 1)


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in _STEPS if step * power >= rough * (1.0 - 1e-9))


def _power_of_ten(power: int) -> str:
    return f"{10.0**power:g}" if -3 <= power <= 3 else f"1e{power}"
