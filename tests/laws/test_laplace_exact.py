"""The Laplace sampler is a pure function of the bits, and decides every comparison truly.

Nothing here has a failure chance: all bits are fixed or scripted.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from mpmath import ctx_mp
from numpy.typing import NDArray

from dpfit.privacy.mechanisms import strips
from dpfit.privacy.mechanisms.laplace import LaplaceNoise, StandardLaplace
from dpfit.privacy.mechanisms.strip_tables import STRIP_BITS, strip_tables
from dpfit.privacy.mechanisms.strips import (
    DEFAULT_BAND,
    UndecidedNoiseError,
    accept_statistic,
    accepts,
)
from dpfit.privacy.random_bits import BitSource, RunKey, WordStream

LAW = StandardLaplace()
TABLES = strip_tables(LAW)
MP = ctx_mp.MPContext()
MP.prec = 400
H = MP.mpf(2) ** -STRIP_BITS
MASS = MP.mpf(2)
SCALE_BITS = 40
PLACE_BITS = SCALE_BITS - STRIP_BITS
ONES = 2**64 - 1


def noise(seed: int = 7, **options: float) -> LaplaceNoise:
    return LaplaceNoise(BitSource(RunKey.from_seed(seed)), **options)  # type: ignore[arg-type]


@dataclass
class Scripted:
    """One slow value: round 0 reads the scripted words, every later round `fallback`."""

    words: tuple[int, int, int, int]
    deep_words: dict[int, list[int]] = field(default_factory=dict)
    fallback: tuple[int, int, int, int] = (0, 0, 0, 1)
    read: int = 0

    def main(self, step: int, first: int) -> WordStream:
        return self

    def take(self, count: int) -> NDArray[np.uint64]:
        return np.full(count, ONES, np.uint64)

    def aux(
        self, step: int, index: NDArray[np.int64], round_: int, n_rounds: int
    ) -> NDArray[np.uint64]:
        rows = [self.fallback if round_ + k else self.words for k in range(n_rounds)]
        return np.array(rows * len(index), np.uint64)

    def deep(self, step: int, index: int, round_: int, variable: int, word: int) -> int:
        self.read += 1
        return self.deep_words[variable][word]


def reference(source: BitSource, step: int, index: int) -> int:
    """The sampler once more, one value at a time in 400-bit arithmetic, from its definition."""
    word = int(source.main(step, index).take(1)[0])
    if word >> 48 < TABLES.n_fast:
        strip = int(TABLES.cells[word >> 48])
        return (strip << PLACE_BITS) + word % 2**PLACE_BITS
    for round_ in range(100):
        u, x, v, sign = source.aux(step, np.array([index]), round_, 1)[0].tolist()
        strip = bisect_right(DIGITS, u << 256)
        if MP.mpf(v) / 2**64 < _boundary(strip, x, 64):
            magnitude = (strip << PLACE_BITS) + (x >> 64 - PLACE_BITS)
            return ~magnitude if sign & 1 else magnitude
    raise AssertionError("no round accepted")


def draw_one(source: Scripted) -> int:
    return int(LaplaceNoise(source).integers(SCALE_BITS, 1, 0)[0])


REJECTED = -1  # The fallback accepts strip 0, place 0 with the sign set: floor(-0) = ~0.


@pytest.mark.parametrize("scale_bits", [6, 7, 40, 54])
def test_band_does_not_change_a_bit(scale_bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Band 2^-9 (many exact decisions) and band 2^-40 (none) give identical values."""
    decisions: list[bool] = []

    def counted(*arguments: Any) -> bool:
        decisions.append(accepts(*arguments))
        return decisions[-1]

    monkeypatch.setattr(strips, "accepts", counted)
    expected = noise().integers(scale_bits, 300_000, 3)
    assert not decisions
    drawn = noise(band=2.0**-9).integers(scale_bits, 300_000, 3)
    np.testing.assert_array_equal(expected, drawn)
    assert 10 < sum(decisions) < len(decisions) - 10


def test_every_decision_exact_gives_the_same_bits() -> None:
    """Band 2 sends every trial to the certified decision; the values stay."""
    exact = noise(band=2.0).integers(40, 20_000, 3)
    np.testing.assert_array_equal(noise().integers(40, 20_000, 3), exact)


@pytest.mark.parametrize("block", [1, 1000, 1 << 17])
def test_block_does_not_change_a_bit(block: int) -> None:
    """Values do not depend on how many are made at a time."""
    size = 3000 if block == 1 else 200_000
    expected = noise().integers(40, size, 1)
    np.testing.assert_array_equal(expected, noise(block=block).integers(40, size, 1))


@pytest.mark.parametrize("cuts", [[1], [3, 4], [17, 999, 50_001]])
def test_partition_does_not_change_a_bit(cuts: list[int]) -> None:
    """Drawing ranges apart and in any order gives the same vector."""
    whole = noise().integers(40, 100_000, 1)
    source = noise()
    ranges = list(pairwise([0, *cuts, 100_000]))
    parts = [source.integers(40, b - a, 1, first=a) for a, b in reversed(ranges)]
    np.testing.assert_array_equal(whole, np.concatenate(parts[::-1]))


def test_scale_is_a_shift() -> None:
    """With s = 6 only the strip number is left, the same strip as with s = 54."""
    coarse, fine = (noise().integers(s, 50_000, 1) for s in (6, 54))
    np.testing.assert_array_equal(coarse, fine >> 48)


def test_large_index() -> None:
    """The last coordinates of the index range are served; one more is refused."""
    source = noise()
    assert len(source.integers(40, 100, 0, first=2**40 - 100)) == 100
    with pytest.raises(ValueError, match="index"):
        source.integers(40, 101, 0, first=2**40 - 100)


def test_out_is_filled_and_returned() -> None:
    """A reused buffer gets the values a fresh one would."""
    out = np.empty(5000, np.int64)
    assert noise().integers(40, 5000, 1, out=out) is out
    np.testing.assert_array_equal(noise().integers(40, 5000, 1), out)


@pytest.mark.parametrize(
    "out", [np.empty(4, np.int64), np.empty(5, np.int32), np.empty(10, np.int64)[::2]]
)
def test_unsuitable_out_is_refused(out: NDArray[np.int64]) -> None:
    """Wrong size, wrong type, not contiguous."""
    with pytest.raises(ValueError, match="contiguous int64"):
        noise().integers(40, 5, 0, out=out)


@pytest.mark.parametrize("scale_bits", [5, 55, -1])
def test_scale_out_of_range_is_refused(scale_bits: int) -> None:
    """The word has room for 48 place bits, and strips are 2^-6 wide."""
    with pytest.raises(ValueError, match="scale_bits"):
        noise().integers(scale_bits, 5, 0)


def test_no_values() -> None:
    """An empty vector is no error."""
    assert len(noise().integers(40, 0, 0)) == 0


# --- ties and boundaries -------------------------------------------------------------------


def _height(strip: int) -> ctx_mp.MPContext.mpf:
    return MP.exp(-strip * H)


def _rectangle(strip: int) -> ctx_mp.MPContext.mpf:
    count = TABLES.counts[strip] if strip < len(TABLES.counts) else 0
    return count * MASS / (2**16 * H)


def _cumulative_digits() -> list[int]:
    """floor(2^320 sum_{i<=j} M_i / sum M)."""
    total = 1 / (1 - MP.exp(-H)) - sum(map(_rectangle, range(len(TABLES.counts))))
    digits, running = [], MP.mpf(0)
    for j in range(9000):
        running += _height(j) - _rectangle(j)
        digits.append(int(MP.floor(running / total * MP.mpf(2) ** 320)))
    return digits


DIGITS = _cumulative_digits()
TOP = len(TABLES.thresholds) - 1


def _words_of(digits: int) -> list[int]:
    """The five 64-bit words of a 320-bit fraction."""
    return [digits >> shift & ONES for shift in (256, 192, 128, 64, 0)]


@pytest.mark.parametrize("strip", [0, 1, 57, 200, 398, 399, 1000, 3000, TOP - 3, TOP - 1, TOP])
@pytest.mark.parametrize("offset", [-(2**200), -(2**140), -(2**66), 2**66, 2**140, 2**200])
def test_tie_at_a_threshold(strip: int, offset: int) -> None:
    """u = T_j and further words just below or above cum_j / total choose strip j or j + 1."""
    first, *further = _words_of(DIGITS[strip] + offset)
    assert first == TABLES.thresholds[strip]
    source = Scripted((first, 0, 0, 0), {0: further})
    expected = strip if offset < 0 else strip + 1
    assert expected << PLACE_BITS == draw_one(source)
    assert source.read > 0


@pytest.mark.parametrize("strip", [TOP + 1, TOP + 100, 5000, 8000])
def test_tail_beyond_the_thresholds(strip: int) -> None:
    """The last word's cell holds all further strips, told apart by further bits."""
    first, *further = _words_of((DIGITS[strip - 1] + DIGITS[strip]) // 2)
    assert first == ONES
    assert strip << PLACE_BITS == draw_one(Scripted((first, 0, 0, 0), {0: further}))


@pytest.mark.parametrize("further", [[ONES] * 3, _words_of(DIGITS[100])[1:4]])
def test_undecidable_tie_aborts(further: list[int]) -> None:
    """Bits that follow a boundary for 256 places end the run instead of being guessed."""
    first = ONES if further[0] == ONES else int(TABLES.thresholds[100])
    with pytest.raises(UndecidedNoiseError):
        draw_one(Scripted((first, 0, 0, 0), {0: further}))


def _boundary(strip: int, place: int, bits: int) -> ctx_mp.MPContext.mpf:
    """v at which the accept statistic is zero, x = place / 2^bits."""
    x = MP.mpf(place) / MP.mpf(2) ** bits
    ratio = MP.exp(-H * x)
    shoulder = _rectangle(strip) / _height(strip)
    return (ratio - shoulder) / (1 - shoulder)


@pytest.mark.parametrize("strip", [0, 1, 50, 398, 399, 1000, 2500])
@pytest.mark.parametrize("below", [-2, -1, 0, 1])
def test_level_at_the_boundary(strip: int, below: int) -> None:
    """v = floor(2^64 v*) + below is accepted iff v, its further bits included, is under v*."""
    rng = np.random.default_rng(strip)
    proposal = int(TABLES.thresholds[strip]) - 1
    for _ in range(12):
        place, x1, x2, x3, v1, v2, v3 = map(int, rng.integers(0, 2**64, 7, np.uint64))
        exact_place = ((place << 64 | x1) << 64 | x2) << 64 | x3
        boundary = _boundary(strip, exact_place, 256)
        level = int(MP.floor(boundary * 2**64)) + below
        if not 0 <= level <= ONES:
            continue
        exact_level = MP.mpf(((level << 64 | v1) << 64 | v2) << 64 | v3) / MP.mpf(2) ** 256
        source = Scripted((proposal, place, level, 0), {1: [x1, x2, x3], 2: [v1, v2, v3]})
        value = (strip << PLACE_BITS) + (place >> 64 - PLACE_BITS)
        assert (value if exact_level < boundary else REJECTED) == draw_one(source)


def test_level_equal_to_the_boundary_for_256_bits_aborts() -> None:
    """x = v = 0 at v* = 1 is certain; a level that follows v* to 256 bits is not."""
    boundary = int(MP.floor(_boundary(100, 1 << 255, 256) * MP.mpf(2) ** 256))
    level, *further = (boundary >> shift & ONES for shift in (192, 128, 64, 0))
    words = (int(TABLES.thresholds[100]) - 1, 1 << 63, level, 0)
    with pytest.raises(UndecidedNoiseError):
        draw_one(Scripted(words, {1: [0, 0, 0], 2: further}))


def test_sign_is_a_bit_no_test_reads() -> None:
    """The sign word's low bit mirrors the value; its other bits do nothing."""
    words = (int(TABLES.thresholds[100]) - 1, 12345 << 40, 0)
    value = draw_one(Scripted((*words, 0)))
    assert value == (100 << PLACE_BITS) + (12345 << 40 >> 64 - PLACE_BITS)
    assert value == draw_one(Scripted((*words, ONES - 1)))
    assert ~value == draw_one(Scripted((*words, 1)))


def test_float_statistic_error() -> None:
    """|float statistic - true statistic| < band / 2^8 for every strip the thresholds name."""
    rng = np.random.default_rng(3)
    strip = rng.integers(0, TOP + 1, 10_000)
    place, level = rng.integers(0, 2**64, (2, 10_000), np.uint64)
    place[:500] = ONES
    level[250:750] = ONES
    statistic = accept_statistic(LAW, TABLES, strip, place, level)
    shoulders = [_rectangle(j) / _height(j) for j in range(TOP + 1)]
    worst = 0.0
    for j, x, v, shipped in zip(strip.tolist(), place, level, statistic.tolist(), strict=True):
        x_real = MP.mpf(int(x)) / 2**64
        ratio = MP.exp(-H * x_real)
        exact = ratio - shoulders[j] - MP.mpf(int(v)) / 2**64 * (1 - shoulders[j])
        worst = max(worst, abs(float(exact - shipped)))
    assert worst < DEFAULT_BAND / 2**8


def test_float_statistic_error_beyond_the_thresholds() -> None:
    """Strips that only a tie at the top reaches are like any other."""
    place, level = np.array([ONES], np.uint64), np.array([0], np.uint64)
    for strip in (TOP + 1, 5000, 13_965):
        statistic = accept_statistic(LAW, TABLES, np.array([strip]), place, level)
        assert abs(float(MP.exp(-H) - float(statistic[0]))) < DEFAULT_BAND / 2**8


# --- reproducibility -----------------------------------------------------------------------


def test_known_answer() -> None:
    """Seed 0 gives these values on every machine; a change voids old seeded runs."""
    source = noise(0)
    assert source.integers(40, 6, 3, first=5).tolist() == KNOWN_VALUES
    digest = hashlib.sha256(source.integers(30, 200_000, 1).astype("<i8").tobytes()).hexdigest()
    assert digest == KNOWN_DIGEST


def test_reference_sampler() -> None:
    """The vectorised sampler agrees with the definition, evaluated value by value."""
    source = BitSource(RunKey.from_seed(21))
    drawn = noise(21).integers(SCALE_BITS, 20_000, 4)
    assert [reference(source, 4, i) for i in range(20_000)] == drawn.tolist()


KNOWN_VALUES = [
    -636973208050,
    -1293086155730,
    -817208223476,
    1797299238350,
    -144903057627,
    -704505946779,
]
KNOWN_DIGEST = "c1f047ba93598eccaff0d0461cc7aee7b6bc00c5ef1f1a48692a73e168acba4b"


def test_run_time_imports() -> None:
    """Sampling loads neither mpmath nor scipy; building the tables no cryptography."""
    program = (
        "import sys; from dpfit.privacy.mechanisms.laplace import LaplaceNoise, StandardLaplace;"
        "from dpfit.privacy.mechanisms.strip_tables import strip_tables;"
        "from dpfit.privacy.random_bits import BitSource, RunKey;"
        "strip_tables(StandardLaplace());"
        "assert 'cryptography' not in sys.modules;"
        "LaplaceNoise(BitSource(RunKey.from_system())).integers(40, 10, 0);"
        "assert not {'mpmath', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
