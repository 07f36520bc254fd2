"""The Curator's door."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dense_rows import dense_design
from dpfit.data.rows import RowBlock
from dpfit.design.builder import DesignBuilder
from dpfit.design.grid import Grid, RowMap
from dpfit.losses.base import Loss
from dpfit.losses.logistic import Logistic
from dpfit.losses.smoothed import HuberSmoothed
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.centring import Centring
from dpfit.privacy.charged_releases import Release
from dpfit.privacy.curator import Curator
from dpfit.privacy.events import MinimiserLaw
from dpfit.privacy.gaussian_release import GaussianRelease, squared_factor, with_room
from dpfit.privacy.mechanisms.noise import ExactNoise, Noise, NoNoise
from dpfit.privacy.minimiser_release import VectorRelease, plan_minimiser, plan_vector
from dpfit.privacy.objective import Objective
from dpfit.privacy.owner_release import OwnerRule, plan_owner_release
from dpfit.privacy.peeling_release import PeelingRelease
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.point import Point, quantised
from dpfit.privacy.private_records import PrivateRecords
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.questions import GradientSums
from dpfit.privacy.random_bits import BitSource, RunKey
from dpfit.privacy.selection_release import SelectionRelease, score_sensitivity
from dpfit.privacy.user_release import UserNoise, plan_user_release
from dpfit.privacy.user_sensitivity import UserGrid

GRID = Grid(1.0, RowMap.NORMALIZE, 20, True)
N, D = 400, 30
OF_USERS = {
    Quantity.USER_MEANS,
    Quantity.USER_SHARES,
    Quantity.ITEM_COUNTS,
    Quantity.ITEM_SUMS,
    Quantity.FACTOR_SUMS,
    Quantity.FACTOR_MOMENTS,
}
OBJECTIVE = Objective(HuberSmoothed(0.5, 0.1), 40.0)


def release(unit: int, scale_bits: int, count: int) -> GaussianRelease:
    factor = squared_factor(Quantity.GRADIENT, GRID, 0)
    return GaussianRelease("gradient", Quantity.GRADIENT, factor, unit, scale_bits, count)


def release_of(quantity: Quantity) -> Release:
    """A release of any kind but peeling; called ``it`` unless it is a random vector."""
    planned = PlannedRelease(
        "it", quantity, 1, Fraction(0), objective=OBJECTIVE, law=MinimiserLaw.L2
    )
    adjacency = Adjacency.REPLACE_ONE
    match quantity:
        case Quantity.SELECTION | Quantity.VOTES | Quantity.TARGET_RANKS:
            sensitivity = score_sensitivity(quantity, GRID)
            return SelectionRelease("it", quantity, sensitivity, 1 << 10, 40, 3, 5)
        case Quantity.OWNER_GRADIENT:
            rule = OwnerRule("person", 3, 1.0)
            return plan_owner_release(
                planned, rule, n_owners=N, squared_mu=None, adjacency=adjacency
            )
        case Quantity.OBJECTIVE_TERM | Quantity.MINIMISER_SHIFT:
            return plan_vector(
                replace(planned, label="vector"),
                GRID,
                n_features=D,
                squared_mu=None,
                epsilon=Fraction(1),
                adjacency=adjacency,
            )
        case Quantity.MINIMISER:
            term = release_of(Quantity.OBJECTIVE_TERM)
            assert isinstance(term, VectorRelease)
            return plan_minimiser(
                planned,
                GRID,
                n_rows=N,
                n_features=D,
                unit_bits=20,
                vector=term,
                squared_mu=Fraction(1),
                epsilon=None,
                adjacency=adjacency,
            )
    if quantity in OF_USERS:
        users = UserGrid(N, D, 2)
        return plan_user_release(
            planned, users, UserNoise(), share=Fraction(1), adjacency=adjacency
        )
    return GaussianRelease("it", quantity, squared_factor(quantity, GRID, 3), 1 << 10, 40, 5, 3)


def curator(noise: Noise, *releases: Release, loss: Loss | None = None) -> Curator:
    rng = np.random.default_rng(0)
    return Curator(
        records=PrivateRecords(
            dense_design(rng.standard_normal((N, D)), GRID),
            (rng.random(N) < 0.5).astype(np.float64),
        ),
        loss=loss or Logistic(),
        grid=GRID,
        n_rows=N,
        releases=releases,
        noise=noise,
    )


def test_without_noise_it_is_the_mean_gradient() -> None:
    """The quantised mean gradient equals the float one to the grid's precision."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (rng.random(N) < 0.5).astype(np.float64)
    theta, intercept = np.linspace(-3, 3, D), 0.7
    residual = 1 / (1 + np.exp(-(X @ theta + intercept * GRID.intercept_value))) - y
    point = curator(NoNoise(), release(1 << 20, 0, 1)).gradient(
        "gradient", Point(theta, intercept), clip=1.0
    )
    assert point.coefficients == pytest.approx(X.T @ residual / N, abs=2e-6)
    assert point.intercept == pytest.approx(GRID.intercept_value * residual.mean(), abs=2e-6)


def test_no_release_beyond_the_charge() -> None:
    """The question after the last charged one is refused."""
    door = curator(NoNoise(), release(1 << 20, 0, 2))
    zero = Point(np.zeros(D), 0.0)
    door.gradient("gradient", zero, clip=1.0)
    door.gradient("gradient", zero, clip=1.0)
    with pytest.raises(RuntimeError, match="charged"):
        door.gradient("gradient", zero, clip=1.0)


def test_noise_is_fresh_at_every_step_and_on_every_coordinate() -> None:
    """The same question twice differs on every coordinate, the intercept's included."""
    bits = BitSource(RunKey.from_seed(1))
    door = curator(ExactNoise(bits), release(1 << 10, 40, 2))
    zero = Point(np.zeros(D), 0.0)
    first, second = (door.gradient("gradient", zero, clip=1.0) for _ in range(2))
    assert np.all(first.coefficients != second.coefficients)
    assert first.intercept != second.intercept


def test_noise_is_on_columns_that_nobody_uses() -> None:
    """A column without an entry is noised like any other."""
    builder = DesignBuilder(GRID)
    one = np.zeros(1, np.int32)
    builder.collect([RowBlock(np.array([0, 1]), one, np.ones(1), None)])
    door = Curator(
        records=PrivateRecords(builder.build(50, grid=GRID, index_base=0), np.zeros(1)),
        loss=Logistic(),
        grid=GRID,
        n_rows=1,
        releases=[release(1 << 10, 40, 1)],
        noise=ExactNoise(BitSource(RunKey.from_seed(2))),
    )
    assert np.all(door.gradient("gradient", Point(np.zeros(50), 0.0), clip=1.0).coefficients != 0.0)


def test_nan_residuals_become_bounded_integers() -> None:
    """A residual that is NaN is clipped to -tau: every record's part keeps its bound."""

    class Broken(Logistic):
        def residual(self, margins: np.ndarray, target: np.ndarray) -> np.ndarray:
            return np.where(np.arange(len(margins)) % 3 == 0, np.nan, np.inf)

    records = curator(NoNoise(), release(1000, 0, 1))._records.here()
    point, bits = quantised(Point(np.zeros(D), 0.0), GRID.squared_norm)
    question = GradientSums(Broken(), point, bits, offset=0.0, clip=0.25, unit=1000)
    integers = question.multipliers(records)
    assert set(integers.tolist()) == {-1000, 1000}


def test_a_release_answers_its_own_question_only() -> None:
    """A release charged as one quantity cannot be spent on another, nor on more columns."""
    zero = Point(np.zeros(D), 0.0)
    for quantity in set(Quantity) - {Quantity.GRADIENT, Quantity.METRICS}:  # no door to metrics
        other = release_of(quantity)
        with pytest.raises(RuntimeError, match="charged"):
            curator(NoNoise(), other).gradient(other.label, zero, clip=1.0)
    factor = squared_factor(Quantity.PARTIAL_GRADIENT, GRID, 3)
    partial = GaussianRelease("it", Quantity.PARTIAL_GRADIENT, factor, 1 << 10, 40, 5, 3)
    door = curator(NoNoise(), partial)
    door.gradient("it", zero, clip=1.0, columns=np.array([0, 4, 7]))
    for columns in ([0, 1, 2, 3], [1, 1], [2, 1]):
        with pytest.raises(RuntimeError, match="charged"):
            door.gradient("it", zero, clip=1.0, columns=np.array(columns))
    whole = curator(NoNoise(), release(1 << 10, 40, 5))
    for ask in (
        lambda: whole.column_means("gradient"),
        lambda: whole.target_mean("gradient"),
        lambda: whole.steepest_vertex("gradient", zero, clip=1.0),
        lambda: whole.support_after_step("gradient", zero, clip=1.0, step_size=1.0),
        lambda: whole.target_quantile("gradient", 0.5),
        lambda: whole.minimiser("gradient", OBJECTIVE, 0.5),
        lambda: whole.batch_gradient("gradient", zero, clip=1.0),
    ):
        with pytest.raises(RuntimeError, match="charged"):
            ask()


def test_a_minimiser_is_found_once() -> None:
    """Neither the release on the grid nor the random term of its objective is used twice."""
    door = curator(
        ExactNoise(BitSource(RunKey.from_seed(3))),
        release_of(Quantity.OBJECTIVE_TERM),
        release_of(Quantity.MINIMISER),
    )
    door.minimiser("it", OBJECTIVE, 0.5)
    with pytest.raises(RuntimeError, match="charged"):
        door.minimiser("it", OBJECTIVE, 0.5)


def test_peeling_answers_for_columns_only() -> None:
    """A selection charged as peeling is not drawn by Gumbel noise, which costs otherwise."""
    peeling = PeelingRelease("it", score_sensitivity(Quantity.SELECTION, GRID), 1 << 10, 40, 2, 5)
    door = curator(NoNoise(), peeling)
    zero = Point(np.zeros(D), 0.0)
    assert len(door.support_after_step("it", zero, clip=1.0, step_size=1.0)) == 2
    with patch.object(NoNoise, "choose_signed", side_effect=AssertionError):
        door.steepest_vertex("it", zero, clip=1.0)
    for ask in (
        lambda: door.columns_by_vote("it"),
        lambda: door.gradient("it", zero, clip=1.0),
    ):
        with pytest.raises(RuntimeError, match="charged"):
            ask()


@pytest.mark.parametrize("shift", ["records", "point", None])
def test_offsets_keep_the_step_as_charged(shift: str | None) -> None:
    """The refined bound reckons with margins that are x.theta alone: an offset turns it off."""
    factor = with_room(squared_factor(Quantity.GRADIENT, GRID, 0))
    refined = GaussianRelease("gradient", Quantity.GRADIENT, factor, 1 << 10, 40, 1, 0, True)
    door = curator(NoNoise(), refined)
    if shift == "records":
        door._records = replace(door._records.here(), offset=np.zeros(N))
    point = Point(np.zeros(D), 0.0, 0.3 if shift == "point" else 0.0)
    clip, unit = door._clip_and_unit(refined, point, 0.9)
    assert ((clip, unit) == (0.9, 1 << 10)) is (shift is not None)


@given(
    st.lists(st.floats(), min_size=1, max_size=8),
    st.floats(),
    st.integers(1, 20),
    st.booleans(),
)
def test_a_quantised_point_keeps_margins_exact(
    coefficients: list[float], intercept: float, bits: int, with_intercept: bool
) -> None:
    """sqrt(K2) |theta_q| <= 2^53 for any point at all, so every partial margin is exact."""
    grid = Grid(1.0, RowMap.NORMALIZE, bits, with_intercept)
    point, _ = quantised(Point(np.array(coefficients), intercept), grid.squared_norm)
    squares = sum(value * value for value in [*point.values.tolist(), int(point.intercept)])
    assert grid.squared_norm * squares <= 2**106


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8), st.floats(-1e3, 1e3))
def test_a_quantised_point_is_close(coefficients: list[float], intercept: float) -> None:
    """Rounding to the point's grid moves no coefficient by more than 2^-28 of the largest."""
    point, bits = quantised(Point(np.array(coefficients), intercept), GRID.squared_norm)
    back = np.zeros(len(coefficients))
    back[point.support] = point.values
    largest = max(map(abs, [*coefficients, intercept]))
    assert np.abs(back * 2.0**-bits - coefficients) == pytest.approx(
        0, abs=largest * 2.0**-28 + 1e-300
    )


@pytest.mark.parametrize(
    "centring",
    [
        Centring(np.arange(2), np.array([2.1, 0.0]), 0.1),
        Centring(np.arange(2), np.array([np.nan, 0.0]), 0.1),
        Centring(np.arange(2), np.array([np.inf, 0.0]), 0.1),
        Centring(np.arange(2), np.zeros(2), 0.0),
        Centring(np.arange(2), np.zeros(2), 1.5),
    ],
)
def test_a_centre_out_of_bounds_is_refused(centring: Centring) -> None:
    """Lengths of records must stay exact integers, whatever an algorithm asks for."""
    door = curator(NoNoise(), release(1 << 10, 40, 1))
    with pytest.raises(RuntimeError, match="bounds"):
        door.centre(centring)
