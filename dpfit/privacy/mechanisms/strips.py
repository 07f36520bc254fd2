"""Exact floor(2^s X) for a symmetric law by dyadic strips (exactness.md, section 3).

X is a mixture: with probability n_j / 2^16 uniform on strip j (99 % in all, dyadic weights, hence
exact from a table and place bits), else drawn from the remainder by rejection. The rejection works
in floating point and hands every comparison closer than `band` to certified integers, which
read further bits of the same real numbers until the answer is certain. So the result is a pure
function of the bits, whatever the band, the block size or the machine's arithmetic.
"""

from __future__ import annotations

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

# Trials judged together: enough to hide the cost of a numpy call.
_SLOW_BATCH: Final = 4096
_FEW_TRIALS: Final = 512
_DEEP_WORDS: Final = 3
_DECISION_GUARD: Final = 64
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
        np.right_shift(words, np.uint64(WORD_BITS - CELL_BITS), out=cells.view(np.uint64))
        np.take(self._starts, cells, out=out, mode="clip")
        np.bitwise_and(words, np.uint64((1 << self._place_bits) - 1), out=words)
        np.add(out, words.view(np.int64), out=out)
        np.greater_equal(cells, self._tables.n_fast, out=is_slow)
        return np.flatnonzero(is_slow)

    def _finish(
        self, step: int, first: int, waiting: list[NDArray[np.int64]], out: NDArray[np.int64]
    ) -> None:
        positions = np.concatenate(waiting)
        out[positions] = self._remainder.draw(self._place_bits, step, positions + first)


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
        open_ = np.arange(len(index))
        round_ = 0
        while len(open_):
            # A few stragglers try several rounds at once; the first accepted one counts.
            n_rounds = max(1, _FEW_TRIALS // len(open_)) if len(open_) < _FEW_TRIALS else 1
            values, accepted = self._try(place_bits, step, index[open_], round_, n_rounds)
            done = accepted.any(axis=1)
            chosen = accepted.argmax(axis=1)[done]
            out[open_[done]] = values[np.flatnonzero(done), chosen]
            open_ = open_[~done]
            round_ += n_rounds
        return out

    def _try(
        self, place_bits: int, step: int, index: NDArray[np.int64], round_: int, n_rounds: int
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Values and verdicts of `n_rounds` trials of each index, shape (len(index), n_rounds)."""
        trials = np.repeat(index, n_rounds)
        rounds = np.tile(np.arange(round_, round_ + n_rounds), len(index))
        words = self._bits.aux(step, trials, rounds)
        strip = self._propose(step, trials, rounds, words)
        accepted = self._judge(step, trials, rounds, words, strip)
        # Two shifts because a shift by 64 (no place bits) is undefined.
        place = words[:, 1] >> np.uint64(1) >> np.uint64(WORD_BITS - 1 - place_bits)
        values = (strip << place_bits) + place.view(np.int64)
        # floor(-y) = -floor(y) - 1 = ~floor(y) unless y is an integer, an event of probability 0.
        values ^= -(words[:, 3] & np.uint64(1)).view(np.int64)
        shape = (len(index), n_rounds)
        return values.reshape(shape), accepted.reshape(shape)

    def _propose(
        self,
        step: int,
        trials: NDArray[np.int64],
        rounds: NDArray[np.int64],
        words: NDArray[np.uint64],
    ) -> NDArray[np.int64]:
        """Strips of the proposal; a word equal to a threshold is settled by further bits."""
        proposal = words[:, 0]
        strip = self._tables.propose(proposal)
        tied = np.take(self._tables.below, strip) == proposal
        for i in np.flatnonzero(tied):
            trial = _Trial(self._bits, step, int(trials[i]), int(rounds[i]))
            strip[i] = locate_strip(self._law, self._tables, trial, int(proposal[i]))
        return strip

    def _judge(
        self,
        step: int,
        trials: NDArray[np.int64],
        rounds: NDArray[np.int64],
        words: NDArray[np.uint64],
        strip: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        """Accepted trials; a statistic inside the band is settled by certified bounds."""
        statistic = accept_statistic(self._law, self._tables, strip, words[:, 1], words[:, 2])
        accepted: NDArray[np.bool_] = statistic > 0.0
        for i in np.flatnonzero(np.abs(statistic) <= self._band):
            trial = _Trial(self._bits, step, int(trials[i]), int(rounds[i]))
            place, level = int(words[i, 1]), int(words[i, 2])
            accepted[i] = accepts(self._law, self._tables, trial, int(strip[i]), place, level)
        return accepted


def accept_statistic(
    law: StripLaw,
    tables: StripTables,
    strip: NDArray[np.int64],
    place: NDArray[np.uint64],
    level: NDArray[np.uint64],
) -> NDArray[np.float64]:
    """(E - a_j) - v (1 - a_j) in double precision from the top 53 bits of x and v."""
    shoulder = np.take(tables.shoulder, strip)
    ratio = exp_neg_float(law.exponent(strip, _unit_float(place)))
    ratio -= shoulder
    np.subtract(1.0, shoulder, out=shoulder)
    shoulder *= _unit_float(level)
    ratio -= shoulder
    return ratio


def exp_neg_float(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp(-t) for 0 <= t <= 0.2 by the Taylor polynomial of degree 10 in Horner form.

    Truncation t^11 / 11! is below 2^-50; IEEE products and sums only, so no libm is trusted.
    """
    total = np.full_like(t, 1.0)
    for degree in range(10, 0, -1):
        total *= t
        total *= -1.0 / degree
        total += 1.0
    return total


def _unit_float(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Top 53 bits of each word as a fraction in [0, 1), exactly."""
    fraction = (words >> np.uint64(11)).astype(np.float64)
    fraction *= 2.0**-53
    return fraction


class _Trial:
    """One trial's supply of further bits."""

    def __init__(self, bits: RandomWords, step: int, index: int, round_: int) -> None:
        self._bits = bits
        self._address = (step, index, round_)

    def extend(self, value: int, variable: int, word: int) -> int:
        """`value` with 64 further bits of a variable appended."""
        if word >= _DEEP_WORDS:
            raise UndecidedNoiseError("a noise comparison is undecided after 256 bits")
        return value << WORD_BITS | self._bits.deep(*self._address, variable, word)


def locate_strip(law: StripLaw, tables: StripTables, trial: _Trial, proposal: int) -> int:
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
    law: StripLaw, tables: StripTables, trial: _Trial, strip: int, place: int, level: int
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
