"""The shipped integer tables give each law exactly (no chance involved)."""

from __future__ import annotations

import numpy as np
import pytest

from dpfit.privacy.mechanisms.certified_exp import exp_neg
from dpfit.privacy.mechanisms.strip_tables import (
    CELL_BITS,
    STRIP_BITS,
    STRIP_LIMIT,
    certified_strips,
)
from strip_laws import MP, Case, each_law


@each_law
def test_law_of_every_strip_from_the_shipped_tables(case: Case) -> None:
    """n_j/2^16 + R/2^16 P(propose j) P(accept | j)/Z = F((j+1) h) - F(j h) to 2^-69.

    The residue is the 64-bit rounding of the thresholds, which the tie rule removes.
    """
    tables = case.tables
    strips, sizes = np.unique(tables.cells[: tables.n_fast], return_counts=True)
    fast = dict(zip(strips.tolist(), sizes.tolist(), strict=True))
    starts = [0, *tables.thresholds.tolist()]
    joint = []
    for j in range(len(starts) - 1):
        assert case.rectangle(j) <= case.height(j + 1)
        above = case.probability(j) * case.mass * 2**STRIP_BITS - case.rectangle(j)
        joint.append(MP.mpf(starts[j + 1] - starts[j]) / 2**64 * above / case.rest(j))
    # The cell of the top threshold is shared by all further strips; 2^-64 of proposals.
    normaliser = sum(joint)
    remainder = MP.mpf(2**CELL_BITS - tables.n_fast) / 2**CELL_BITS
    for j, share in enumerate(joint):
        expected = case.probability(j)
        for side in (j, -1 - j):
            cells = MP.mpf(fast.get(side, 0)) / 2**CELL_BITS
            assert abs(cells + remainder * share / normaliser / 2 - expected) < MP.mpf(2) ** -69


@each_law
def test_cell_counts_are_the_floors(case: Case) -> None:
    """n_j = floor(2^16 h f((j+1) h)) up to the last that is not zero, where the table ends."""
    unit = MP.mpf(2) ** (CELL_BITS - STRIP_BITS) / case.mass
    expected = [int(MP.floor(unit * case.height(j + 1))) for j in range(600)]
    assert [n for n in expected if n] == list(case.tables.counts)
    assert 2 * sum(expected) == case.tables.n_fast
    assert len(case.tables.counts) == case.table_end * 2**STRIP_BITS


@each_law
def test_thresholds_are_the_floors(case: Case) -> None:
    """T_j = floor(2^64 sum_{i<=j} M_i / sum M), strictly below 2^64 - 1 until the last."""
    thresholds = case.tables.thresholds
    assert [digits >> 256 for digits in case.cumulative[: len(thresholds)]] == thresholds.tolist()
    assert thresholds[-1] == 2**64 - 1
    assert (thresholds[:-1] < thresholds[-1]).all()


@each_law
def test_shoulders_are_correctly_rounded(case: Case) -> None:
    """Float a_j differs from c_j / g(j h) by at most half a unit in the last place."""
    n_rectangles = len(case.tables.counts)
    for j, shipped in enumerate(case.tables.shoulder[:n_rectangles].tolist()):
        exact = case.rectangle(j) / case.height(j)
        assert abs(shipped - exact) <= exact * MP.mpf(2) ** -53
    assert not case.tables.shoulder[n_rectangles:].any()


@each_law
def test_guided_proposal_is_binary_search(case: Case) -> None:
    """The look-ups count the thresholds <= word, at and around every one; some are equal."""
    thresholds = case.tables.thresholds
    assert (thresholds[1:] == thresholds[:-1]).any()
    rng = np.random.default_rng(5)
    one = np.uint64(1)
    words = np.concatenate(
        [thresholds - one, thresholds, thresholds + one, rng.integers(0, 2**64, 100_000, np.uint64)]
    )
    expected = np.searchsorted(thresholds, words, side="right")
    np.testing.assert_array_equal(expected, case.tables.propose(words))
    tied = (expected > 0) & (thresholds[np.maximum(expected, 1) - 1] == words)
    np.testing.assert_array_equal(tied, case.tables.below[expected] == words)


@each_law
@pytest.mark.parametrize("precision", [128, 192, 256, 320])
def test_certified_strips_enclose_the_truth(case: Case, precision: int) -> None:
    """Heights, mass, tail and totals contain the true values and are tight to 2^24 units."""
    strips = certified_strips(case.law, case.tables.counts, precision)
    unit = MP.mpf(2) ** precision
    assert len(strips.heights) < STRIP_LIMIT
    for j, bounds in enumerate(strips.heights):
        assert bounds.low <= case.height(j) * unit <= bounds.high
    assert strips.mass.low <= case.mass * unit <= strips.mass.high
    assert strips.mass.high - strips.mass.low <= case.mass_width
    assert case.heights_from(len(strips.heights)) * unit <= strips.tail
    assert strips.total.low <= case.total * unit <= strips.total.high
    assert strips.total.high - strips.total.low < 2**24


@each_law
def test_value_of_the_last_strip_fits(case: Case) -> None:
    """The farthest strip 320 bits can name is below 2^9: with s = 54 its values fit 64 bits."""
    farthest = len(certified_strips(case.law, case.tables.counts, 320).heights)
    assert farthest < 2 ** (9 + STRIP_BITS)


@each_law
def test_first_heights_and_mass_enclose(case: Case) -> None:
    """At precisions no table uses: within so many units of the truth; g(0) = 1 exactly."""
    low, high = case.law.mass(333)
    assert low <= case.mass * MP.mpf(2) ** 333 <= high
    assert high - low <= case.mass_width
    heights = case.law.heights(100)
    for j, (low, high) in enumerate(heights[:100]):
        assert low <= case.height(j) * MP.mpf(2) ** 100 <= high
        assert high - low <= case.height_width(j)
    assert heights[-1].low == 0 < heights[-2].low


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
