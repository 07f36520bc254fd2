"""Two neighbouring worlds, seen through the Curator, differ by what the ledger says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dense_rows import dense_design
from dpfit.design.grid import Grid, RowMap
from dpfit.losses.logistic import Logistic
from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.curator import Curator
from dpfit.privacy.gaussian_release import GaussianRelease, squared_factor
from dpfit.privacy.mechanisms.noise import ExactNoise
from dpfit.privacy.point import Point
from dpfit.privacy.private_records import PrivateRecords
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.random_bits import BitSource, RunKey

D = 64
GRID = Grid(1.0, RowMap.NORMALIZE, 20, True)


def gradient_release(count: int) -> GaussianRelease:
    factor = squared_factor(Quantity.GRADIENT, GRID, 0)
    return GaussianRelease("gradient", Quantity.GRADIENT, factor, 1 << 20, 41, count)


def releases(label: float, runs: int, seed: int) -> np.ndarray:
    """Integer releases at theta = 0 of three records, one of them with the given label."""
    rng = np.random.default_rng(7)
    release = gradient_release(runs)
    curator = Curator(
        records=PrivateRecords(
            dense_design(rng.standard_normal((3, D)), GRID), np.array([label, 0.0, 1.0])
        ),
        loss=Logistic(),
        grid=GRID,
        n_rows=3,
        releases=[release],
        noise=ExactNoise(BitSource(RunKey.from_seed(seed))),
    )
    unit = GRID.unit * 0.5 / release.unit / 3
    zero = Point(np.zeros(D), 0.0)
    rows = []
    for _ in range(runs):
        point = curator.gradient("gradient", zero, clip=0.5)
        rows.append(np.append(point.coefficients, point.intercept) / unit)
    return np.array(rows)


@pytest.mark.parametrize(
    "runs", [4_000, pytest.param(100_000, marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_the_gap_between_neighbours_is_the_charged_mu(runs: int) -> None:
    """Projected on the worst direction the worlds are N(0, 1) and N(mu, 1), mu as charged.

    The bounds are 6.1 standard errors, so a right sampler fails with probability below 1e-9; the
    key is fixed all the same. Half the sensitivity or noise off by a third falls outside.
    """
    ours, theirs = releases(0.0, runs, seed=1), releases(1.0, runs, seed=2)
    event = gradient_release(1).event()
    charged = compose([event], Adjacency.REPLACE_ONE).mu()
    # The worst direction is the record itself, known here because we made it.
    rng = np.random.default_rng(7)
    row = rng.standard_normal(3 * D)[:D]
    direction = np.append(row / np.linalg.norm(row), GRID.intercept_value)
    direction /= np.linalg.norm(direction)
    scale = 2.0**41
    left, right = ours @ direction / scale, theirs @ direction / scale
    assert left.mean() - right.mean() == pytest.approx(charged, abs=6.1 * math.sqrt(2 / runs))
    for world in (left, right):
        assert world.var() == pytest.approx(1.0, abs=6.1 * math.sqrt(2 / runs))
    # Orthogonal to the record nothing of it shows.
    side = np.zeros(D + 1)
    side[:2] = direction[1], -direction[0]
    side /= np.linalg.norm(side)
    assert (ours - theirs).mean(0) @ side / scale == pytest.approx(0, abs=6.1 * math.sqrt(2 / runs))
