"""DP-IGHT and its default rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfit.algorithms.dp_ight import DpIght, default_rule, within_ball
from dpfit.algorithms.hard_threshold import hard_threshold
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.point import Point
from text_scale import text_scale


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
        self.points: list[Point] = []

    n_features = 6

    def zero_point(self, offset: float) -> Point:
        return Point(np.zeros(6), 0.0, offset)

    def gradient(self, label: str, point: Point, *, clip: float) -> Point:
        self.asked += 1
        self.points.append(point)
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


TRUTH = np.array([1.0, 5.0, -2.0, -4.0, 0.1, 3.0])


def supports(algorithm: DpIght) -> list[int]:
    """Sizes of the supports after each step."""
    curator = _Quadratic(TRUTH)
    outcome = algorithm.run(curator, lambda done: None)
    on_the_way = [np.count_nonzero(point.coefficients) for point in curator.points[1:]]
    return [*on_the_way, len(outcome.columns)]


@pytest.mark.parametrize(
    ("threshold", "steps", "expected"),
    [
        ("each", 5, [2, 2, 2, 2, 2]),
        ("final", 5, [6, 6, 6, 6, 2]),
        ("decreasing", 5, [6, 6, 4, 3, 2]),
        ("decreasing", 4, [6, 6, 3, 2]),
        ("decreasing", 1, [2]),
        ("final", 1, [2]),
    ],
)
def test_supports_follow_the_threshold(threshold: str, steps: int, expected: list[int]) -> None:
    """s at each step; d until the last; or d for half of the steps, then 6 (2/6)^(j/r)."""
    assert supports(DpIght(2, steps, 0.5, 1.0, threshold)) == expected


@given(
    st.integers(1, 200),
    st.integers(1, 10**6),
    st.integers(0, 10**6),
    st.sampled_from(["each", "decreasing", "final"]),
)
def test_sparsities_never_rise_and_end_at_s(s: int, steps: int, more: int, threshold: str) -> None:
    """Whatever the sizes, they lie between s and d, do not rise, and the last is s."""
    steps = min(steps, 1000)
    kept = DpIght(s, steps, 1.0, 1.0, threshold).sparsities(s + more)
    assert len(kept) == steps
    assert kept[-1] == s
    assert np.all((s <= kept) & (kept <= s + more))
    assert np.all(np.diff(kept) <= 0)
    if threshold == "decreasing":
        assert np.all(kept[: steps // 2] == s + more)


def test_a_projected_model_keeps_its_norm_and_direction() -> None:
    """|(theta, intercept)| <= C at every step, and the direction of the model stays."""
    curator = _Quadratic(TRUTH)
    outcome = DpIght(2, 9, 0.5, 1.0, projection_radius=1.5).run(curator, lambda done: None)
    for point in curator.points:
        assert np.hypot(np.linalg.norm(point.coefficients), point.intercept) <= 1.5 * (1 + 1e-12)
    assert np.hypot(np.linalg.norm(outcome.values), outcome.intercept) == pytest.approx(1.5)
    inside, outside = Point(np.array([0.3, 0.4]), 0.0), Point(np.array([3.0, 4.0]), 12.0)
    assert within_ball(inside, 0.5) is inside
    assert within_ball(outside, None) is outside
    scaled = within_ball(outside, 1.3)
    assert [*scaled.coefficients, scaled.intercept] == pytest.approx([0.3, 0.4, 1.2])


def test_no_variant_asks_more() -> None:
    """The planned releases, and so the charge, do not depend on threshold or projection."""
    published = DpIght(2, 7, 0.5, 1.0)
    for threshold in ("decreasing", "final"):
        variant = DpIght(2, 7, 0.5, 1.0, threshold, 3.0)
        assert variant.planned() == published.planned()
        curator = _Quadratic(TRUTH)
        variant.run(curator, lambda done: None)
        assert curator.asked == 7


def test_the_default_rule_is_the_measured_one() -> None:
    """Wide data: T = clip(round(n mu / 700), 3, 10), E = min(n mu / 2T, 300); narrow: 30, 30."""
    wide = default_rule(text_scale(), 500)
    assert (wide.iterations, wide.residual_clip) == (7, 0.25)
    assert wide.step_size * 0.25 == pytest.approx(300)
    narrow = default_rule(text_scale(n_features=123), 50)
    assert (narrow.iterations, narrow.step_size * 0.25) == (30, 30.0)


def test_add_remove_with_half_the_budget_is_replace_one() -> None:
    """Zeroing moves a sum half as far, so mu under add-remove is worth 2 mu under replace-one."""
    replace_one = text_scale(budget=Budget(mu=0.2)).rows_times_mu
    add_remove = text_scale(budget=Budget(mu=0.1), adjacency=Adjacency.ADD_REMOVE).rows_times_mu
    assert replace_one == pytest.approx(add_remove)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("norm", [0.01, 1.0, 100.0])
def test_the_step_follows_the_row_norm(loss: str, norm: float) -> None:
    """theta scales as 1/K and its gradient as K, so the step scales as 1/K^2."""
    unit = default_rule(text_scale(loss=loss), 10)
    scaled = default_rule(text_scale(loss=loss, row_norm=norm), 10)
    assert scaled.step_size == pytest.approx(unit.step_size / norm**2)


class _Rates:
    """A curator that tells a mean count and a mean exposure."""

    def target_and_exposure_means(self, label: str) -> tuple[float, float]:
        return 0.02, 0.5

    def noise_scale(self, label: str) -> float:
        return 1e-6

    def zero_point(self, offset: float) -> Point:
        return Point(np.zeros(3), 0.0, offset)


@pytest.mark.parametrize(("step_size", "expected"), [(1.0, 1.0), (1e9, 1.8 / 0.08)])
def test_a_step_on_counts_is_no_longer_than_the_released_rate_allows(
    step_size: float, expected: float
) -> None:
    """The curvature of a rate is the rate, taken as up to four times its mean."""
    settings = DpIght(2, 5, step_size, 0.5, contraction_of_rates=1.8)
    start, eta = settings.start(_Rates())
    assert eta == pytest.approx(expected)
    assert start.offset == pytest.approx(np.log(0.02 / 0.5))
    assert [one.label for one in settings.planned()] == ["mean rate", "gradient"]
