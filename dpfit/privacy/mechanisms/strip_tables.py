"""Integer tables of the strip sampler, from certified integer arithmetic.

Notation of exactness.md, section 3. The density f = g / mass is symmetric and decreases on the
half line. Strips have width h = 2^-6; strip j >= 0 is [j h, (j+1) h), strip -1-j its mirror image.

    n_j = floor(2^16 h f((j+1) h))     cells of the 16-bit table that belong to strip j
    c_j = n_j mass / (2^16 h)          height of the rectangle those cells fill, in units of g
    M_j = g(j h) - c_j                 what the remainder's proposal puts on strip j
    T_j = floor(2^64 sum_{i<=j} M_i / sum M)     thresholds of the proposal
    a_j = c_j / g(j h)                 the remainder's floor inside its proposal

Only `StripLaw` knows the law.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

import numpy as np

from dpfit.privacy.mechanisms.certified_exp import Bounds, exp_neg

if TYPE_CHECKING:
    from numpy.typing import NDArray

STRIP_BITS = 6
CELL_BITS = 16
WORD_BITS = 64
# Strips reached with 320 bits number 1350 for the normal law, a_j being zero from 222 on; for the
# Laplace law 13966 and 399.
STRIP_LIMIT = 1 << 14

_TABLE_PRECISIONS = (160, 256, 512)
_GUIDE_BITS = 14
_GUIDE_SHIFT = np.uint64(WORD_BITS - _GUIDE_BITS)
_CROWDED = -1


class StripLaw(Hashable, Protocol):
    """A symmetric density g / mass that decreases on the half line.

    Implementations are hashable values: tables are built once for each.
    """

    def heights(self, precision: int) -> list[Bounds]:
        """Bounds of g(j h), j = 0, 1, ..., until the lower bound is zero."""

    def tail(self, n_strips: int, height: Bounds) -> int:
        """Upper bound of sum_{j >= n_strips} g(j h), given the bounds of g(n_strips h)."""

    def mass(self, precision: int) -> Bounds:
        """Bounds of the integral of g over the whole line."""

    def exponent(self, strip: NDArray[np.int64], place: NDArray[np.float64]) -> NDArray[np.float64]:
        """t with g((j + x) h) = g(j h) exp(-t), by IEEE additions and products only."""

    def exact_exponent(self, strip: int, place: int, bits: int) -> tuple[int, int]:
        """The same t as numerator and shift (t = numerator / 2^shift) for x = place / 2^bits."""


@dataclass(frozen=True)
class CertifiedStrips:
    """The law's strips at one precision; all integers are scaled by 2^precision.

    Parameters
    ----------
    precision : int
        Fractional bits.
    counts : tuple of int
        n_j; strips beyond its end have none.
    heights : list of Bounds
        g(j h).
    mass : Bounds
        Integral of g.
    tail : int
        Upper bound of the sum of g(j h) beyond the last height.
    """

    precision: int
    counts: tuple[int, ...]
    heights: list[Bounds]
    mass: Bounds
    tail: int

    @cached_property
    def cumulative(self) -> tuple[list[int], list[int]]:
        """Lower and upper bounds of M_0 + ... + M_j."""
        rests = [self._rest(j) for j in range(len(self.heights))]
        return list(accumulate(r.low for r in rests)), list(accumulate(r.high for r in rests))

    @property
    def total(self) -> Bounds:
        """Bounds of the sum of all M_j, the tail included."""
        lows, highs = self.cumulative
        return Bounds(lows[-1], highs[-1] + self.tail)

    def rectangle(self, strip: int) -> Bounds:
        """Bounds of c_j."""
        count = self.counts[strip] if strip < len(self.counts) else 0
        shift = CELL_BITS - STRIP_BITS
        return Bounds(count * self.mass.low >> shift, -(-count * self.mass.high >> shift))

    def shoulder(self, strip: int) -> Bounds:
        """Bounds of a_j."""
        if strip >= len(self.counts) or not self.counts[strip]:
            return Bounds(0, 0)
        rectangle, height = self.rectangle(strip), self.heights[strip]
        low = (rectangle.low << self.precision) // height.high
        return Bounds(low, -(-(rectangle.high << self.precision) // height.low))

    def locate(self, value: int, bits: int) -> int | None:
        """Strip that all of [value, value + 1) / 2^bits belongs to, None if that is not certain."""
        lows, highs = self.cumulative
        total = self.total
        strip = bisect_right(highs, value * total.low >> bits)
        upper = -(-(value + 1) * total.high >> bits)
        return strip if strip < len(lows) and upper <= lows[strip] else None

    def accepts(self, law: StripLaw, strip: int, place: int, level: int, bits: int) -> bool | None:
        """Whether E - a_j - v (1 - a_j) > 0 for all x, v in their cells, None if not certain.

        Parameters
        ----------
        law : StripLaw
            Gives E = g((j + x) h) / g(j h).
        strip : int
            j.
        place, level : int
            The cells [place, place + 1) / 2^bits of x and [level, level + 1) / 2^bits of v.
        bits : int
            Bits known of x and v.
        """
        one = 1 << self.precision
        shoulder = self.shoulder(strip)
        largest = exp_neg(*law.exact_exponent(strip, place, bits), self.precision).high
        smallest = exp_neg(*law.exact_exponent(strip, place + 1, bits), self.precision).low
        # The statistic falls in x, v and a_j, so its bounds sit at opposite corners.
        if (smallest - shoulder.high << bits) - (level + 1) * (one - shoulder.high) > 0:
            return True
        if (largest - shoulder.low << bits) - level * (one - shoulder.low) < 0:
            return False
        return None

    def _rest(self, strip: int) -> Bounds:
        rectangle, height = self.rectangle(strip), self.heights[strip]
        return Bounds(height.low - rectangle.high, height.high - rectangle.low)


@dataclass(frozen=True)
class StripTables:
    """What the vectorised sampler looks up.

    Parameters
    ----------
    counts : tuple of int
        n_j.
    cells : array of int64, shape (2^16,)
        Strip of each table cell; only the first `n_fast` are used.
    n_fast : int
        2 sum n_j, the cells that need nothing but place bits.
    thresholds : array of uint64
        T_j up to the first that is 2^64 - 1. A word equal to one of them needs more bits.
    below : array of uint64
        Threshold below strip j, T_{j-1}; for j = 0 a word no proposal of strip 0 can equal.
    guide : array of int64, shape (2^14,)
        Strips that start below each cell of a word's top bits, `-1` where a cell holds several
        thresholds.
    shoulder : array of float64, shape (STRIP_LIMIT,)
        a_j.
    """

    counts: tuple[int, ...]
    cells: NDArray[np.int64]
    n_fast: int
    thresholds: NDArray[np.uint64]
    below: NDArray[np.uint64]
    guide: NDArray[np.int64]
    shoulder: NDArray[np.float64]

    def propose(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Number of thresholds <= each word; three look-ups instead of a binary search."""
        strip = self.guide.take((words >> _GUIDE_SHIFT).view(np.int64))
        crowded = (strip < 0).nonzero()[0]
        strip += words >= self.thresholds.take(strip, mode="clip")
        if len(crowded):
            strip[crowded] = np.searchsorted(self.thresholds, words[crowded], side="right")
        return strip


@cache
def strip_tables(law: StripLaw) -> StripTables:
    """Tables of a law, at the first precision that decides every floor."""
    for precision in _TABLE_PRECISIONS:
        counts = _cell_counts(law, precision)
        thresholds = counts and _thresholds(certified_strips(law, counts, precision))
        if counts and thresholds:
            return _assemble(counts, thresholds, certified_strips(law, counts, precision))
    raise AssertionError("a table entry lies on an integer to 512 bits")  # pragma: no cover


@cache
def certified_strips(law: StripLaw, counts: tuple[int, ...], precision: int) -> CertifiedStrips:
    """The law's strips at a precision, kept because a few precisions serve every decision."""
    heights = law.heights(precision)
    beyond = heights.pop()
    tail = law.tail(len(heights), beyond)
    return CertifiedStrips(precision, counts, heights, law.mass(precision), tail)


def _cell_counts(law: StripLaw, precision: int) -> tuple[int, ...]:
    """n_j up to the last that is not zero; empty if the precision leaves a floor open."""
    mass = law.mass(precision)
    shift = CELL_BITS - STRIP_BITS
    counts: list[int] = []
    for height in law.heights(precision)[1:]:
        count = (height.low << shift) // mass.high
        if count != (height.high << shift) // mass.low:
            return ()
        if not count:
            return tuple(counts)
        counts.append(count)
    return ()  # pragma: no cover


def _thresholds(strips: CertifiedStrips) -> list[int]:
    """T_j up to the first that is 2^64 - 1; empty if the precision leaves a floor open."""
    total = strips.total
    top = (1 << WORD_BITS) - 1
    thresholds: list[int] = []
    for low, high in zip(*strips.cumulative, strict=True):
        threshold = (low << WORD_BITS) // total.high
        if threshold != (high << WORD_BITS) // total.low:
            return []
        thresholds.append(threshold)
        if threshold == top:
            return thresholds
    return []


def _assemble(
    counts: tuple[int, ...], thresholds: list[int], strips: CertifiedStrips
) -> StripTables:
    right = np.repeat(np.arange(len(counts)), counts)
    cells = np.zeros(1 << CELL_BITS, np.int64)
    cells[: 2 * len(right)] = np.concatenate([right, -1 - right])
    limits = np.array(thresholds, np.uint64)
    shoulder = np.zeros(STRIP_LIMIT)
    # A quotient of integers is the correctly rounded float.
    shoulder[: len(counts)] = [
        strips.shoulder(j).low / (1 << strips.precision) for j in range(len(counts))
    ]
    below = np.concatenate([limits[-1:], limits])
    return StripTables(counts, cells, 2 * len(right), limits, below, _guide(limits), shoulder)


def _guide(thresholds: NDArray[np.uint64]) -> NDArray[np.int64]:
    starts = np.arange(1 << _GUIDE_BITS, dtype=np.uint64) << np.uint64(WORD_BITS - _GUIDE_BITS)
    ends = starts + np.uint64((1 << WORD_BITS - _GUIDE_BITS) - 1)
    lowest = np.searchsorted(thresholds, starts, side="right").astype(np.int64)
    highest = np.searchsorted(thresholds, ends, side="right")
    return np.where(highest - lowest > 1, _CROWDED, lowest)
