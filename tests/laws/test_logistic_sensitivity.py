"""The refined sensitivity of logistic gradients: a true bound, nearly attained."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit

from dense_rows import dense_design
from dpfit.design.grid import Grid, RowMap
from dpfit.losses.logistic import Logistic
from dpfit.losses.squared import Squared
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.curator import Curator
from dpfit.privacy.gaussian_release import GaussianRelease, squared_factor, with_room
from dpfit.privacy.logistic_sensitivity import diameter, may_refine, refined_step
from dpfit.privacy.mechanisms.noise import NoNoise
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.point import Point
from dpfit.privacy.private_records import PrivateRecords
from dpfit.privacy.quantity import Quantity

D = 4
UNIT = 1 << 19
GRID = Grid(1.0, RowMap.CLIP, 20, True)
MARGINS = st.one_of(st.floats(0.0, 12.0), st.floats(0.0, 1e4))
CLIPS = st.one_of(st.floats(0.5, 1.2), st.floats(0.01, 1e6))
NORMS = st.sampled_from([0.0, 1e-3, 0.3, 1.0, 2.0, 3.0, 6.0, 15.0, 60.0, 1e4, 1e100])
ROWS = st.lists(st.floats(-2.0, 2.0), min_size=D, max_size=D)
RECORDS = st.tuples(ROWS, st.sampled_from([0.0, 1.0]))
WORST = ((1.0, 0.0), (-1.0, 1.0))  # side along theta, label


def highest(margin: float) -> tuple[float, float]:
    """The l that maximises 2 sigm(l) sqrt(1 - l^2 / M^2), a log-concave function, and its value."""

    if margin == 0.0:
        return 0.0, 1.0
    top = min(margin, 40.0)

    def negative(share: float) -> float:
        l = share * top  # noqa: E741 - the letter of the proof
        return -2.0 * float(expit(l)) * math.sqrt(max(0.0, 1.0 - (l / margin) ** 2))

    found = minimize_scalar(negative, bounds=(0, 1), method="bounded", options={"xatol": 1e-12})
    return float(found.x) * top, -float(found.fun)


@pytest.mark.parametrize(
    ("margin", "value"),
    [
        (0.0, 1.0),
        (0.5, 1.029),
        (1.0, 1.099),
        (2.0, 1.270),
        (3.0, 1.419),
        (5.0, 1.617),
        (10.0, 1.821),
        (20.0, 1.927),
        (100.0, 1.993),
    ],
)
def test_it_is_the_table_of_the_derivation(margin: float, value: float) -> None:
    """S(M) as methods, 1.2 C3 lists it to three decimals."""
    assert diameter(margin) == pytest.approx(value, abs=8e-4)


@given(MARGINS)
def test_it_bounds_the_maximum_closely(margin: float) -> None:
    """S(M) is never below the maximum of its formula and at most 3e-4 above."""
    _, value = highest(margin)
    assert value <= diameter(margin) <= value + 3e-4


@given(MARGINS, MARGINS)
def test_it_does_not_fall_with_the_margin(one: float, other: float) -> None:
    """S(M) is non-decreasing, so a margin that was rounded up is on the safe side."""
    low, high = sorted((one, other))
    assert diameter(low) <= diameter(high) + 3e-4  # by as much as either was rounded up


@pytest.mark.parametrize("margin", [0.1, 0.7, 1.0, 2.0, 4.0, 8.0, 25.0, 200.0])
def test_no_two_gradients_are_further_apart(margin: float) -> None:
    """Over all pairs of lengths and angles, opposite in azimuth, the distance is at most S(M)."""
    angle, length = np.meshgrid(np.linspace(0, np.pi, 91), np.linspace(0, 1, 21))
    w = np.stack([length * np.cos(angle), length * np.sin(angle)], -1).reshape(-1, 2)
    element = w * expit(margin * w[:, :1])
    gap = element[:, None] - (element * [1.0, -1.0])[None]
    largest = float(np.sqrt((gap**2).sum(-1).max()))
    assert 0.995 * diameter(margin) <= largest <= diameter(margin)


def test_half_of_the_square_is_room_for_a_zero_out() -> None:
    """sqrt(2) sigm(M) <= S(M) for every M: on cells, since both sides rise, and by l = 2 beyond 4.

    So the replace-one number alone limits the unit of a run whose budget is meant so.
    """
    ends = np.linspace(0.0, 4.0, 1001)
    below = np.array([highest(margin)[1] for margin in ends[:-1]])
    assert np.all(math.sqrt(2.0) * expit(ends[1:]) < below)
    assert 4.0 * float(expit(2.0)) ** 2 * (1.0 - (2.0 / 4.0) ** 2) > 2.0


def charged(adjacency: Adjacency) -> PerAdjacency[int]:
    factor = squared_factor(Quantity.GRADIENT, GRID, 0)
    return with_room(factor) if adjacency is Adjacency.REPLACE_ONE else factor


@given(MARGINS, CLIPS, st.integers(1, 1 << 20), st.sampled_from(Adjacency))
def test_a_step_keeps_both_numbers_of_the_charge(
    margin: float, clip: float, unit: int, adjacency: Adjacency
) -> None:
    """unit S / clip + 1.01 and the unit keep within the event, or the charged unit stays."""
    factor, squared_norm = charged(adjacency), GRID.squared_norm
    step_clip, step_unit = refined_step(margin, clip, unit, factor, squared_norm)
    assert squared_norm * step_unit**2 <= factor.add_remove * unit**2
    assert step_unit >= unit
    if step_unit > unit:
        S = Fraction(highest(margin)[1])
        moved = step_unit * S / Fraction(step_clip) + Fraction(101, 100)
        assert squared_norm * moved**2 <= factor.replace_one * unit**2
    assert Fraction(step_clip) / step_unit <= Fraction(clip) / unit  # the noise never rises


@given(MARGINS, st.sampled_from(Adjacency))
def test_the_noise_falls_as_far_as_the_law_allows(margin: float, adjacency: Adjacency) -> None:
    """At tau = 1 the noise is S / 2 of the charge under replace-one, sigm(M) under add-remove."""
    clip, unit = refined_step(margin, 1.0, UNIT, charged(adjacency), GRID.squared_norm)
    left = clip / unit * UNIT
    by_law = diameter(margin) / 2 if adjacency is Adjacency.REPLACE_ONE else float(expit(margin))
    assert left == pytest.approx(min(1.0, by_law), rel=1e-5)


class Door(Curator):
    """Remembers the integer sums that would be noised."""

    seen: np.ndarray

    def __init__(self, **facts: Any) -> None:
        super().__init__(**facts)
        self._charged.noisy = self._watch

    def _watch(self, release: GaussianRelease, sums: np.ndarray) -> np.ndarray:
        self.seen = sums
        return sums


def sums(
    records: list,
    point: Point,
    grid: Grid,
    adjacency: Adjacency,
    clip: float,
    own_offset: float | None = None,
) -> list[int]:
    rows = np.array([row for row, _ in records], np.float64).reshape(-1, D)
    door = Door(
        records=PrivateRecords(
            dense_design(rows, grid),
            np.array([y for _, y in records]),
            None if own_offset is None else np.full(len(records), own_offset),
        ),
        loss=Logistic(),
        grid=grid,
        n_rows=1,
        releases=[release_of(grid, adjacency)],
        noise=NoNoise(),
    )
    door.gradient("it", point, clip=clip)
    return [int(value) for value in door.seen]


def release_of(grid: Grid, adjacency: Adjacency) -> GaussianRelease:
    factor = squared_factor(Quantity.GRADIENT, grid, 0)
    if adjacency is Adjacency.REPLACE_ONE:
        factor = with_room(factor)
    return GaussianRelease("it", Quantity.GRADIENT, factor, UNIT, 30, 1, refined=True)


def shares(
    left: list, right: list, point: Point, *, grid: Grid, charge: Adjacency, clip: float = 1.0
) -> dict[Adjacency, Fraction]:
    """Squared distance of the sums over the charged square, replaced and zeroed."""
    event = release_of(grid, charge).event().squared_sensitivity
    before, after, alone = (
        sums(records, point, grid, charge, clip) for records in (left, right, left[:1])
    )
    moved = sum((a - b) ** 2 for a, b in zip(before, after, strict=True))
    zeroed = sum(a**2 for a in alone)
    return {
        Adjacency.REPLACE_ONE: Fraction(moved, event.replace_one),
        Adjacency.ADD_REMOVE: Fraction(zeroed, event.add_remove),
    }


@settings(max_examples=300, deadline=None)
@given(
    st.lists(RECORDS, min_size=1, max_size=3),
    RECORDS,
    ROWS,
    NORMS,
    st.floats(-50.0, 50.0),
    st.sampled_from([0.0, 4.0]),
    st.sampled_from([0.3, 0.6, 0.9, 1.0, 7.0]),
    st.sampled_from([0.1, 1.0, 30.0]),
    st.booleans(),
    st.sampled_from(Adjacency),
)
def test_a_record_moves_the_sums_within_the_charge(
    records: list,
    other: tuple,
    direction: list,
    norm: float,
    intercept: float,
    offset: float,
    clip: float,
    row_norm: float,
    with_intercept: bool,
    charge: Adjacency,
) -> None:
    """Replaced or zeroed, at any point, clip and row norm: no further than the event says."""
    grid = replace(GRID, row_norm=row_norm, intercept=with_intercept)
    point = Point(np.array(direction) * norm, intercept * norm, offset)
    found = shares(records, [other, *records[1:]], point, grid=grid, charge=charge, clip=clip)
    assert max(found.values()) <= 1


@pytest.mark.parametrize("row_norm", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("norm", [0.1, 0.5, 1.0, 2.0, 3.0, 6.0, 20.0])
@pytest.mark.parametrize("charge", list(Adjacency))
def test_the_worst_pair_is_within_the_charge_and_near_it(
    norm: float, row_norm: float, charge: Adjacency
) -> None:
    """Opposite labels on rows mirrored along theta reach the replace-one number to 1e-3.

    In a run charged under add-remove the longest margin reaches the add-remove one.
    """
    grid = replace(GRID, row_norm=row_norm)
    M = math.sqrt(1.01) * norm
    along = highest(M)[0] / norm
    across = math.sqrt(max(0.0, 1.0 - along**2))
    theta = Point(np.array([norm / row_norm, 0.0, 0.0, 0.0]), 0.0)
    pair = [([sign * along * row_norm, across * row_norm, 0.0, 0.0], y) for sign, y in WORST]
    found = shares(pair[:1], pair[1:], theta, grid=grid, charge=charge)
    assert max(found.values()) <= 1
    if charge is Adjacency.REPLACE_ONE:
        assert found[charge] > Fraction(998, 1000)
    aligned = [([row_norm, 0.0, 0.0, 0.0], 0.0)]
    found = shares(aligned, pair[1:], theta, grid=grid, charge=charge)
    assert max(found.values()) <= 1
    if charge is Adjacency.ADD_REMOVE:
        assert found[charge] > Fraction(99, 100)


@pytest.mark.parametrize("where", ["intercept", "offset"])
def test_what_every_margin_gets_counts(where: str) -> None:
    """An intercept or an offset saturates both residuals: opposite rows stay within."""
    theta = np.array([2.0, 0.0, 0.0, 0.0])
    point = Point(theta, 60.0) if where == "intercept" else Point(theta, 0.0, 6.0)
    left, right = [([0.0, 1.0, 0.0, 0.0], 0.0)], [([0.0, -1.0, 0.0, 0.0], 0.0)]
    found = shares(left, right, point, grid=GRID, charge=Adjacency.REPLACE_ONE)
    assert max(found.values()) <= 1


def test_a_records_own_offset_counts() -> None:
    """It saturates both residuals as an intercept does: opposite rows stay within."""
    point = Point(np.array([2.0, 0.0, 0.0, 0.0]), 0.0)
    pair = [([0.0, 1.0, 0.0, 0.0], 0.0)], [([0.0, -1.0, 0.0, 0.0], 0.0)]
    before, after = (
        sums(one, point, GRID, Adjacency.REPLACE_ONE, 1.0, own_offset=6.0) for one in pair
    )
    moved = sum((a - b) ** 2 for a, b in zip(before, after, strict=True))
    event = release_of(GRID, Adjacency.REPLACE_ONE).event()
    assert moved <= event.squared_sensitivity.replace_one


@pytest.mark.parametrize("charge", list(Adjacency))
@pytest.mark.parametrize("clip", [0.1, 0.25, 0.5])
def test_up_to_a_clip_of_one_half_nothing_changes(clip: float, charge: Adjacency) -> None:
    """S is at least 1 = 2 tau: the step is as charged even if the release were marked."""
    for margin in (0.0, 1.0, 5.0, 100.0):
        step = refined_step(margin, clip, UNIT, charged(charge), GRID.squared_norm)
        assert step == (clip, UNIT)


def test_only_public_quantities_mark_a_release() -> None:
    """Logistic loss, a gradient over rows and a clip above 1/2; nothing else is refined."""
    planned = PlannedRelease("it", Quantity.GRADIENT, 1, Fraction(1), residual_clip=0.6)
    assert may_refine(planned, Logistic())
    assert not may_refine(planned, Squared())
    assert not may_refine(replace(planned, residual_clip=0.5), Logistic())
    assert not may_refine(replace(planned, residual_clip=None), Logistic())
    for quantity in set(Quantity) - {Quantity.GRADIENT}:
        assert not may_refine(replace(planned, quantity=quantity), Logistic())
