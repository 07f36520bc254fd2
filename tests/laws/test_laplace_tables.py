"""The shipped integer tables give the Laplace law exactly (no chance involved)."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import ctx_mp

from dpfit.privacy.mechanisms.certified_exp import exponential_heights
from dpfit.privacy.mechanisms.laplace import StandardLaplace
from dpfit.privacy.mechanisms.strip_tables import (
    CELL_BITS,
    STRIP_BITS,
    STRIP_LIMIT,
    certified_strips,
    strip_tables,
)

LAW = StandardLaplace()
TABLES = strip_tables(LAW)
MP = ctx_mp.MPContext()
MP.prec = 400
H = MP.mpf(2) ** -STRIP_BITS
RATIO = MP.exp(-H)
# Of all M_j: the sum of g(j h), less the rectangles.
TOTAL = 1 / (1 - RATIO) - MP.mpf(sum(TABLES.counts)) * 2 / (2**CELL_BITS * H)


def height(strip: int) -> ctx_mp.MPContext.mpf:
    return MP.exp(-strip * H)


def strip_probability(strip: int) -> ctx_mp.MPContext.mpf:
    """Probability that X falls in strip j on one side."""
    return (height(strip) - height(strip + 1)) / 2


def rectangle(strip: int) -> ctx_mp.MPContext.mpf:
    count = TABLES.counts[strip] if strip < len(TABLES.counts) else 0
    return MP.mpf(count) * 2 / (2**CELL_BITS * H)


def test_law_of_every_strip_from_the_shipped_tables() -> None:
    """n_j/2^16 + R/2^16 P(propose j) P(accept | j)/Z = (e^{-j h} - e^{-(j+1) h})/2 to 2^-69.

    The residue is the 64-bit rounding of the thresholds, which the tie rule removes.
    """
    strips, sizes = np.unique(TABLES.cells[: TABLES.n_fast], return_counts=True)
    fast = dict(zip(strips.tolist(), sizes.tolist(), strict=True))
    starts = [0, *TABLES.thresholds.tolist()]
    joint = []
    for j in range(len(starts) - 1):
        assert rectangle(j) <= height(j + 1)
        above = strip_probability(j) * 2 / H - rectangle(j)
        accept = above / (height(j) - rectangle(j))
        joint.append(MP.mpf(starts[j + 1] - starts[j]) / 2**64 * accept)
    normaliser = sum(joint)
    remainder = MP.mpf(2**CELL_BITS - TABLES.n_fast) / 2**CELL_BITS
    for j, share in enumerate(joint):
        expected = strip_probability(j)
        for side in (j, -1 - j):
            cells = MP.mpf(fast.get(side, 0)) / 2**CELL_BITS
            assert abs(cells + remainder * share / normaliser / 2 - expected) < MP.mpf(2) ** -69


def test_cell_counts_are_the_floors() -> None:
    """n_j = floor(2^16 h f((j+1) h)) up to the last that is not zero."""
    expected = [int(MP.floor(2**CELL_BITS * H * height(j + 1) / 2)) for j in range(600)]
    assert [n for n in expected if n] == list(TABLES.counts)
    assert 2 * sum(expected) == TABLES.n_fast
    assert len(TABLES.counts) / 2**STRIP_BITS < 6.25


def test_thresholds_are_the_floors() -> None:
    """T_j = floor(2^64 sum_{i<=j} M_i / sum M), strictly below 2^64 - 1 until the last."""
    cumulative = MP.mpf(0)
    for j, threshold in enumerate(TABLES.thresholds.tolist()):
        cumulative += height(j) - rectangle(j)
        assert int(MP.floor(cumulative / TOTAL * 2**64)) == threshold
    assert TABLES.thresholds[-1] == 2**64 - 1
    assert (TABLES.thresholds[:-1] < TABLES.thresholds[-1]).all()


def test_shoulders_are_correctly_rounded() -> None:
    """Float a_j differs from c_j / g(j h) by at most half a unit in the last place."""
    for j, shipped in enumerate(TABLES.shoulder[: len(TABLES.counts)].tolist()):
        exact = rectangle(j) / height(j)
        assert abs(shipped - exact) <= exact * MP.mpf(2) ** -53
    assert not TABLES.shoulder[len(TABLES.counts) :].any()


def test_guided_proposal_is_binary_search() -> None:
    """Thresholds equal to each other, which the normal law has none of, are counted as well."""
    thresholds = TABLES.thresholds
    assert (thresholds[1:] == thresholds[:-1]).any()
    rng = np.random.default_rng(5)
    one = np.uint64(1)
    words = np.concatenate(
        [thresholds - one, thresholds, thresholds + one, rng.integers(0, 2**64, 100_000, np.uint64)]
    )
    expected = np.searchsorted(thresholds, words, side="right")
    np.testing.assert_array_equal(expected, TABLES.propose(words))
    tied = (expected > 0) & (thresholds[np.maximum(expected, 1) - 1] == words)
    np.testing.assert_array_equal(tied, TABLES.below[expected] == words)


@pytest.mark.parametrize("precision", [128, 192, 256, 320])
def test_certified_strips_enclose_the_truth(precision: int) -> None:
    """Heights, mass, tail and totals contain the true values and are tight to 2^24 units."""
    strips = certified_strips(LAW, TABLES.counts, precision)
    unit = MP.mpf(2) ** precision
    assert len(strips.heights) < STRIP_LIMIT
    true_height = unit
    for bounds in strips.heights:
        assert bounds.low <= true_height <= bounds.high
        true_height *= RATIO
    assert strips.mass.low == strips.mass.high == 2 * unit
    assert true_height / (1 - RATIO) <= strips.tail
    assert strips.total.low <= TOTAL * unit <= strips.total.high
    assert strips.total.high - strips.total.low < 2**24


def test_value_of_the_last_strip_fits() -> None:
    """The farthest strip 320 bits can name is below 2^9: with s = 54 its values fit 64 bits."""
    assert len(certified_strips(LAW, TABLES.counts, 320).heights) < 2 ** (9 + STRIP_BITS)


def test_first_heights_enclose() -> None:
    """At a precision no table uses: 1, then exp(-h) within 3 units and one unit more a step."""
    heights = exponential_heights(STRIP_BITS, 100)
    assert heights[0] == (2**100, 2**100)
    for j, (low, high) in enumerate(heights[:100]):
        assert low <= height(j) * MP.mpf(2) ** 100 <= high
        assert high - low <= 4 * j
    assert heights[-1].low == 0 < heights[-2].low
