"""What a user contributes is integers within a bound that is checked last."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfit.design.fixed_point import enforce_norm
from dpfit.design.user_integers import bounded_numbers, bounded_rows, bounded_vectors

VALUES = st.one_of(
    st.floats(-1e3, 1e3), st.sampled_from([0.0, 1.0, -1.0, 1e150, -1e150, 5e-324, 1e-200, np.nan])
)


@given(
    st.lists(st.tuples(st.integers(0, 2), VALUES), min_size=1, max_size=20),
    st.sampled_from([1e-3, 1.0, 7.0]),
    st.sampled_from([1, 5, 1 << 16, 1 << 26]),
)
def test_a_users_vector_stays_within_its_bound(rows: list, limit: float, bound: int) -> None:
    """The squared integer norm of each user is at most the squared bound."""
    users = np.array([user for user, _ in rows])
    values = np.array([value for _, value in rows])
    integers = bounded_vectors(values, users, 3, limit=limit, bound=bound)
    for user in range(3):
        assert sum(int(v) ** 2 for v in integers[users == user]) <= bound**2


@given(st.lists(st.integers(-5000, 5000), min_size=1, max_size=9), st.integers(1, 9000))
def test_the_last_check_holds_for_any_integers(values: list[int], bound: int) -> None:
    """Whatever comes in within the bound entry by entry leaves within it as a vector."""
    entries = np.clip(np.array(values, np.float64), -bound, bound)
    kept = enforce_norm(entries, np.zeros(len(values), np.int64), 1, float(bound))
    assert sum(int(v) ** 2 for v in kept) <= bound**2


def test_long_vectors_are_shrunk_and_not_dropped() -> None:
    """A user with thousands of ratings contributes the whole bound, in the same direction."""
    values = np.random.default_rng(0).standard_normal(20_000) * 100.0
    integers = bounded_vectors(values, np.zeros(20_000, np.int64), 1, limit=3.0, bound=1 << 26)
    norm = np.linalg.norm(integers.astype(float))
    assert norm == pytest.approx(2.0**26, rel=1e-4)
    assert values @ integers / np.linalg.norm(values) / norm == pytest.approx(1.0)


def test_short_vectors_keep_their_length() -> None:
    """Below the limit nothing is scaled: the limit becomes the bound."""
    integers = bounded_vectors(
        np.array([1.5, -0.75]), np.zeros(2, np.int64), 1, limit=3.0, bound=64
    )
    assert integers.tolist() == [32, -16]


@given(st.lists(st.lists(VALUES, min_size=3, max_size=3), min_size=1, max_size=4))
def test_rows_stay_within_their_bound(rows: list[list[float]]) -> None:
    """So do rows of a table."""
    for row in bounded_rows(np.array(rows), bound=1 << 15).tolist():
        assert sum(v**2 for v in row) <= 1 << 30


@given(st.lists(VALUES, min_size=1, max_size=4), st.sampled_from([0.0, -1.0]))
def test_numbers_stay_within_their_bounds(values: list[float], lowest: float) -> None:
    """From the lowest number to one, in units of the bound."""
    integers = bounded_numbers(np.array(values), lowest=lowest, bound=1000)
    assert all(lowest * 1000 <= v <= 1000 for v in integers.tolist())
