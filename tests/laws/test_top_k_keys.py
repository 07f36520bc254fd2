"""Float and certified bounds of Gumbel keys enclose the true keys (no chance involved)."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import ctx_mp
from numpy.typing import NDArray

from dpfit.privacy.mechanisms import certified_log
from dpfit.privacy.mechanisms.certified_log import log
from dpfit.privacy.mechanisms.gumbel_keys import UNBOUNDED, certify, enclose
from dpfit.privacy.mechanisms.top_k import DEFAULT_BAND

MP = ctx_mp.MPContext()
MP.prec = 700
ONES = 2**64 - 1


def key(value: int, bits: int, deficit: int, scale_bits: int) -> ctx_mp.MPContext.mpf:
    """Key at V = value / 2^bits; infinite at 0 and 1."""
    if not 0 < value < 1 << bits:
        return MP.inf if value == 0 else -MP.inf
    exponential = -MP.log(MP.mpf((1 << bits) - value) / MP.mpf(1 << bits))
    return -MP.mpf(deficit) / 2**scale_bits - MP.log(exponential)


def random_words(rng: np.random.Generator, size: int) -> NDArray[np.uint64]:
    """Words of every magnitude, near both ends too."""
    words = rng.integers(0, 2**64, size, np.uint64) >> rng.integers(0, 64, size).astype(np.uint64)
    words[::3] = ~words[::3]
    ends = [*range(20), 4095, 4096, 4097]
    return np.concatenate([words, np.array([*ends, *(ONES - e for e in ends)], np.uint64)])


@pytest.mark.parametrize("scale_bits", [0, 10, 40, 63])
def test_float_bounds_enclose(scale_bits: int) -> None:
    """Half the radius already holds both ends of every word's cell, 2^-7 of it all rounding."""
    rng = np.random.default_rng(scale_bits)
    words = random_words(rng, 3000)
    deficits = random_words(rng, 3000)
    rng.shuffle(deficits)
    low, high = enclose(words.copy(), deficits, scale_bits, DEFAULT_BAND)
    for word, deficit, one, two in zip(
        words.tolist(), deficits.tolist(), low.tolist(), high.tolist(), strict=True
    ):
        if one == -np.inf:
            assert two == np.inf
            assert word == 0 or word >= 2**64 - 4096
            continue
        centre, radius = (MP.mpf(one) + MP.mpf(two)) / 2, (MP.mpf(two) - MP.mpf(one)) / 2
        for end in (word, word + 1):
            assert abs(key(end, 64, deficit, scale_bits) - centre) <= radius / 2
        if 2**46 < word < 2**64 - 2**20 and deficit >> scale_bits < 2:
            middle = key(2 * word + 1, 65, deficit, scale_bits)
            assert abs(middle - centre) <= radius / 2**7


def test_edge_words_are_unbounded() -> None:
    """Where a cell's key is infinite, or the float 1 - V would be zero or nearly so."""
    words = np.array([0, ONES, ONES - 4095, 1, ONES - 4096], np.uint64)
    low, high = enclose(words, np.zeros(5, np.uint64), 0, DEFAULT_BAND)
    assert np.isinf(low).tolist() == np.isinf(high).tolist() == [True] * 3 + [False] * 2


def test_band_scales_the_radius() -> None:
    """A wider band moves nothing but the bounds, in proportion."""
    words = random_words(np.random.default_rng(8), 1000)[:1000]
    deficits = np.arange(1000, dtype=np.uint64)
    bounds = [enclose(words.copy(), deficits, 3, band) for band in (2.0**-20, 2.0**-4)]
    finite = np.isfinite(bounds[0][0])
    narrow, wide = ((high - low)[finite] for low, high in bounds)
    np.testing.assert_allclose(wide, 2**16 * narrow, rtol=1e-6)


@pytest.mark.parametrize("bits", [64, 128, 192, 256])
def test_certified_bounds_enclose(bits: int) -> None:
    """They hold the keys at both ends of the cell and little more."""
    rng = np.random.default_rng(bits)
    precision = bits + 64
    unit = MP.mpf(2) ** precision
    words = random_words(rng, 200).tolist()
    deficits = random_words(rng, 200).tolist()
    low_parts = rng.integers(0, 2**64, len(words), np.uint64).tolist()
    for word, part, deficit in zip(words, low_parts, deficits, strict=True):
        value = (word << bits - 64) | (part if bits > 64 else 0)
        for value_, scale_bits in ((value, 63), (value >> bits // 2, 40)):
            low, high = certify(value_, bits, deficit, scale_bits, precision)
            for end, bound in ((value_ + 1, low), (value_, high)):
                exact = key(end, bits, deficit, scale_bits)
                if MP.isinf(exact):
                    assert abs(bound) == UNBOUNDED
                    continue
                # A logarithm's few units, magnified by 1 / E <= 2^bits / value.
                slack = 8 + 8 * MP.mpf(2) ** bits / end
                assert 0 <= (bound - exact * unit) * (1 if end == value_ else -1) <= slack


def test_unbounded_is_beyond_every_key() -> None:
    """A deficit of 2^64 with 320 fractional bits stays below it."""
    low, high = certify(1, 256, 2**64, 0, 320)
    assert -UNBOUNDED < low < high < UNBOUNDED


@pytest.mark.parametrize("precision", [80, 128, 320])
def test_log_encloses(precision: int) -> None:
    """low <= log(n / 2^s) 2^P <= high, two units apart at most."""
    rng = np.random.default_rng(6)
    numerators = [*range(1, 130), *(2**i + d for i in (64, 128, 256) for d in (-1, 0, 1))]
    numerators += [3 << i for i in range(60)]
    for size in range(1, 257):
        words = rng.integers(0, 2**64, 4, np.uint64).tolist()
        number = words[0] | words[1] << 64 | words[2] << 128 | words[3] << 192
        numerators.append((number >> 256 - size) | 1)
    for numerator in numerators:
        for shift in (0, 64, 256):
            low, high = log(numerator, shift, precision)
            exact = MP.log(MP.mpf(numerator) / MP.mpf(2) ** shift) * MP.mpf(2) ** precision
            assert low <= exact <= high
            assert high - low <= 2


def test_log_encloses_without_guard_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error bound itself is right: nothing rests on the 32 spare bits hiding it."""
    monkeypatch.setattr(certified_log, "_GUARD_BITS", 0)
    rng = np.random.default_rng(9)
    for precision in (20, 64, 65):
        for numerator in [1, 2, 3, 5, *rng.integers(1, 2**63, 500).tolist()]:
            for shift in (0, 1, 62, 64, 600):
                low, high = log(numerator, shift, precision)
                exact = MP.log(MP.mpf(numerator) / MP.mpf(2) ** shift) * MP.mpf(2) ** precision
                assert low <= exact <= high


@pytest.mark.parametrize("numerator", [0, -1])
def test_log_refuses(numerator: int) -> None:
    """No logarithm of what is not positive."""
    with pytest.raises(ValueError, match="positive"):
        log(numerator, 3, 64)
