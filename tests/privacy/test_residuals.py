"""The integers that multiply the records: bounded in integers, whatever the floats before."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfit.privacy.residuals import residual_integers

NUMBERS = st.one_of(
    st.floats(),
    st.floats(-2.0, 2.0),
    st.sampled_from([0.0, 1e-200, -1e-200, 5e-324, 1e308, -1e308, math.inf, -math.inf, math.nan]),
)
CLIPS = st.one_of(
    st.floats(0.01, 2.0), st.sampled_from([5e-324, 1e-310, 1e-300, 1e-9, 1e9, 1e300, 1.7e308])
)
LIMITS = st.one_of(st.integers(1, 2**24), st.sampled_from([2**31, 2**32, 2**33 + 7, 2**40]))
SHARES = st.one_of(st.floats(0.0, 1.0), st.floats(0.0, 3.0))


@st.composite
def asked(draw: st.DrawFn) -> tuple:
    """Arguments of any kind: one column or k, one limit or one for each record."""
    n, k = draw(st.integers(1, 4)), draw(st.integers(0, 7))
    length = n * max(k, 1)
    residual = np.array(draw(st.lists(NUMBERS, min_size=length, max_size=length)))
    if k:
        residual = residual.reshape(n, k)
    limits: object = draw(LIMITS)
    if draw(st.booleans()):
        limits = np.array(draw(st.lists(LIMITS, min_size=n, max_size=n)), np.int64)
    shares = None
    if draw(st.booleans()):
        shares = np.array(draw(st.lists(SHARES, min_size=n, max_size=n)))
    return residual, draw(CLIPS), limits, shares


@settings(max_examples=600)
@given(asked())
def test_no_record_exceeds_its_limit(args: tuple) -> None:
    """The l2 norm of a record's integers is at most its limit, for any floats, in exact integers.

    Limits above the root of 2^63 would make sums of squares wrap around; weights above their
    maximum would make a record count too much.
    """
    residual, clip, limits, shares = args
    integers = residual_integers(residual, clip, limits, shares)
    assert integers.shape == residual.shape
    assert integers.dtype == np.int64
    rows = integers.reshape(len(residual), -1).tolist()
    bounds = np.broadcast_to(limits, len(residual)).tolist()
    for row, bound in zip(rows, bounds, strict=True):
        assert sum(value * value for value in row) <= bound * bound


@given(asked())
def test_each_record_is_computed_by_itself(args: tuple) -> None:
    """A record's integers depend neither on the other records nor on its place among them."""
    residual, clip, limits, shares = args
    whole = residual_integers(residual, clip, limits, shares)
    for i in range(len(residual)):
        one = slice(i, i + 1)
        limit = limits[one] if isinstance(limits, np.ndarray) else limits
        share = None if shares is None else shares[one]
        assert np.array_equal(residual_integers(residual[one], clip, limit, share), whole[one])


@pytest.mark.parametrize("k", range(1, 8))
def test_they_are_the_clipped_residuals_in_units(k: int) -> None:
    """Scaled back they are ``share r min(1, tau / |r|)``, to one unit and a shrinking of 2^-18."""
    rng = np.random.default_rng(k)
    residual, shares = rng.standard_normal((500, k)), rng.random(500)
    integers = residual_integers(residual, 0.7, 1 << 20, shares)
    length = np.linalg.norm(residual, axis=1)
    exact = residual * (shares * np.minimum(1.0, 0.7 / length))[:, None] / 0.7 * 2**20
    assert np.all(np.abs(integers - exact) <= 1.0 + 4.0)


def test_one_column_of_classes_is_a_residual() -> None:
    """k = 1 agrees with no classes to one unit."""
    residual = np.random.default_rng(0).standard_normal(500)
    plain = residual_integers(residual, 0.3, 1 << 20, None)
    column = residual_integers(residual[:, None], 0.3, 1 << 20, None)
    assert np.max(np.abs(plain - column[:, 0])) <= 1


@pytest.mark.parametrize("shape", [(5,), (5, 3)])
def test_a_weight_of_zero_is_no_share(shape: tuple[int, ...]) -> None:
    """A record of weight zero adds nothing to any sum."""
    integers = residual_integers(np.full(shape, 9.0), 0.1, 1 << 20, np.zeros(5))
    assert not integers.any()
