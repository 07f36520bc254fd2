"""Disjoint batches: each record is in one, which is asked once; so it is charged once."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dense_rows import dense_design
from dpfit.design.grid import Grid, RowMap
from dpfit.losses.absolute import Absolute
from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.curator import Curator
from dpfit.privacy.gaussian_release import GaussianRelease, plan_release
from dpfit.privacy.laplace_release import LaplaceRelease, plan_laplace
from dpfit.privacy.mechanisms.noise import NoNoise
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.point import Point
from dpfit.privacy.private_records import PrivateRecords
from dpfit.privacy.quantity import Quantity

GRID = Grid(1.0, RowMap.CLIP, 20, True)
N, D, BATCHES = 17, 2, 5
CLIP = 1.4  # of the 0.7 quantile
PLANNED = PlannedRelease("it", Quantity.BATCH_GRADIENT, BATCHES, Fraction(1), chosen=D)
adjacencies = pytest.mark.parametrize("adjacency", Adjacency)
laws = pytest.mark.parametrize("laplace", [False, True])


def planned(adjacency: Adjacency, *, laplace: bool) -> GaussianRelease | LaplaceRelease:
    if laplace:
        one = replace(PLANNED, laplace=True)
        half = Fraction(1, 2)
        return plan_laplace(one, GRID, unit_bits=20, rho=None, epsilon=half, adjacency=adjacency)
    return plan_release(PLANNED, GRID, unit_bits=20, squared_mu=Fraction(1, 4), adjacency=adjacency)


def door(
    X: np.ndarray, y: np.ndarray, release: GaussianRelease | LaplaceRelease, present: np.ndarray
) -> Curator:
    return Curator(
        records=PrivateRecords(dense_design(X, GRID), y, None, present),
        loss=Absolute(0.7),
        grid=GRID,
        n_rows=N,
        releases=[release],
        noise=NoNoise(),
    )


def integers(curator: Curator, release: GaussianRelease | LaplaceRelease) -> np.ndarray:
    """The sums of all batches, one after the other, at points of their own."""
    unit = GRID.unit * CLIP / release.unit / N * BATCHES
    points = [Point(np.array([0.3 * k, -0.1]), 0.2) for k in range(BATCHES)]
    gradients = [curator.batch_gradient("it", point, clip=CLIP) for point in points]
    return np.array([np.rint(np.append(g.coefficients, g.intercept) / unit) for g in gradients])


@adjacencies
@laws
def test_all_batches_are_charged_as_one(adjacency: Adjacency, laplace: bool) -> None:
    """The whole allowance is there for each of them (parallel composition)."""
    event = planned(adjacency, laplace=laplace).event()
    assert event.count == 1
    cost = compose([event], adjacency)
    spent, whole = (cost.pure, Fraction(1, 2)) if laplace else (cost.gaussian, Fraction(1, 4))
    assert spent is not None
    assert whole * (1 - Fraction(1, 10**5)) <= spent <= whole


@laws
def test_batches_hold_each_record_once(laplace: bool) -> None:
    """Their sums are those of the full gradient, and records show in one batch alone."""
    release = planned(Adjacency.REPLACE_ONE, laplace=laplace)
    rng = np.random.default_rng(0)
    X, y, seen = rng.normal(size=(N, D)) / 4, rng.random(N), []
    whole = integers(door(X, y, release, np.ones(N)), release)
    for record in range(N):
        present = np.ones(N)
        present[record] = 0.0
        without = integers(door(X, y, release, present), release)
        changed = np.flatnonzero(np.any(whole != without, axis=1))
        assert len(changed) == 1
        seen.append(int(changed[0]))
    sizes = np.bincount(seen, minlength=BATCHES)
    assert sizes.sum() == N
    assert sizes.max() - sizes.min() <= 1


@adjacencies
@laws
def test_a_neighbour_moves_one_batch_by_what_is_charged(
    adjacency: Adjacency, laplace: bool
) -> None:
    """Over adversarial records: never more in l2 (and l1), and for some pair near it."""
    release = planned(adjacency, laplace=laplace)
    event = release.event()
    rng, largest = np.random.default_rng(1), 0
    rows = [[1, 0], [-1, 0], [0.6, 0.8], [-0.6, -0.8], [0, 0]]
    base_X, base_y = rng.normal(size=(N, D)) / 4, rng.random(N)
    for (one, other), (y, other_y) in itertools.product(
        itertools.product(rows, rows), [(0.0, 1.0), (1.0, 1.0)]
    ):
        sums = []
        for row, target, weight in (
            (one, y, 1.0),
            (other, other_y, float(adjacency is Adjacency.REPLACE_ONE)),
        ):
            X, targets, present = base_X.copy(), base_y.copy(), np.ones(N)
            X[7], targets[7], present[7] = row, target, weight
            sums.append(integers(door(X, targets, release, present), release))
        moved = [int(value) for value in (sums[0] - sums[1]).ravel()]
        squared = sum(value * value for value in moved)
        largest = max(largest, squared)
        assert squared <= event.squared_sensitivity.under(adjacency)
        if laplace:
            assert sum(map(abs, moved)) <= event.l1_sensitivity.under(adjacency)
    assert largest >= 0.9 * event.squared_sensitivity.under(adjacency)


@laws
def test_there_is_no_batch_after_the_last(laplace: bool) -> None:
    """A batch that was asked is not asked again: the next question is refused."""
    release = planned(Adjacency.REPLACE_ONE, laplace=laplace)
    curator = door(np.zeros((N, D)), np.zeros(N), release, np.ones(N))
    integers(curator, release)
    with pytest.raises(RuntimeError, match="charged"):
        curator.batch_gradient("it", Point(np.zeros(D), 0.0), clip=CLIP)
