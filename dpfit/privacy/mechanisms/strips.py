"""Exact floor(2^s X) for a symmetric law by dyadic strips (exactness.md, section 3).

X is a mixture: with probability n_j / 2^16 uniform on strip j (99 % in all, dyadic weights, hence
exact from a table and place bits), else drawn from the remainder by rejection. The rejection works
in floating point and hands every comparison closer than `band` to certified integers, which
read further bits of the same real numbers until the answer is certain. So the result is a pure
function of the bits, whatever the band, the block size or the machine's arithmetic.
"""

from __future__ import annotations

from math import factorial
from typing import TYPE_CHECKING, Final

import numpy as np

from dpfit.privacy.mechanisms.strip_tables import (
    CELL_BITS,
    STRIP_BITS,
    WORD_BITS,
    certified_strips,
    strip_tables,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpfit.privacy.mechanisms.strip_tables import StripLaw, StripTables
    from dpfit.privacy.random_bits import RandomWords

MIN_SCALE_BITS: Final = STRIP_BITS
MAX_SCALE_BITS: Final = STRIP_BITS + WORD_BITS - CELL_BITS

# The float statistic errs by less than 2^-50, so this leaves a wide margin and still sends less
# than one trial in 10^9 to the exact decision.
DEFAULT_BAND: Final = 2.0**-40
# Words and index of a block together stay in the second-level cache.
DEFAULT_BLOCK: Final = 1 << 15

# Slow indices and trials judged together: enough to hide the cost of a numpy call.
_SLOW_BATCH: Final = 8192
_FEW_TRIALS: Final = 1024
_MOST_ROUNDS: Final = 16
_DEEP_WORDS: Final = 3
_DECISION_GUARD: Final = 64
# (-1)^n / n! from n = 10 down to 0.
_TAYLOR: Final = [(-1.0) ** n / factorial(n) for n in range(10, -1, -1)]
_CELL_SHIFT: Final = np.uint64(WORD_BITS - CELL_BITS)
_PROPOSAL, _PLACE, _LEVEL = range(3)


class UndecidedNoiseError(RuntimeError):
    """A comparison was still open after 256 bits (probability below 2^-150).

    The run ends and its budget stays spent; guessing would bend the law.
    """


class StripSampler:
    """Exact sampler of floor(2^s X) for one law.

    Parameters
    ----------
    law : StripLaw
        The law of X.
    bits : RandomWords
        Where the bits come from.
    band : float
        Statistics no larger than this are decided exactly. Changes speed only.
    block : int
        Values made at a time. Changes speed only.
    """

    def __init__(
        self,
        law: StripLaw,
        bits: RandomWords,
        *,
        band: float = DEFAULT_BAND,
        block: int = DEFAULT_BLOCK,
    ) -> None:
        self._tables = strip_tables(law)
        self._bits = bits
        self._block = block
        self._remainder = Remainder(law, self._tables, bits, band)
        self._cells = np.empty(0, np.int64)
        self._is_slow = np.empty(0, np.bool_)
        self._starts = self._tables.cells
        self._place_bits = 0

    def integers(
        self, scale_bits: int, size: int, step: int, first: int, out: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        """Values of indices `first` .. `first` + `size` - 1 of a step, in `out` if there is one."""
        if not MIN_SCALE_BITS <= scale_bits <= MAX_SCALE_BITS:
            raise ValueError(
                f"scale_bits {scale_bits} is outside {MIN_SCALE_BITS} .. {MAX_SCALE_BITS}"
            )
        if out is None:
            out = np.empty(size, np.int64)
        elif out.shape != (size,) or out.dtype != np.int64 or not out.flags.c_contiguous:
            raise ValueError(f"out must be a contiguous int64 array of {size} values")
        self.draw(scale_bits, step, first, out)
        return out

    def draw(self, scale_bits: int, step: int, first: int, out: NDArray[np.int64]) -> None:
        """Fill `out` with the values of indices `first`, `first` + 1, ... of a step."""
        self._prepare(scale_bits - STRIP_BITS, min(self._block, len(out)))
        stream = self._bits.main(step, first)
        waiting: list[NDArray[np.int64]] = []
        n_waiting = 0
        for start in range(0, len(out), self._block):
            part = out[start : start + self._block]
            slow = self._fast(stream.take(len(part)), part)
            waiting.append(slow + start)
            n_waiting += len(slow)
            if n_waiting >= _SLOW_BATCH:
                self._finish(step, first, waiting, out)
                waiting, n_waiting = [], 0
        if n_waiting:
            self._finish(step, first, waiting, out)

    def _prepare(self, place_bits: int, block: int) -> None:
        if place_bits != self._place_bits:
            self._starts = self._tables.cells << place_bits
            self._place_bits = place_bits
        if block > len(self._cells):
            self._cells = np.empty(block, np.int64)
            self._is_slow = np.empty(block, np.bool_)

    def _fast(self, words: NDArray[np.uint64], out: NDArray[np.int64]) -> NDArray[np.int64]:
        """Fill `out` from the table; return the positions that belong to the remainder.

        The word's top 16 bits are the cell, its lowest bits the place inside the strip.
        """
        cells = self._cells[: len(words)]
        is_slow = self._is_slow[: len(words)]
        np.right_shift(words, _CELL_SHIFT, out=cells.view(np.uint64))
        self._starts.take(cells, out=out, mode="clip")
        np.bitwise_and(words, np.uint64((1 << self._place_bits) - 1), out=words)
        np.add(out, words.view(np.int64), out=out)
        np.greater_equal(cells, self._tables.n_fast, out=is_slow)
        return is_slow.nonzero()[0]

    def _finish(
        self, step: int, first: int, waiting: list[NDArray[np.int64]], out: NDArray[np.int64]
    ) -> None:
        positions = np.concatenate(waiting)
        out[positions] = self._remainder.draw(self._place_bits, step, positions + first)


class StripNoise:
    """Exact noise floor(2^s X) of one law, for vectors.

    Every value is a pure function of (key, step, index): any partition of the coordinates into
    calls gives the same bits. For that reason a step must be used for one data vector only, and
    not for another kind of noise either: the same (key, step, index) added to two vectors cancels
    in their difference and discloses it. The caller (the Curator) draws each step once; nothing
    here can check it.

    Draw whole vectors. The time of a single draw depends on its size (large values always take the
    slow path), so no time or count may be released.

    Not thread-safe: each thread needs its own object and its own source of bits.

    Parameters
    ----------
    law : StripLaw
        The law of X.
    bits : RandomWords
        Source of bits, normally a ``BitSource``.
    band : float
        Acceptance statistics no larger than this are decided exactly. Changes speed only.
    block : int
        Values made at a time. Changes speed only.
    """

    def __init__(self, law: StripLaw, bits: RandomWords, *, band: float, block: int) -> None:
        self._sampler = StripSampler(law, bits, band=band, block=block)

    def integers(
        self,
        scale_bits: int,
        size: int,
        step: int,
        *,
        first: int = 0,
        out: NDArray[np.int64] | None = None,
    ) -> NDArray[np.int64]:
        """Noise floor(2^scale_bits X) of coordinates first .. first + size - 1 of one step.

        Parameters
        ----------
        scale_bits : int
            s, from 6 to 54.
        size : int
            Number of coordinates.
        step : int
            Noise step, below 2^32; see the class for why it is used once.
        first : int, keyword-only
            First coordinate; first + size is at most 2^40.
        out : array of int64, shape (size,), optional, keyword-only
            Contiguous array to fill and return. Reuse one for a whole fit: in a fresh array page
            faults cost more than the noise.

        Returns
        -------
        array of int64, shape (size,)
        """
        return self._sampler.integers(scale_bits, size, step, first, out)


class Remainder:
    """Rejection sampler of what the strips' rectangles leave over.

    Trial `round` of an index reads four words: u proposes strip j through the thresholds, x is the
    place inside it, v the level, and one bit of a word that no test reads is the sign. Accept if

        E - a_j - v (1 - a_j) > 0,   E = g((j + x) h) / g(j h).

    The acceptance probability is 0.62 for the normal law. The index takes its first accepted
    round.
    """

    def __init__(self, law: StripLaw, tables: StripTables, bits: RandomWords, band: float) -> None:
        self._law = law
        self._tables = tables
        self._bits = bits
        self._band = band

    def draw(self, place_bits: int, step: int, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Values floor(2^s X) of these indices, given that each fell in the remainder."""
        out = np.empty(len(index), np.int64)
        waiting = np.arange(len(index))
        round_ = 0
        while len(waiting):
            # Few indices try several rounds at once; the first accepted one counts.
            n_rounds = min(1 + _FEW_TRIALS // len(waiting), _MOST_ROUNDS)
            batch = _Batch(self._bits, step, index[waiting], round_, n_rounds)
            strip = self._propose(batch)
            accepted = self._judge(batch, strip).reshape(-1, n_rounds)
            done = np.logical_or.reduce(accepted, axis=1)
            rows = done.nonzero()[0]
            trials = rows * n_rounds + accepted.argmax(axis=1)[rows]
            out[waiting[rows]] = batch.values(trials, strip, place_bits)
            waiting = waiting[~done]
            round_ += n_rounds
        return out

    def _propose(self, batch: _Batch) -> NDArray[np.int64]:
        """Strips of the proposal; a word equal to a threshold is settled by further bits."""
        proposal = batch.proposal
        strip = self._tables.propose(proposal)
        tied = self._tables.below.take(strip) == proposal
        for i in _where(tied):
            strip[i] = locate_strip(self._law, self._tables, batch.trial(i), int(proposal[i]))
        return strip

    def _judge(self, batch: _Batch, strip: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Accepted trials; a statistic inside the band is settled by certified bounds."""
        statistic = accept_statistic(self._law, self._tables, strip, batch.place, batch.level)
        accepted: NDArray[np.bool_] = statistic > 0.0
        for i in _where(np.abs(statistic) <= self._band):
            place, level = int(batch.place[i]), int(batch.level[i])
            accepted[i] = accepts(
                self._law, self._tables, batch.trial(i), int(strip[i]), place, level
            )
        return accepted


class _Batch:
    """The words of `n_rounds` trials for each of some indices, trial after trial."""

    def __init__(
        self,
        bits: RandomWords,
        step: int,
        index: NDArray[np.int64],
        round_: int,
        n_rounds: int,
    ) -> None:
        self._bits = bits
        self._step = step
        self._index = index
        self._round = round_
        self._n_rounds = n_rounds
        words = bits.aux(step, index, round_, n_rounds)
        self.proposal = words[:, 0]
        self.place = words[:, 1]
        self.level = words[:, 2]
        self._sign = words[:, 3]

    def trial(self, i: int) -> Trial:
        """Further bits of trial number `i`."""
        row, turn = divmod(i, self._n_rounds)
        return Trial(self._bits, self._step, int(self._index[row]), self._round + turn)

    def values(
        self, trials: NDArray[np.int64], strip: NDArray[np.int64], place_bits: int
    ) -> NDArray[np.int64]:
        """floor(2^s X) of accepted trials: strip number, then place bits, then the sign."""
        # Two shifts because a shift by 64 (no place bits) is undefined.
        place = self.place[trials] >> 1 >> (WORD_BITS - 1 - place_bits)
        values = (strip[trials] << place_bits) + place.view(np.int64)
        # floor(-y) = -floor(y) - 1 = ~floor(y) unless y is an integer, an event of probability 0.
        values ^= -(self._sign[trials] & 1).view(np.int64)
        return values


def accept_statistic(
    law: StripLaw,
    tables: StripTables,
    strip: NDArray[np.int64],
    place: NDArray[np.uint64],
    level: NDArray[np.uint64],
) -> NDArray[np.float64]:
    """(E - a_j) - v (1 - a_j) in double precision from the top 53 bits of x and v."""
    shoulder = tables.shoulder.take(strip)
    ratio = exp_neg_float(law.exponent(strip, _unit_float(place)))
    ratio -= shoulder
    np.subtract(1.0, shoulder, out=shoulder)
    shoulder *= _unit_float(level)
    ratio -= shoulder
    return ratio


def exp_neg_float(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp(-t) for 0 <= t <= 0.34 by the Taylor polynomial of degree 10 in Horner form.

    IEEE products and sums only, so no libm is trusted. The truncation t^11 / 11! is below 2^-54
    for t <= 0.16, which covers every strip the thresholds name, and below 2^-42 for the strips
    only a tie at the top threshold can reach: both under the band.
    """
    total = _TAYLOR[0] * t
    for coefficient in _TAYLOR[1:-1]:
        total += coefficient
        total *= t
    total += _TAYLOR[-1]
    return total


def _where(mask: NDArray[np.bool_]) -> list[int]:
    positions: list[int] = mask.nonzero()[0].tolist()
    return positions


def _unit_float(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Top 53 bits of each word as a fraction in [0, 1), exactly."""
    fraction = (words >> 11).astype(np.float64)
    fraction *= 2.0**-53
    return fraction


class Trial:
    """One trial's supply of further bits."""

    def __init__(self, bits: RandomWords, step: int, index: int, round_: int) -> None:
        self._bits = bits
        self._address = (step, index, round_)

    def extend(self, value: int, variable: int, word: int) -> int:
        """`value` with 64 further bits of a variable appended."""
        if word >= _DEEP_WORDS:
            raise UndecidedNoiseError("a noise comparison is undecided after 256 bits")
        return value << WORD_BITS | self._bits.deep(*self._address, variable, word)


def locate_strip(law: StripLaw, tables: StripTables, trial: Trial, proposal: int) -> int:
    """Strip of a proposal whose first word equals a threshold."""
    bits, word = WORD_BITS, 0
    while True:
        proposal = trial.extend(proposal, _PROPOSAL, word)
        bits, word = bits + WORD_BITS, word + 1
        strips = certified_strips(law, tables.counts, bits + _DECISION_GUARD)
        strip = strips.locate(proposal, bits)
        if strip is not None:
            return strip


def accepts(
    law: StripLaw, tables: StripTables, trial: Trial, strip: int, place: int, level: int
) -> bool:
    """Verdict on a trial whose float statistic is too small to trust."""
    bits, word = WORD_BITS, 0
    while True:
        strips = certified_strips(law, tables.counts, bits + _DECISION_GUARD)
        verdict = strips.accepts(law, strip, place, level, bits)
        if verdict is not None:
            return verdict
        place = trial.extend(place, _PLACE, word)
        level = trial.extend(level, _LEVEL, word)
        bits, word = bits + WORD_BITS, word + 1
