"""Sensitivity of column means, target means and centred gradients, by brute force."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dense_rows import dense_design
from dpfit.design.grid import Grid, RowMap
from dpfit.losses.logistic import Logistic
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.centring import Centring
from dpfit.privacy.charged_releases import Release
from dpfit.privacy.curator import Curator
from dpfit.privacy.events import PureEvent
from dpfit.privacy.gaussian_release import GaussianRelease, squared_factor
from dpfit.privacy.laplace_release import LaplaceRelease, l1_factor
from dpfit.privacy.mechanisms.noise import NoNoise
from dpfit.privacy.peeling_release import PeelingRelease
from dpfit.privacy.point import Point
from dpfit.privacy.private_records import PrivateRecords
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.selection_release import SelectionRelease, score_sensitivity

D = 4
GRID = Grid(1.0, RowMap.NORMALIZE, 20, True)
VALUES = st.one_of(
    st.floats(-10, 10), st.sampled_from([0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, 1e-200])
)
RECORDS = st.tuples(st.lists(VALUES, min_size=D, max_size=D), st.floats(-2.0, 3.0))
DATA = st.lists(RECORDS, min_size=1, max_size=3)
UNIT = 1 << 20
CHOSEN = 2


def release_of(quantity: Quantity) -> GaussianRelease:
    factor = squared_factor(quantity, GRID, CHOSEN)
    return GaussianRelease("it", quantity, factor, UNIT, 30, 1, CHOSEN)


def curator(
    records: list,
    release: Release,
    grid: Grid = GRID,
    noise: NoNoise | None = None,
) -> Curator:
    rows = np.array([row for row, _ in records], np.float64).reshape(-1, D)
    return Curator(
        records=PrivateRecords(
            dense_design(rows, grid, finer=replace(grid, entry_clip=1.0)),
            np.array([y for _, y in records]),
        ),
        loss=Logistic(),
        grid=grid,
        n_rows=1,
        releases=[release],
        noise=noise or NoNoise(),
    )


class _Sums(NoNoise):
    """No noise; remembers the integers that would have been noised or compared."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def choose(self, scores: np.ndarray, k: int, scale_bits: int, step: int) -> np.ndarray:
        self.seen = [int(value) for value in scores]
        return super().choose(scores, k, scale_bits, step)

    def peel(self, scores: np.ndarray, k: int, fresh: Callable) -> np.ndarray:
        self.seen = [int(value) for value in scores]
        return np.arange(k)

    def choose_signed(self, scores: np.ndarray, scale_bits: int, step: int) -> int:
        self.seen = [int(value) for value in scores]
        return super().choose_signed(scores, scale_bits, step)


def integers_of(ask: Callable[[Curator], np.ndarray], records: list, quantity: Quantity) -> list:
    """What is released without noise, as integers of the release."""
    released = ask(curator(records, release_of(quantity)))
    return [int(value) for value in np.rint(released)]


def moved(ask: Callable, left: list, right: list, quantity: Quantity) -> int:
    """Squared integer distance between what two data sets release."""
    sums = [integers_of(ask, records, quantity) for records in (left, right)]
    return sum((a - b) ** 2 for a, b in zip(*sums, strict=True))


def stacked(point: Point, length: float) -> np.ndarray:
    return np.append(point.coefficients, point.intercept) / (length * 0.1 / UNIT)


def centred_gradient(door: Curator, theta: float = 1.0) -> np.ndarray:
    columns = np.array([0, 2, 3])
    door.centre(Centring(columns, np.array([0.3, -0.2, 0.0]), 0.1))
    point = Point(theta * np.array([5.0, -3.0, 100.0]), 2.0 * theta)
    return stacked(door.gradient("it", point, clip=0.1), 1.0 / GRID.integer_norm)


def partial_gradient(door: Curator, theta: float = 1.0) -> np.ndarray:
    point = Point(theta * np.array([5.0, -3.0, 100.0, 1.0]), 2.0 * theta)
    columns = np.array([1, 3])
    return stacked(door.gradient("it", point, clip=0.1, columns=columns), GRID.unit)


CASES = {
    "column means": (
        lambda door: np.concatenate(door.column_means("it")) * UNIT,
        Quantity.COLUMN_SUMS,
    ),
    "target mean": (
        lambda door: np.array([door.target_mean("it")]) * UNIT,
        Quantity.TARGET_SUM,
    ),
    "centred gradient": (centred_gradient, Quantity.UNIT_GRADIENT),
    "partial gradient": (partial_gradient, Quantity.PARTIAL_GRADIENT),
}


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=150)
@given(DATA, RECORDS)
def test_a_replaced_record_moves_it_within_the_charge(name: str, data: list, other: tuple) -> None:
    """The squared distance is at most the charged one, for any record against any other."""
    ask, quantity = CASES[name]
    distance = moved(ask, data, [other, *data[1:]], quantity)
    event = release_of(quantity).event()
    assert distance <= event.squared_sensitivity.under(Adjacency.REPLACE_ONE)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=150)
@given(DATA, RECORDS)
def test_a_removed_record_moves_it_within_the_charge(name: str, data: list, other: tuple) -> None:
    """Leaving a record out moves it by at most the add-remove charge."""
    ask, quantity = CASES[name]
    distance = moved(ask, data, [*data, other], quantity)
    event = release_of(quantity).event()
    assert distance <= event.squared_sensitivity.under(Adjacency.ADD_REMOVE)


@pytest.mark.parametrize(
    ("name", "left", "right"),
    [
        ("column means", ([1.0, 0.0, 0.0, 0.0], 0.0), ([0.0, 1.0, 0.0, 0.0], 0.0)),
        ("target mean", ([1.0, 0.0, 0.0, 0.0], 0.0), ([1.0, 0.0, 0.0, 0.0], 1.0)),
        ("centred gradient", ([1.0, 0.0, 0.0, 0.0], 0.0), ([1.0, 0.0, 0.0, 0.0], 1.0)),
    ],
)
def test_the_charge_is_attained(name: str, left: tuple, right: tuple) -> None:
    """Some pair of records reaches the charge to one part in 10^5."""
    ask, quantity = CASES[name]
    if name == "centred gradient":
        ask = lambda door: centred_gradient(door, theta=0.0)  # noqa: E731 - residuals clip there
    event = release_of(quantity).event()
    charged = event.squared_sensitivity.under(Adjacency.REPLACE_ONE)
    assert moved(ask, [left], [right], quantity) == pytest.approx(charged, rel=1e-5)


@settings(max_examples=150)
@given(DATA, RECORDS, st.sampled_from([1, 2, 3]), st.sampled_from([0.1, 0.2, 1.0]))
def test_a_record_moves_values_with_laplace_noise_within_both_charges(
    data: list, other: tuple, k: int, entry_clip: float
) -> None:
    """Neither the l1 nor the squared l2 distance exceeds its charge, replaced or left out."""
    grid = replace(GRID, entry_clip=entry_clip)
    l2 = squared_factor(Quantity.PARTIAL_GRADIENT, grid, k)
    release = LaplaceRelease("it", l1_factor(grid, k), l2, UNIT, 30, 1, k)
    point = Point(np.array([5.0, -3.0, 100.0, 1.0]), 2.0)

    def sums(records: list) -> list[int]:
        door = curator(records, release, grid)
        gradient = door.gradient("it", point, clip=0.1, columns=np.arange(k))
        return [int(value) for value in np.rint(stacked(gradient, grid.unit))]

    event = release.event()
    before = sums(data)
    for after, adjacency in (
        (sums([other, *data[1:]]), Adjacency.REPLACE_ONE),
        (sums([*data, other]), Adjacency.ADD_REMOVE),
    ):
        moves = [abs(a - b) for a, b in zip(before, after, strict=True)]
        assert sum(moves) <= event.l1_sensitivity.under(adjacency)
        assert sum(move**2 for move in moves) <= event.squared_sensitivity.under(adjacency)


def test_the_l1_charge_of_laplace_noise_is_attained() -> None:
    """A record with equal entries on the chosen columns reaches it to one part in 10^5."""
    grid = Grid(1.0, RowMap.NORMALIZE, 20, True, 0.1)
    l2 = squared_factor(Quantity.PARTIAL_GRADIENT, grid, 3)
    release = LaplaceRelease("it", l1_factor(grid, 3), l2, UNIT, 30, 1, 3)
    zero, total = Point(np.zeros(D), 0.0), []
    for y in (0.0, 1.0):
        door = curator([([1.0] * 4, y)], release, grid)
        gradient = door.gradient("it", zero, clip=0.1, columns=np.arange(3))
        total.append(stacked(gradient, grid.unit))
    charged = release.event().l1_sensitivity.under(Adjacency.REPLACE_ONE)
    assert np.abs(total[0] - total[1]).sum() == pytest.approx(charged, rel=1e-5)


@settings(max_examples=150)
@given(
    DATA,
    RECORDS,
    st.sampled_from(["support", "peeling", "vertex", "printed vertex"]),
    st.sampled_from([0.2, 1.0]),
)
def test_a_record_moves_every_score_of_a_selection_within_the_charge(
    data: list, other: tuple, kind: str, entry_clip: float
) -> None:
    """No score moves by more than D_inf: eta 2^b / 2 (or epsilon's), replaced or left out."""
    grid = replace(GRID, entry_clip=entry_clip)
    sensitivity = score_sensitivity(Quantity.SELECTION, grid)
    release: SelectionRelease | PeelingRelease
    release = SelectionRelease("it", Quantity.SELECTION, sensitivity, UNIT, 40, 1, 1)
    if kind in ("peeling", "printed vertex"):
        release = PeelingRelease("it", sensitivity, UNIT, 40, 1, 1)
    point = Point(np.array([5.0, -3.0, 100.0, 1.0]), 2.0)

    def scores(records: list) -> list[int]:
        noise = _Sums()
        door = curator(records, release, grid, noise)
        if kind == "peeling":
            with patch("dpfit.privacy.charged_releases.peel", noise.peel):
                door.support_after_step("it", point, clip=0.1, step_size=3.0)
        elif kind == "printed vertex":
            with patch("dpfit.privacy.charged_releases.peel", noise.peel):
                door.steepest_vertex("it", point, clip=0.1)
        elif kind == "support":
            door.support_after_step("it", point, clip=0.1, step_size=3.0)
        else:
            door.steepest_vertex("it", point, clip=0.1)
        return noise.seen

    event = release.event()
    eta = event.epsilon if isinstance(event, PureEvent) else event.eta
    before = scores(data)
    for after, adjacency in (
        (scores([other, *data[1:]]), Adjacency.REPLACE_ONE),
        (scores([*data, other]), Adjacency.ADD_REMOVE),
    ):
        bound = eta.under(adjacency) * 2**40 / 2
        assert all(abs(a - b) <= bound for a, b in zip(before, after, strict=True))
