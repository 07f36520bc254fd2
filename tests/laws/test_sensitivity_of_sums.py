"""Sensitivity of column means, target means and centred gradients, by brute force."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfit.data.rows import RowBlock
from dpfit.design.grid import Grid, RowMap
from dpfit.design.local import DesignBuilder
from dpfit.losses.logistic import Logistic
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.curator import Centring, Curator, Point
from dpfit.privacy.gaussian_release import (
    COLUMN_SUMS,
    TARGET_SUM,
    GaussianRelease,
    gradient_factor,
)

D = 4
GRID = Grid(1.0, RowMap.NORMALIZE, 20, True)
VALUES = st.one_of(
    st.floats(-10, 10), st.sampled_from([0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, 1e-200])
)
RECORDS = st.tuples(st.lists(VALUES, min_size=D, max_size=D), st.floats(-2.0, 3.0))
DATA = st.lists(RECORDS, min_size=1, max_size=3)
UNIT = 1 << 20


class Recorder:
    """Noise that is zero and remembers nothing but lets the exact sums out."""

    def __init__(self) -> None:
        self.sums: list[list[int]] = []

    def integers(self, scale_bits: int, size: int, step: int) -> np.ndarray:
        return np.zeros(size, np.int64)


def curator(records: list, factor: PerAdjacency[int]) -> Curator:
    rows = [row for row, _ in records]
    builder = DesignBuilder(GRID)
    builder.add(
        RowBlock(
            np.arange(0, D * len(rows) + 1, D, dtype=np.int64),
            np.tile(np.arange(D, dtype=np.int32), len(rows)),
            np.array(rows, np.float64).ravel(),
            None,
        )
    )
    return Curator(
        design=builder.build(D, grid=GRID, index_base=0, threads=1),
        target=np.array([y for _, y in records]),
        loss=Logistic(),
        grid=GRID,
        n_rows=1,
        releases=[GaussianRelease("it", factor, UNIT, 30, 1)],
        noise=Recorder(),
    )


def moved(ask: Callable[[Curator], object], left: list, right: list, factor: object) -> int:
    """Squared integer distance between what two data sets release."""
    sums = []
    for records in (left, right):
        door = curator(records, factor)
        seen: list[np.ndarray] = []
        original = door._noisy
        door._noisy = lambda label, s, seen=seen, f=original: seen.append(s) or f(label, s)
        ask(door)
        sums.append([int(value) for value in seen[0]])
    return sum((a - b) ** 2 for a, b in zip(*sums, strict=True))


def centred_gradient(door: Curator, theta: float = 1.0) -> None:
    columns = np.array([0, 2, 3])
    door.centre(Centring(columns, np.array([0.3, -0.2, 0.0]), 0.1))
    door.gradient("it", Point(theta * np.array([5.0, -3.0, 100.0]), 2.0 * theta), clip=0.1)


CASES = {
    "column means": (lambda door: door.column_means("it"), COLUMN_SUMS),
    "target mean": (lambda door: door.target_mean("it"), TARGET_SUM),
    "centred gradient": (centred_gradient, gradient_factor(GRID.integer_norm**2)),
}


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=150)
@given(DATA, RECORDS)
def test_a_replaced_record_moves_it_within_the_charge(name: str, data: list, other: tuple) -> None:
    """The squared distance is at most the charged one, for any record against any other."""
    ask, factor = CASES[name]
    distance = moved(ask, data, [other, *data[1:]], factor)
    event = GaussianRelease("it", factor, UNIT, 30, 1).event()
    assert distance <= event.squared_sensitivity.under(Adjacency.REPLACE_ONE)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=150)
@given(DATA, RECORDS)
def test_a_removed_record_moves_it_within_the_charge(name: str, data: list, other: tuple) -> None:
    """Leaving a record out moves it by at most the add-remove charge."""
    ask, factor = CASES[name]
    distance = moved(ask, data, [*data, other], factor)
    event = GaussianRelease("it", factor, UNIT, 30, 1).event()
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
    ask, factor = CASES[name]
    if name == "centred gradient":
        ask = lambda door: centred_gradient(door, theta=0.0)  # noqa: E731 - residuals clip there
    event = GaussianRelease("it", factor, UNIT, 30, 1).event()
    charged = event.squared_sensitivity.under(Adjacency.REPLACE_ONE)
    assert moved(ask, [left], [right], factor) == pytest.approx(charged, rel=1e-5)
