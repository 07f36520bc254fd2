"""DP-IGHT and its default rule."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfit.algorithms.default_rule import PublicScale
from dpfit.algorithms.dp_ight import DpIght, default_rule
from dpfit.algorithms.hard_threshold import hard_threshold
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.curator import Point


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40), st.integers(1, 50))
def test_hard_threshold_keeps_the_largest(values: list[float], s: int) -> None:
    """At most s survive, unchanged, and none that fell is larger than one that stayed."""
    vector = np.array(values)
    kept = hard_threshold(vector, s)
    stayed = kept != 0.0
    assert np.count_nonzero(stayed) <= s
    assert np.array_equal(kept[stayed], vector[stayed])
    if np.count_nonzero(vector) > s:
        assert np.min(np.abs(vector[stayed])) >= np.max(np.abs(vector[~stayed]))


def test_hard_threshold_breaks_ties_by_index() -> None:
    """Of equal magnitudes the lower index stays, so the result is a function of the vector."""
    assert hard_threshold(np.array([2.0, -2.0, 2.0, 1.0]), 2).tolist() == [2.0, -2.0, 0.0, 0.0]


class _Quadratic:
    """A curator without data: the gradient of |theta - truth|^2 / 2."""

    def __init__(self, truth: np.ndarray) -> None:
        self.truth = truth
        self.asked = 0

    n_features = 6

    def zero_point(self, offset: float) -> Point:
        return Point(np.zeros(6), 0.0, offset)

    def gradient(self, label: str, point: Point, *, clip: float) -> Point:
        self.asked += 1
        return Point(point.coefficients - self.truth, point.intercept - 3.0)


def test_it_asks_what_it_charged_and_finds_a_sparse_truth() -> None:
    """T gradients are asked, the s largest coordinates are found, the intercept is kept."""
    truth = np.array([0.0, 5.0, 0.0, -4.0, 0.1, 0.0])
    curator = _Quadratic(truth)
    seen: list[int] = []
    outcome = DpIght(2, 25, 0.5, 1.0).run(curator, seen.append)
    assert curator.asked == 25
    assert seen == list(range(26))
    assert outcome.columns.tolist() == [1, 3]
    assert outcome.values == pytest.approx([5, -4], abs=1e-5)
    assert outcome.intercept == pytest.approx(3.0, abs=1e-5)


def scale(**changes: object) -> PublicScale:
    facts = {
        "n_rows": 11_314,
        "n_features": 125_552,
        "loss": "logistic",
        "row_norm": 1.0,
        "squared_mu": Fraction(0.448) ** 2,
        "adjacency": Adjacency.REPLACE_ONE,
    }
    return PublicScale(**{**facts, **changes})


def test_the_default_rule_is_the_measured_one() -> None:
    """Wide data: T = clip(round(n mu / 700), 3, 10), E = min(n mu / 2T, 300); narrow: 30, 30."""
    wide = default_rule(scale(), 500)
    assert (wide.iterations, wide.residual_clip) == (7, 0.25)
    assert wide.step_size * 0.25 == pytest.approx(300)
    narrow = default_rule(scale(n_features=123), 50)
    assert (narrow.iterations, narrow.step_size * 0.25) == (30, 30.0)


def test_add_remove_with_half_the_budget_is_replace_one() -> None:
    """Zeroing moves a sum half as far, so mu under add-remove is worth 2 mu under replace-one."""
    replace_one = scale(squared_mu=Fraction(4, 100)).rows_times_mu
    add_remove = scale(squared_mu=Fraction(1, 100), adjacency=Adjacency.ADD_REMOVE).rows_times_mu
    assert replace_one == pytest.approx(add_remove)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("norm", [0.01, 1.0, 100.0])
def test_the_step_follows_the_row_norm(loss: str, norm: float) -> None:
    """theta scales as 1/K and its gradient as K, so the step scales as 1/K^2."""
    unit = default_rule(scale(loss=loss), 10)
    scaled = default_rule(scale(loss=loss, row_norm=norm), 10)
    assert scaled.step_size == pytest.approx(unit.step_size / norm**2)
