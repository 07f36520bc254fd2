"""The sensitivity that is charged bounds what one record can do, by brute force."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dense_rows import dense_design
from dpfit.design.grid import Grid, RowMap
from dpfit.losses.logistic import Logistic
from dpfit.losses.squared import Squared
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.curator import Curator
from dpfit.privacy.gaussian_release import GaussianRelease, plan_release, squared_factor
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.point import Point
from dpfit.privacy.private_records import PrivateRecords
from dpfit.privacy.quantity import Quantity

D = 5
VALUES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 5e-324]),
)
RECORDS = st.tuples(st.lists(VALUES, min_size=D, max_size=D), st.floats(0.0, 1.0))
POINTS = st.tuples(st.lists(st.floats(-1e6, 1e6), min_size=D, max_size=D), st.floats(-1e6, 1e6))
GRID = Grid(1.0, RowMap.CLIP, 20, True)


class _Reading:
    """Noise that is zero and keeps nothing: the sums themselves come out."""

    def integers(self, scale_bits: int, size: int, step: int) -> np.ndarray:
        return np.zeros(size, np.int64)


def gradient_release(grid: Grid) -> GaussianRelease:
    factor = squared_factor(Quantity.GRADIENT, grid, 0)
    return GaussianRelease("gradient", Quantity.GRADIENT, factor, 1 << 20, 30, 1)


def exact_sums(records: list, point: Point, grid: Grid, loss: object) -> list[int]:
    """The integer sums of a gradient, as Python integers."""
    design = dense_design(np.array([row for row, _ in records], np.float64), grid)
    curator = Curator(
        records=PrivateRecords(design, np.array([y for _, y in records])),
        loss=loss,
        grid=grid,
        n_rows=len(records),
        releases=[gradient_release(grid)],
        noise=_Reading(),
    )
    # Without noise the released floats are the integer sums times a public number.
    released = curator.gradient("gradient", point, clip=0.25)
    unit = grid.unit * 0.25 / (1 << 20) / len(records)
    stacked = np.append(released.coefficients, released.intercept) / unit
    return [int(value) for value in np.rint(stacked)]


def squared_distance(left: list[int], right: list[int]) -> int:
    return sum((a - b) ** 2 for a, b in zip(left, right, strict=True))


@pytest.mark.parametrize("loss", [Logistic(), Squared()])
@settings(max_examples=200, deadline=None)
@given(st.lists(RECORDS, min_size=1, max_size=4), RECORDS, POINTS, st.booleans())
def test_replacing_one_record_moves_the_sums_within_the_charge(
    loss: object, records: list, other: tuple, point: tuple, intercept: bool
) -> None:
    """|G - G'|^2 <= the replace-one squared sensitivity, in integers, for any records."""
    grid = replace(GRID, intercept=intercept)
    theta = Point(np.array(point[0]), point[1])
    before = exact_sums(records, theta, grid, loss)
    after = exact_sums([other, *records[1:]], theta, grid, loss)
    bound = gradient_release(grid).event().squared_sensitivity.under(Adjacency.REPLACE_ONE)
    assert squared_distance(before, after) <= bound


@settings(max_examples=200, deadline=None)
@given(st.lists(RECORDS, min_size=2, max_size=4), POINTS)
def test_removing_one_record_moves_the_sums_within_the_charge(records: list, point: tuple) -> None:
    """Physically leaving a record out moves the sums by that record's own bounded part."""
    theta = Point(np.array(point[0]), point[1])
    before = exact_sums(records, theta, GRID, Logistic())
    after = exact_sums(records[1:], theta, GRID, Logistic())
    bound = gradient_release(GRID).event().squared_sensitivity.under(Adjacency.ADD_REMOVE)
    assert squared_distance(before, after) <= bound


def test_the_replace_one_bound_is_attained() -> None:
    """A flipped label on a saturated record reaches the charge to 1e-5: no slack is sold."""
    row = [1.0, 0.0, 0.0, 0.0, 0.0]
    at_zero = Point(np.zeros(D), 0.0)
    before = exact_sums([(row, 0.0)], at_zero, GRID, Logistic())
    after = exact_sums([(row, 1.0)], at_zero, GRID, Logistic())
    bound = gradient_release(GRID).event().squared_sensitivity.under(Adjacency.REPLACE_ONE)
    assert squared_distance(before, after) == pytest.approx(bound, rel=1e-5)
    assert squared_distance(before, after) <= bound


def test_replace_one_is_four_times_the_zero_out_square() -> None:
    """A replacement is two zero-outs: twice the distance, exactly."""
    squares = gradient_release(GRID).event().squared_sensitivity
    assert squares.replace_one == 4 * squares.add_remove


@given(
    st.fractions(Fraction(1, 10**12), Fraction(10**4)),
    st.integers(1, 1000),
    st.sampled_from(Adjacency),
    st.integers(1, 20),
)
def test_a_plan_spends_at_most_the_budget_and_nearly_all_of_it(
    squared_mu: Fraction, count: int, adjacency: Adjacency, residual_bits: int
) -> None:
    """count * sensitivity^2 / scale^2 <= mu^2 exactly, and R_int is the largest that fits."""
    planned = PlannedRelease("gradient", Quantity.GRADIENT, count, Fraction(1))
    release = plan_release(
        planned, GRID, unit_bits=residual_bits, squared_mu=squared_mu, adjacency=adjacency
    )
    event = release.event()
    spent = count * Fraction(event.squared_sensitivity.under(adjacency), event.scale**2)
    assert spent <= squared_mu
    finer = replace(release, unit=release.unit + 1).event()
    over = count * Fraction(finer.squared_sensitivity.under(adjacency), finer.scale**2)
    assert over > squared_mu
    assert math.log2(event.scale) == release.scale_bits
