"""The shipped integer tables give the normal law exactly (no chance involved)."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import ctx_mp

from dpfit.privacy.mechanisms.certified_exp import exp_neg, gaussian_heights, sqrt_two_pi
from dpfit.privacy.mechanisms.gaussian import StandardNormal
from dpfit.privacy.mechanisms.strip_tables import (
    CELL_BITS,
    STRIP_BITS,
    STRIP_LIMIT,
    certified_strips,
    strip_tables,
)

TABLES = strip_tables(StandardNormal())


def private_context(precision: int) -> ctx_mp.MPContext:
    """A context of its own: the global one may be changed by any module."""
    context = ctx_mp.MPContext()
    context.prec = precision
    return context


MP = private_context(400)
H = MP.mpf(2) ** -STRIP_BITS
MASS = MP.sqrt(2 * MP.pi)


def height(strip: int) -> ctx_mp.MPContext.mpf:
    return MP.exp(-((strip * H) ** 2) / 2)


def strip_probability(strip: int) -> ctx_mp.MPContext.mpf:
    """Probability that N falls in strip j on one side."""
    root = MP.sqrt(2)
    return (MP.erfc(strip * H / root) - MP.erfc((strip + 1) * H / root)) / 2


def rectangle(strip: int) -> ctx_mp.MPContext.mpf:
    count = TABLES.counts[strip] if strip < len(TABLES.counts) else 0
    return count * MASS / (2**CELL_BITS * H)


def test_law_of_every_strip_from_the_shipped_tables() -> None:
    """n_j/2^16 + R/2^16 P(propose j) P(accept | j)/Z = Phi((j+1) h) - Phi(j h) to 2^-69.

    The residue is the 64-bit rounding of the thresholds, which the tie rule removes.
    """
    strips, sizes = np.unique(TABLES.cells[: TABLES.n_fast], return_counts=True)
    fast = dict(zip(strips.tolist(), sizes.tolist(), strict=True))
    starts = [0, *TABLES.thresholds.tolist()]
    joint = []
    for j in range(len(starts) - 1):
        assert rectangle(j) <= height(j + 1)
        above = strip_probability(j) * MASS / H - rectangle(j)
        accept = above / (height(j) - rectangle(j))
        joint.append(MP.mpf(starts[j + 1] - starts[j]) / 2**64 * accept)
    # The cell of the top threshold is shared by all further strips; 2^-64 of proposals.
    normaliser = sum(joint)
    remainder = MP.mpf(2**CELL_BITS - TABLES.n_fast) / 2**CELL_BITS
    for j, share in enumerate(joint):
        expected = strip_probability(j)
        for side in (j, -1 - j):
            cells = MP.mpf(fast.get(side, 0)) / 2**CELL_BITS
            assert abs(cells + remainder * share / normaliser / 2 - expected) < MP.mpf(2) ** -69


def test_cell_counts_are_the_floors() -> None:
    """n_j = floor(2^16 h f((j+1) h)) up to the last that is not zero."""
    expected = [int(MP.floor(2**CELL_BITS * H * height(j + 1) / MASS)) for j in range(300)]
    assert [n for n in expected if n] == list(TABLES.counts)
    assert 2 * sum(expected) == TABLES.n_fast


def test_thresholds_are_the_floors() -> None:
    """T_j = floor(2^64 sum_{i<=j} M_i / sum M), strictly below 2^64 - 1 until the last."""
    rests = [height(j) - rectangle(j) for j in range(2000)]
    total = sum(rests)
    cumulative = MP.mpf(0)
    for j, threshold in enumerate(TABLES.thresholds.tolist()):
        cumulative += rests[j]
        assert int(MP.floor(cumulative / total * 2**64)) == threshold
    assert TABLES.thresholds[-1] == 2**64 - 1
    assert (TABLES.thresholds[:-1] < TABLES.thresholds[-1]).all()


def test_shoulders_are_correctly_rounded() -> None:
    """Float a_j differs from c_j / g(j h) by at most half a unit in the last place."""
    for j, shipped in enumerate(TABLES.shoulder[: len(TABLES.counts)].tolist()):
        exact = rectangle(j) / height(j)
        assert abs(shipped - exact) <= exact * MP.mpf(2) ** -53
    assert not TABLES.shoulder[len(TABLES.counts) :].any()


def test_guided_proposal_is_binary_search() -> None:
    """The three look-ups count the thresholds <= word, at and around every threshold too."""
    rng = np.random.default_rng(5)
    near = np.concatenate([TABLES.thresholds + np.uint64(d) for d in (0, 1)] + [TABLES.thresholds])
    near = np.concatenate([near, TABLES.thresholds - np.uint64(1)])
    words = np.concatenate([near, rng.integers(0, 2**64, 100_000, np.uint64)])
    words = np.append(words, np.uint64(2**64 - 1))
    expected = np.searchsorted(TABLES.thresholds, words, side="right")
    np.testing.assert_array_equal(expected, TABLES.propose(words))
    np.testing.assert_array_equal(
        (expected > 0) & (TABLES.thresholds[np.maximum(expected, 1) - 1] == words),
        TABLES.below[expected] == words,
    )


@pytest.mark.parametrize("precision", [128, 192, 256, 320])
def test_certified_strips_enclose_the_truth(precision: int) -> None:
    """Heights, mass, tail and totals contain the true values and are tight to 2^24 units."""
    strips = certified_strips(StandardNormal(), TABLES.counts, precision)
    unit = MP.mpf(2) ** precision
    assert len(strips.heights) < STRIP_LIMIT
    for j, bounds in enumerate(strips.heights):
        assert bounds.low <= height(j) * unit <= bounds.high
    assert strips.mass.low <= MASS * unit <= strips.mass.high
    tail = sum(height(j) for j in range(len(strips.heights), 2200)) * unit
    assert tail <= strips.tail
    total = sum(height(j) - rectangle(j) for j in range(2200)) * unit
    assert strips.total.low <= total <= strips.total.high
    assert strips.total.high - strips.total.low < 2**24


@pytest.mark.parametrize("precision", [80, 200, 320])
def test_exp_neg_encloses_exp(precision: int) -> None:
    """low <= exp(-a) 2^P <= high, and at most a few units apart."""
    rng = np.random.default_rng(6)
    numerators = [0, 1, 2**64 - 1, 2**64, *map(int, rng.integers(0, 2**64, 300, np.uint64))]
    for numerator in numerators:
        low, high = exp_neg(numerator, 64, precision)
        exact = MP.exp(-MP.mpf(numerator) / 2**64) * MP.mpf(2) ** precision
        assert low <= exact <= high
        assert high - low <= 3


def test_exp_neg_refuses_large_arguments() -> None:
    """The error bound holds on [0, 1] only."""
    with pytest.raises(ValueError, match="outside"):
        exp_neg(5, 2, 64)


def test_constants_enclose() -> None:
    """sqrt(2 pi) and the first heights, at a precision no table uses."""
    low, high = sqrt_two_pi(333)
    assert low <= MASS * MP.mpf(2) ** 333 <= high
    assert high - low <= 3
    assert gaussian_heights(STRIP_BITS, 100)[0] == (2**100, 2**100)
