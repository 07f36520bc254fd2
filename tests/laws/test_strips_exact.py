"""The strip sampler is a pure function of the bits, and decides every comparison truly.

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

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from numpy.typing import NDArray

from dpfit.privacy.mechanisms import strips
from dpfit.privacy.mechanisms.strip_tables import STRIP_BITS
from dpfit.privacy.mechanisms.strips import (
    DEFAULT_BAND,
    UndecidedNoiseError,
    accept_statistic,
    accepts,
)
from dpfit.privacy.random_bits import BitSource, RunKey, WordStream
from strip_laws import MP, Case, each_law, each_law_with

SCALE_BITS = 40
PLACE_BITS = SCALE_BITS - STRIP_BITS
ONES = 2**64 - 1


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


def reference(case: Case, source: BitSource, step: int, index: int) -> int:
    """The sampler once more, one value at a time in 400-bit arithmetic, from its definition."""
    word = int(source.main(step, index).take(1)[0])
    if word >> 48 < case.tables.n_fast:
        strip = int(case.tables.cells[word >> 48])
        return (strip << PLACE_BITS) + word % 2**PLACE_BITS
    for round_ in range(100):
        u, x, v, sign = source.aux(step, np.array([index]), round_, 1)[0].tolist()
        strip = bisect_right(case.cumulative, u << 256)
        if MP.mpf(v) / 2**64 < boundary_level(case, strip, x, 64):
            magnitude = (strip << PLACE_BITS) + (x >> 64 - PLACE_BITS)
            return ~magnitude if sign & 1 else magnitude
    raise AssertionError("no round accepted")


def boundary_level(case: Case, strip: int, place: int, bits: int) -> mpf:
    """v at which the accept statistic is zero, x = place / 2^bits."""
    ratio = case.ratio(strip, MP.mpf(place) / MP.mpf(2) ** bits)
    shoulder = case.rectangle(strip) / case.height(strip)
    return (ratio - shoulder) / (1 - shoulder)


def draw_one(case: Case, source: Scripted) -> int:
    return int(case.noise_class(source).integers(SCALE_BITS, 1, 0)[0])


REJECTED = -1  # The fallback accepts strip 0, place 0 with the sign set: floor(-0) = ~0.


@each_law
@pytest.mark.parametrize("scale_bits", [6, 7, 40, 54])
def test_band_does_not_change_a_bit(
    case: Case, scale_bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Band 2^-9 (many exact decisions) and band 2^-40 (none) give identical values."""
    decisions: list[bool] = []

    def counted(*arguments: Any) -> bool:
        decisions.append(accepts(*arguments))
        return decisions[-1]

    monkeypatch.setattr(strips, "accepts", counted)
    expected = case.noise().integers(scale_bits, 300_000, 3)
    assert not decisions
    drawn = case.noise(band=2.0**-9).integers(scale_bits, 300_000, 3)
    np.testing.assert_array_equal(expected, drawn)
    assert 10 < sum(decisions) < len(decisions) - 10


@each_law
def test_every_decision_exact_gives_the_same_bits(case: Case) -> None:
    """Band 2 sends every trial to the certified decision; the values stay."""
    exact = case.noise(band=2.0).integers(40, 20_000, 3)
    np.testing.assert_array_equal(case.noise().integers(40, 20_000, 3), exact)


@each_law
@pytest.mark.parametrize("block", [1, 7, 1000, 1 << 14, 1 << 17])
def test_block_does_not_change_a_bit(case: Case, block: int) -> None:
    """Values do not depend on how many are made at a time."""
    size = 3000 if block == 1 else 200_000
    expected = case.noise().integers(40, size, 1)
    np.testing.assert_array_equal(expected, case.noise(block=block).integers(40, size, 1))


@each_law
@pytest.mark.parametrize("cuts", [[1], [2], [3, 4], [1, 1, 2], [17, 999, 50_001], [99_999]])
def test_partition_does_not_change_a_bit(case: Case, cuts: list[int]) -> None:
    """Drawing ranges apart, odd and empty ones too, and in any order gives the same vector."""
    whole = case.noise().integers(40, 100_000, 1)
    source = case.noise()
    edges = [0, *cuts, 100_000]
    ranges = list(pairwise(edges))
    parts = [source.integers(40, b - a, 1, first=a) for a, b in reversed(ranges)]
    np.testing.assert_array_equal(whole, np.concatenate(parts[::-1]))


@each_law
def test_scale_is_a_shift(case: Case) -> None:
    """With s = 6 only the strip number is left, the same strip as with s = 54."""
    coarse, fine = (case.noise().integers(s, 50_000, 1) for s in (6, 54))
    np.testing.assert_array_equal(coarse, fine >> 48)


@each_law
def test_large_index(case: Case) -> None:
    """The last coordinates of the index range are served; one more is refused."""
    source = case.noise()
    assert len(source.integers(40, 100, 0, first=2**40 - 100)) == 100
    with pytest.raises(ValueError, match="index"):
        source.integers(40, 101, 0, first=2**40 - 100)


@each_law
def test_out_is_filled_and_returned(case: Case) -> None:
    """A reused buffer gets the values a fresh one would."""
    out = np.empty(5000, np.int64)
    assert case.noise().integers(40, 5000, 1, out=out) is out
    np.testing.assert_array_equal(case.noise().integers(40, 5000, 1), out)


@each_law
@pytest.mark.parametrize(
    "out", [np.empty(4, np.int64), np.empty(5, np.int32), np.empty(10, np.int64)[::2]]
)
def test_unsuitable_out_is_refused(case: Case, out: NDArray[np.int64]) -> None:
    """Wrong size, wrong type, not contiguous."""
    with pytest.raises(ValueError, match="contiguous int64"):
        case.noise().integers(40, 5, 0, out=out)


@each_law
@pytest.mark.parametrize("scale_bits", [5, 55, -1])
def test_scale_out_of_range_is_refused(case: Case, scale_bits: int) -> None:
    """The word has room for 48 place bits, and strips are 2^-6 wide."""
    with pytest.raises(ValueError, match="scale_bits"):
        case.noise().integers(scale_bits, 5, 0)


@each_law
def test_no_values(case: Case) -> None:
    """An empty vector is no error."""
    assert len(case.noise().integers(40, 0, 0)) == 0


# --- ties and boundaries -------------------------------------------------------------------


def words_of(digits: int) -> list[int]:
    """The five 64-bit words of a 320-bit fraction."""
    return [digits >> shift & ONES for shift in (256, 192, 128, 64, 0)]


@each_law_with("strip", "tried_threshold_strips")
@pytest.mark.parametrize("offset", [-(2**200), -(2**140), -(2**66), 2**66, 2**140, 2**200])
def test_tie_at_a_threshold(case: Case, strip: int, offset: int) -> None:
    """u = T_j and further words just below or above cum_j / total choose strip j or j + 1."""
    first, *further = words_of(case.cumulative[strip] + offset)
    assert first == case.tables.thresholds[strip]
    source = Scripted((first, 0, 0, 0), {0: further})
    expected = strip if offset < 0 else strip + 1
    assert expected << PLACE_BITS == draw_one(case, source)
    assert source.read > 0


@each_law_with("strip", "tried_tail_strips")
def test_tail_beyond_the_thresholds(case: Case, strip: int) -> None:
    """The last word's cell holds all further strips, told apart by further bits."""
    first, *further = words_of((case.cumulative[strip - 1] + case.cumulative[strip]) // 2)
    assert first == ONES
    assert strip << PLACE_BITS == draw_one(case, Scripted((first, 0, 0, 0), {0: further}))


@each_law
@pytest.mark.parametrize("at_the_top", [True, False])
def test_undecidable_tie_aborts(case: Case, at_the_top: bool) -> None:
    """Bits that follow a boundary for 256 places end the run instead of being guessed."""
    first, *further = words_of(2**320 - 1 if at_the_top else case.cumulative[100])
    with pytest.raises(UndecidedNoiseError):
        draw_one(case, Scripted((first, 0, 0, 0), {0: further[:3]}))


@each_law_with("strip", "level_strips")
@pytest.mark.parametrize("below", [-2, -1, 0, 1])
def test_level_at_the_boundary(case: Case, strip: int, below: int) -> None:
    """v = floor(2^64 v*) + below is accepted iff v, its further bits included, is under v*."""
    rng = np.random.default_rng(strip)
    proposal = int(case.tables.thresholds[strip]) - 1
    for _ in range(12):
        place, x1, x2, x3, v1, v2, v3 = map(int, rng.integers(0, 2**64, 7, np.uint64))
        exact_place = ((place << 64 | x1) << 64 | x2) << 64 | x3
        boundary = boundary_level(case, strip, exact_place, 256)
        level = int(MP.floor(boundary * 2**64)) + below
        if not 0 <= level <= ONES:
            continue
        exact_level = MP.mpf(((level << 64 | v1) << 64 | v2) << 64 | v3) / MP.mpf(2) ** 256
        source = Scripted((proposal, place, level, 0), {1: [x1, x2, x3], 2: [v1, v2, v3]})
        value = (strip << PLACE_BITS) + (place >> 64 - PLACE_BITS)
        assert (value if exact_level < boundary else REJECTED) == draw_one(case, source)


@each_law
def test_level_equal_to_the_boundary_for_256_bits_aborts(case: Case) -> None:
    """x = v = 0 at v* = 1 is certain; a level that follows v* to 256 bits is not."""
    boundary = int(MP.floor(boundary_level(case, 100, 1 << 255, 256) * MP.mpf(2) ** 256))
    level, *further = (boundary >> shift & ONES for shift in (192, 128, 64, 0))
    words = (int(case.tables.thresholds[100]) - 1, 1 << 63, level, 0)
    with pytest.raises(UndecidedNoiseError):
        draw_one(case, Scripted(words, {1: [0, 0, 0], 2: further}))


@each_law
def test_sign_is_a_bit_no_test_reads(case: Case) -> None:
    """The sign word's low bit mirrors the value; its other bits do nothing."""
    words = (int(case.tables.thresholds[100]) - 1, 12345 << 40, 0)
    value = draw_one(case, Scripted((*words, 0)))
    assert value == (100 << PLACE_BITS) + (12345 << 40 >> 64 - PLACE_BITS)
    assert value == draw_one(case, Scripted((*words, ONES - 1)))
    assert ~value == draw_one(case, Scripted((*words, 1)))


def float_error(case: Case, strip: list[int], place: list[int], level: list[int]) -> float:
    """Largest difference between the float statistic and the true one."""
    shipped = accept_statistic(
        case.law,
        case.tables,
        np.array(strip),
        np.array(place, np.uint64),
        np.array(level, np.uint64),
    )
    worst = 0.0
    for j, x, v, statistic in zip(strip, place, level, shipped.tolist(), strict=True):
        shoulder = case.rectangle(j) / case.height(j)
        exact = case.ratio(j, MP.mpf(x) / 2**64) - shoulder - MP.mpf(v) / 2**64 * (1 - shoulder)
        worst = max(worst, abs(float(exact - statistic)))
    return worst


@each_law
def test_float_statistic_error(case: Case) -> None:
    """|float statistic - true statistic| < band / 2^8 for every strip the thresholds name."""
    rng = np.random.default_rng(3)
    strip = rng.integers(0, case.top + 1, 10_000)
    place, level = rng.integers(0, 2**64, (2, 10_000), np.uint64)
    place[:500] = ONES
    level[250:750] = ONES
    worst = float_error(case, strip.tolist(), place.tolist(), level.tolist())
    assert worst < DEFAULT_BAND / 2**8


@each_law
def test_float_statistic_error_beyond_the_thresholds(case: Case) -> None:
    """Strips that only a tie at the top reaches stay inside the band itself."""
    for strip in (case.top + 1, *case.far_strips):
        assert float_error(case, [strip], [ONES], [0]) < DEFAULT_BAND * case.far_error


# --- reproducibility -----------------------------------------------------------------------


@each_law
def test_known_answer(case: Case) -> None:
    """Seed 0 gives these values on every machine; a change voids old seeded runs."""
    source = case.noise(0)
    assert source.integers(40, 6, 3, first=5).tolist() == case.known_values
    digest = hashlib.sha256(source.integers(30, 200_000, 1).astype("<i8").tobytes()).hexdigest()
    assert digest == case.known_digest


@each_law
def test_reference_sampler(case: Case) -> None:
    """The vectorised sampler agrees with the definition, evaluated value by value."""
    source = BitSource(RunKey.from_seed(21))
    drawn = case.noise(21).integers(SCALE_BITS, 20_000, 4)
    assert [reference(case, source, 4, i) for i in range(20_000)] == drawn.tolist()


@each_law
def test_global_precision_is_ignored(case: Case) -> None:
    """Another module lowering mpmath's global precision changes nothing."""
    expected = case.noise(band=2.0**-9).integers(40, 50_000, 2)
    with mpmath.workprec(20):
        drawn = case.noise(band=2.0**-9).integers(40, 50_000, 2)
    np.testing.assert_array_equal(expected, drawn)


@each_law
def test_run_time_imports(case: Case) -> None:
    """Sampling loads neither mpmath nor scipy; building the tables no cryptography."""
    program = (
        f"import sys; from fractions import Fraction; from {type(case.law).__module__} import *;"
        "from dpfit.privacy.mechanisms.strip_tables import strip_tables;"
        "from dpfit.privacy.random_bits import BitSource, RunKey;"
        f"strip_tables({case.law!r});"
        "assert 'cryptography' not in sys.modules;"
        "bits = BitSource(RunKey.from_system());"
        f"{case.noise_call}.integers(40, 10, 0);"
        "assert not {'mpmath', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
