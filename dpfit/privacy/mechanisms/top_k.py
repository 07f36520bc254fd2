"""Exact choice of the k largest scores under Gumbel noise.

k rounds of the exponential mechanism without replacement, in one shot: add an independent Gumbel
variate to every score once and take the k largest (Durfee and Rogers, NeurIPS 2019; methods.md,
section 0 (D)). The noise is real-valued and never rounded: only comparisons are evaluated, and
each of them truly (exactness.md, section 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from dpfit.privacy.mechanisms.gumbel_keys import certify, enclose
from dpfit.privacy.mechanisms.strip_tables import WORD_BITS
from dpfit.privacy.mechanisms.strips import Trial, UndecidedNoiseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dpfit.privacy.random_bits import RandomWords

MAX_SCALE_BITS: Final = 63
# A key's float value errs by less than 2^-50 (1 + |key|) plus what the word's own width allows.
DEFAULT_BAND: Final = 2.0**-40
DEFAULT_BLOCK: Final = 1 << 14

# Bounds of keys: floats, or Python integers.
_Bound = TypeVar("_Bound", np.float64, np.object_)

_MAX_BITS: Final = 256
_DECISION_GUARD: Final = 64
_UNIFORM: Final = 0


class GumbelTopK:
    """Exact one-shot selection of k of d candidates with Gumbel noise of scale beta = 2^b.

    The chosen set has the law of k draws without replacement, each with probabilities
    proportional to exp(score / beta) among the candidates left. If every score of neighbouring
    data sets differs by at most D_inf,

        |q_j(D) - q_j(D')| <= D_inf for all j,

    a draw is (2 D_inf / beta)-bounded-range given the ones before it, and all k are
    k D_inf^2 / (2 beta^2)-zCDP. The event to account is
    ``BoundedRangeEvent(eta=2 D_inf / beta, count=k)``. The order of the draws is not released:
    the set is returned sorted by index.

    The result is a pure function of (key, step) and the scores, whatever the band, the block or
    the machine's logarithm. A step serves one selection only, never a noise vector as well: the
    caller (the Curator) sees to it. The number of comparisons that need further bits depends on
    the scores, so no time or count may be released.

    Not thread-safe: each thread needs its own object and its own source of bits.

    Parameters
    ----------
    bits : RandomWords
        Source of bits, normally a ``BitSource``.
    band : float, keyword-only
        Relative radius of the float keys, at least 2^-40. Changes speed only.
    block : int, keyword-only
        Candidates looked at together. Changes speed only.
    """

    def __init__(
        self, bits: RandomWords, *, band: float = DEFAULT_BAND, block: int = DEFAULT_BLOCK
    ) -> None:
        if not band >= DEFAULT_BAND:
            raise ValueError(f"band {band} is below 2^-40, which float keys do not keep")
        self._bits = bits
        self._band = band
        self._block = block

    def select(
        self, scores: NDArray[np.int64], k: int, scale_bits: int, step: int
    ) -> NDArray[np.int64]:
        """Indices of the k largest of scores + Gumbel(2^scale_bits), ascending.

        Parameters
        ----------
        scores : array of int64, shape (d,)
            q, any int64 values; only their differences matter.
        k : int
            From 0 to d.
        scale_bits : int
            b, from 0 to 63.
        step : int
            Noise step, below 2^32; see the class for why it is used once.

        Returns
        -------
        array of int64, shape (k,)
        """
        top = int(scores.max()) if len(scores) else 0
        return self._select(_Scores(scores, top, len(scores)), k, scale_bits, step)

    def select_signed(
        self, scores: NDArray[np.int64], k: int, scale_bits: int, step: int
    ) -> NDArray[np.int64]:
        """What `select` gives for the 2d scores q and -q one after the other, without the copy.

        Index j < d stands for q[j], index d + j for -q[j].

        Parameters
        ----------
        scores : array of int64, shape (d,)
            q, above -2^63.
        k, scale_bits, step : int
            As for `select`; k from 0 to 2d.

        Returns
        -------
        array of int64, shape (k,)
        """
        top = max(int(scores.max()), -int(scores.min())) if len(scores) else 0
        if top > np.iinfo(np.int64).max:
            raise ValueError("a score of -2^63 has no negative")
        return self._select(_Scores(scores, top, 2 * len(scores)), k, scale_bits, step)

    def _select(self, scores: _Scores, k: int, scale_bits: int, step: int) -> NDArray[np.int64]:
        _check(scores, k, scale_bits)
        if k == 0 or k == scores.count:
            return np.arange(k)
        pool = self._contenders(scores, k, scale_bits, step)
        inside, open_ = _settle(k, pool.low, pool.high)
        chosen = [pool.index[inside]]
        k -= len(chosen[0])
        if k:
            lazy = _LazyKeys(self._bits, scores, scale_bits, step)
            chosen.append(_choose(lazy, pool.index[open_], k))
        return np.sort(np.concatenate(chosen))

    def _contenders(self, scores: _Scores, k: int, scale_bits: int, step: int) -> _Pool:
        """All candidates that float keys leave a chance, with bounds of their keys."""
        stream = self._bits.main(step, 0)
        pool = _Pool(k)
        start = 0
        for deficits in scores.deficits(self._block):
            pool.add(start, *enclose(stream.take(len(deficits)), deficits, scale_bits, self._band))
            start += len(deficits)
        pool.prune()
        return pool


@dataclass(frozen=True)
class _Scores:
    """The scores relative to the best one, exactly; with 2d candidates also their negatives."""

    values: NDArray[np.int64]
    top: int
    count: int

    def deficits(self, block: int) -> Iterator[NDArray[np.uint64]]:
        """`top` minus each score, block after block."""
        top, size = np.int64(self.top), len(self.values)
        for start in range(0, size, block):
            # Up to 2^64 - 1: wraps in int64 and is exact as an unsigned number.
            yield np.subtract(top, self.values[start : start + block]).view(np.uint64)
        for start in range(0, self.count - size, block):
            yield np.add(top, self.values[start : start + block]).view(np.uint64)

    def deficit(self, index: int) -> int:
        """`top` minus one score."""
        negated, position = divmod(index, len(self.values))
        score = int(self.values[position])
        return self.top + score if negated else self.top - score


class _Pool:
    """Candidates that may be among the k largest, given bounds of the keys seen so far."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._limit = k
        self._floor = np.array([-np.inf])
        self._size = 0
        self._parts: list[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]] = []
        self.index = np.empty(0, np.int64)
        self.low = self.high = np.empty(0)

    def add(self, start: int, low: NDArray[np.float64], high: NDArray[np.float64]) -> None:
        """Offer the candidates start, start + 1, ..."""
        kept = (high >= self._floor).nonzero()[0]
        self._parts.append((kept + start, low[kept], high[kept]))
        self._size += len(kept)
        if self._size > self._limit:
            self.prune()

    def prune(self) -> None:
        """Drop whoever lies below k others for certain."""
        self.index, self.low, self.high = map(np.concatenate, zip(*self._parts, strict=True))
        if len(self.low) > self._k:
            self._floor = _kth_largest(self.low, self._k)
            kept = self.high >= self._floor
            self.index, self.low, self.high = self.index[kept], self.low[kept], self.high[kept]
        self._parts = [(self.index, self.low, self.high)]
        self._size = len(self.index)
        # Waiting until it has doubled keeps the cost of all prunings linear.
        self._limit = 2 * self._size


class _LazyKeys:
    """Certified bounds of the keys of single candidates, from as many bits as asked for."""

    def __init__(self, bits: RandomWords, scores: _Scores, scale_bits: int, step: int) -> None:
        self._bits = bits
        self._scores = scores
        self._scale_bits = scale_bits
        self._step = step
        self._uniforms: dict[int, int] = {}

    def bounds(
        self, candidates: list[int], bits: int
    ) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
        """Bounds of the keys with `bits` bits of each V, scaled alike; arrays of integers."""
        precision = bits + _DECISION_GUARD
        ends = [
            certify(
                self._uniform(j, bits), bits, self._scores.deficit(j), self._scale_bits, precision
            )
            for j in candidates
        ]
        pairs = np.array(ends, dtype=object)
        return pairs[:, 0], pairs[:, 1]

    def _uniform(self, index: int, bits: int) -> int:
        """V's first `bits` bits; asked for in turn with 64, 128, ... bits."""
        if bits == WORD_BITS:
            value = int(self._bits.main(self._step, index).take(1)[0])
        else:
            trial = Trial(self._bits, self._step, index, 0)
            value = trial.extend(self._uniforms[index], _UNIFORM, bits // WORD_BITS - 2)
        self._uniforms[index] = value
        return value


def _choose(lazy: _LazyKeys, candidates: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """The k candidates with the largest keys, by ever more bits of those still open."""
    chosen: list[NDArray[np.int64]] = []
    for bits in range(WORD_BITS, _MAX_BITS + 1, WORD_BITS):
        inside, open_ = _settle(k, *lazy.bounds(candidates.tolist(), bits))
        chosen.append(candidates[inside])
        k -= len(chosen[-1])
        if not k:
            return np.concatenate(chosen)
        candidates = candidates[open_]
    raise UndecidedNoiseError("a comparison of scores is undecided after 256 bits")


def _settle(
    k: int, low: NDArray[_Bound], high: NDArray[_Bound]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Who is among the k largest for certain, and who may be, given bounds of each key.

    With L the k-th largest lower and H the (k+1)-th largest upper bound: at least k keys are at
    least L, so high < L is out; at most k keys exceed H, so low > H is in. Bounds that touch
    decide nothing.
    """
    if len(low) == k:
        return np.ones(k, np.bool_), np.zeros(k, np.bool_)
    inside = low > _kth_largest(high, k + 1)
    return inside, ~inside & (high >= _kth_largest(low, k))


def _kth_largest(values: NDArray[_Bound], k: int) -> NDArray[_Bound]:
    """As an array of one value, which also holds an integer of any size."""
    position = len(values) - k
    return np.partition(values, position)[position : position + 1]


def _check(scores: _Scores, k: int, scale_bits: int) -> None:
    if scores.values.dtype != np.int64 or scores.values.ndim != 1:
        raise ValueError("scores must be a vector of int64")
    if not 0 <= k <= scores.count:
        raise ValueError(f"k = {k} is outside 0 .. {scores.count}")
    if not 0 <= scale_bits <= MAX_SCALE_BITS:
        raise ValueError(f"scale_bits {scale_bits} is outside 0 .. {MAX_SCALE_BITS}")
