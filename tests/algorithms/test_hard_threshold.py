"""The hard threshold on vectors and on coefficients of several classes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfit.algorithms.hard_threshold import (
    hard_threshold,
    largest_entries,
    largest_magnitude,
    support_of,
)

ENTRIES = st.one_of(st.floats(-5, 5), st.sampled_from([0.0, 1.0, -1.0, 1e150]))
MATRICES = st.integers(1, 4).flatmap(
    lambda k: st.lists(st.lists(ENTRIES, min_size=k, max_size=k), min_size=1, max_size=8)
)


@given(MATRICES, st.integers(1, 10))
def test_per_class_it_is_the_threshold_of_each_column(rows: list, s: int) -> None:
    """s entries for each class, the others zero, those kept unchanged."""
    theta = np.array(rows)
    kept = hard_threshold(theta, s)
    for column, result in zip(theta.T, kept.T, strict=True):
        assert np.array_equal(result, hard_threshold(column, s))
        assert np.count_nonzero(result) <= s
    assert largest_entries(theta, s, joint=False).sum() == theta.shape[1] * min(s, len(theta))


@given(MATRICES, st.integers(1, 10))
def test_jointly_it_keeps_whole_rows(rows: list, s: int) -> None:
    """s rows of largest l2 norm, in all classes; the others are zero."""
    theta = np.array(rows)
    keep = largest_entries(theta, s, joint=True)
    assert np.array_equal(keep.any(axis=1), keep.all(axis=1))
    assert keep.all(axis=1).sum() == min(s, len(theta))
    lengths = np.linalg.norm(theta, axis=1)
    inside, outside = lengths[keep[:, 0]], lengths[~keep[:, 0]]
    assert not len(outside) or inside.min() >= outside.max()
    assert np.array_equal(hard_threshold(theta, s, joint=True), np.where(keep, theta, 0.0))


@given(MATRICES, st.integers(1, 10), st.booleans())
def test_it_is_idempotent(rows: list, s: int, joint: bool) -> None:
    """A sparse model passes it unchanged."""
    once = hard_threshold(np.array(rows), s, joint=joint)
    assert np.array_equal(hard_threshold(once, s, joint=joint), once)


@given(st.lists(ENTRIES, min_size=1, max_size=8), st.integers(1, 10))
def test_of_one_class_both_modes_agree(values: list[float], s: int) -> None:
    """And are the threshold of the vector."""
    vector = np.array(values)
    expected = hard_threshold(vector, s)
    for joint in (False, True):
        assert np.array_equal(hard_threshold(vector[:, None], s, joint=joint)[:, 0], expected)


def test_ties_go_to_the_lower_index() -> None:
    """The result is a function of the coefficients alone."""
    assert largest_magnitude(np.array([1.0, -2.0, 2.0, 2.0]), 2).tolist() == [1, 2]
    theta = np.array([[0.0, 3.0], [3.0, 0.0], [-3.0, 0.0]])
    assert largest_entries(theta, 2, joint=True).any(axis=1).tolist() == [True, True, False]


@pytest.mark.parametrize("k", [0, 3])
def test_the_support_is_where_any_class_has_an_entry(k: int) -> None:
    """Of a vector its non-zeros; of a matrix the rows that are not all zero."""
    theta = np.zeros((5, k) if k else 5)
    theta[3] = 1.0
    if k:
        theta[1, k - 1] = -1.0
    assert support_of(theta).tolist() == ([1, 3] if k else [3])
