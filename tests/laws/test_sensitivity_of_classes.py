"""Sensitivity of class gradients, counts, weights, offsets and exposures, by brute force."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dense_rows import dense_design
from dpfit.design.grid import Grid, RowMap
from dpfit.losses.base import Loss
from dpfit.losses.huber import Huber
from dpfit.losses.logistic import Logistic
from dpfit.losses.multinomial import Multinomial
from dpfit.losses.poisson import Poisson
from dpfit.losses.squared import Squared
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.centring import Centring
from dpfit.privacy.curator import Curator
from dpfit.privacy.gaussian_release import GaussianRelease, squared_factor, with_room
from dpfit.privacy.mechanisms.noise import NoNoise
from dpfit.privacy.point import Point
from dpfit.privacy.private_records import PrivateRecords
from dpfit.privacy.quantity import Quantity

D = 3
GRID = Grid(1.0, RowMap.NORMALIZE, 20, True)
UNIT = 1 << 20
CHOSEN = np.array([0, 2])
LOSSES: dict[str, Loss] = {
    "three classes": Multinomial(3),
    "five classes": Multinomial(5),
    "poisson": Poisson(),
    "huber": Huber(0.1),
    "squared": Squared(),
    "logistic": Logistic(),
}


@dataclass(frozen=True)
class Record:
    """What one person brings; ``target`` is a class, modulo their number, where there are some."""

    row: tuple[float, ...]
    target: float
    offset: float = 0.0
    share: float = 1.0


VALUES = st.one_of(st.floats(-10, 10), st.sampled_from([0.0, 1.0, -1.0, 1e308, -1e308, 5e-324]))
OFFSETS = st.one_of(
    st.floats(-10, 10), st.sampled_from([1e308, -1e308, -745.0, -40.0, 0.0, 1e-300, 709.0])
)
RECORDS = st.builds(
    Record,
    st.tuples(*[VALUES] * D),
    st.one_of(st.integers(0, 4).map(float), st.floats(-2.0, 3.0)),
    OFFSETS,
    st.floats(0.0, 1.0),
)
DATA = st.lists(RECORDS, max_size=3)
SIZES = st.sampled_from([0.0, 1e-3, 1.0, 30.0, 1e4, 1e300])
CLIPS = st.sampled_from([0.1, 0.9, 1e-300, 1e300])


class Door(Curator):
    """Remembers the integers that are noised."""

    sums: list[int]

    def __init__(self, **facts: Any) -> None:
        super().__init__(**facts)
        self._charged.noisy = self._watch

    def _watch(self, release: GaussianRelease, sums: np.ndarray) -> np.ndarray:
        self.sums = [int(value) for value in sums.ravel()]
        return sums


def curator(loss: Loss, release: GaussianRelease, records: list[Record]) -> Door:
    rows = np.array([record.row for record in records], np.float64).reshape(-1, D)
    target = np.array([record.target for record in records])
    if loss.n_scores > 1:
        target = np.floor(np.abs(target)) % loss.n_scores
    shifted = isinstance(loss, Poisson | Logistic) and not release.refined
    return Door(
        records=PrivateRecords(
            dense_design(rows, GRID),
            target,
            np.array([record.offset for record in records]) if shifted else None,
            np.array([record.share for record in records]),
        ),
        loss=loss,
        grid=GRID,
        n_rows=1,
        releases=[release],
        noise=NoNoise(),
    )


def release_of(quantity: Quantity, *, refined: bool = False) -> GaussianRelease:
    factor = squared_factor(quantity, GRID, len(CHOSEN))
    factor = with_room(factor) if refined else factor
    return GaussianRelease("it", quantity, factor, UNIT, 30, 1, len(CHOSEN), refined)


def gradient_sums(
    loss: Loss, release: GaussianRelease, records: list[Record], size: float, clip: float
) -> list[int]:
    """The integers behind a gradient at a point of that size."""
    door = curator(loss, release, records)
    if release.quantity is Quantity.UNIT_GRADIENT:
        door.centre(Centring(CHOSEN, np.array([0.3, -0.2]), 0.1))
    shape = (door.n_features + 1, loss.n_scores) if loss.n_scores > 1 else (door.n_features + 1,)
    theta = size * np.random.default_rng(7).standard_normal(shape)
    columns = CHOSEN if release.quantity is Quantity.PARTIAL_GRADIENT else None
    door.gradient("it", Point(theta[:-1], theta[-1]), clip=clip, columns=columns)
    return door.sums


def distance(left: list[int], right: list[int]) -> int:
    return sum((a - b) ** 2 for a, b in zip(left, right, strict=True))


GRADIENTS = [
    (name, quantity)
    for name, loss in LOSSES.items()
    for quantity in (Quantity.GRADIENT, Quantity.UNIT_GRADIENT, Quantity.PARTIAL_GRADIENT)
    if loss.n_scores == 1 or quantity is not Quantity.PARTIAL_GRADIENT
]


@pytest.mark.parametrize(("name", "quantity"), GRADIENTS)
@settings(max_examples=60)
@given(DATA, RECORDS, RECORDS, SIZES, CLIPS)
def test_a_record_moves_a_gradient_within_both_charges(
    name: str,
    quantity: Quantity,
    data: list[Record],
    one: Record,
    other: Record,
    size: float,
    clip: float,
) -> None:
    """Replaced or left out, with any weight and offset, at points of any size."""
    release = release_of(quantity)
    charge = release.event().squared_sensitivity
    loss = LOSSES[name]
    without, first, second = (
        gradient_sums(loss, release, [*data, *more], size, clip) for more in ([], [one], [other])
    )
    assert distance(first, second) <= charge.under(Adjacency.REPLACE_ONE)
    assert distance(first, without) <= charge.under(Adjacency.ADD_REMOVE)


@settings(max_examples=60)
@given(DATA, RECORDS, RECORDS, SIZES)
def test_weights_do_not_break_the_logistic_sensitivity(
    data: list[Record], one: Record, other: Record, size: float
) -> None:
    """A weighted gradient lies between zero and the whole one, so the refined bound holds."""
    release = release_of(Quantity.GRADIENT, refined=True)
    charge = release.event().squared_sensitivity
    without, first, second = (
        gradient_sums(Logistic(), release, [*data, *more], size, 0.9)
        for more in ([], [one], [other])
    )
    assert distance(first, second) <= charge.under(Adjacency.REPLACE_ONE)
    assert distance(first, without) <= charge.under(Adjacency.ADD_REMOVE)


@pytest.mark.parametrize("k", [3, 5])
def test_opposite_residuals_attain_the_charge_of_classes(k: int) -> None:
    """Where two classes are sure to share, one record in either is 2 tau from the other."""
    release = release_of(Quantity.GRADIENT)
    theta = np.full((D, k), -1e3)
    theta[0, :2] = 1e3
    sums = []
    for target in (0.0, 1.0):
        door = curator(Multinomial(k), release, [Record((1.0, 0.0, 0.0), target)])
        door.gradient("it", Point(theta, np.zeros(k)), clip=0.1)
        sums.append(door.sums)
    charged = release.event().squared_sensitivity.under(Adjacency.REPLACE_ONE)
    assert distance(*sums) == pytest.approx(charged, rel=1e-5)


@pytest.mark.parametrize("k", [3, 5])
def test_opposite_rows_attain_the_charge_of_centred_classes(k: int) -> None:
    """At zero, x and -x of one class are 2 tau apart, up to the constant column's share."""
    release = release_of(Quantity.UNIT_GRADIENT)
    sums = []
    for sign in (1.0, -1.0):
        door = curator(Multinomial(k), release, [Record((sign, 0.0, 0.0), 1.0)])
        door.centre(Centring(CHOSEN, np.zeros(2), 1e-3))
        door.gradient("it", Point(np.zeros((2, k)), np.zeros(k)), clip=0.1)
        sums.append(door.sums)
    charged = release.event().squared_sensitivity.under(Adjacency.REPLACE_ONE)
    assert distance(*sums) == pytest.approx(charged, rel=1e-4)


@given(DATA, RECORDS, RECORDS)
def test_class_counts_move_by_their_charge(data: list[Record], one: Record, other: Record) -> None:
    """A record counts once, for its class: squared 2 if replaced by another class, 1 left out."""
    release = release_of(Quantity.CLASS_SUMS)
    charge = release.event().squared_sensitivity
    sums = []
    for more in ([], [one], [other]):
        door = curator(Multinomial(5), release, [*data, *more])
        door.class_means("it")
        sums.append(door.sums)
    differ = int(abs(one.target)) % 5 != int(abs(other.target)) % 5
    moved = distance(sums[1], sums[2])
    assert moved == (charge.under(Adjacency.REPLACE_ONE) if differ else 0)
    assert distance(sums[0], sums[1]) == charge.under(Adjacency.ADD_REMOVE)


@settings(max_examples=200)
@given(DATA, RECORDS, RECORDS)
def test_counts_and_exposures_move_within_their_charge(
    data: list[Record], one: Record, other: Record
) -> None:
    """Neither counts outside their range nor any exposure is more than 1."""
    release = release_of(Quantity.TARGET_AND_EXPOSURE_SUMS)
    charge = release.event().squared_sensitivity
    sums = []
    for more in ([], [one], [other]):
        door = curator(Poisson(), release, [*data, *more])
        door.target_and_exposure_means("it")
        sums.append(door.sums)
    assert distance(sums[1], sums[2]) <= charge.under(Adjacency.REPLACE_ONE)
    assert distance(sums[0], sums[1]) <= charge.under(Adjacency.ADD_REMOVE)


def test_the_charge_of_counts_and_exposures_is_attained() -> None:
    """Nothing over no exposure against the top over the largest one."""
    release = release_of(Quantity.TARGET_AND_EXPOSURE_SUMS)
    sums = []
    for target, offset in ((0.0, -1e308), (1.0, 0.0)):
        door = curator(Poisson(), release, [Record((1.0, 0.0, 0.0), target, offset)])
        door.target_and_exposure_means("it")
        sums.append(door.sums)
    charge = release.event().squared_sensitivity
    assert distance(*sums) == charge.under(Adjacency.REPLACE_ONE)
    assert distance(sums[1], [0, 0]) == charge.under(Adjacency.ADD_REMOVE)


def test_a_record_without_offset_has_the_whole_exposure() -> None:
    """Its exposure is 1, and the means are those of the definition."""
    records = PrivateRecords(dense_design(np.array([[1.0, 0.0, 0.0]]), GRID), np.array([0.25]))
    release = release_of(Quantity.TARGET_AND_EXPOSURE_SUMS)
    door = Curator(
        records=records, loss=Poisson(), grid=GRID, n_rows=1, releases=[release], noise=NoNoise()
    )
    assert door.target_and_exposure_means("it") == (0.25, 1.0)
