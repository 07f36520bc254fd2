"""What one record can change in the score of a run of a search, by brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dense_rows import dense_design
from dpfit.design.grid import Grid, RowMap
from dpfit.losses.logistic import Logistic
from dpfit.privacy.centring import Centring
from dpfit.privacy.curator import Curator
from dpfit.privacy.gaussian_release import GaussianRelease, squared_factor
from dpfit.privacy.mechanisms.noise import NoNoise
from dpfit.privacy.point import Point
from dpfit.privacy.private_records import PrivateRecords
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.record_metrics import (
    ClassMetrics,
    CountMetrics,
    QuantileMetrics,
    RecordMetrics,
    ValueMetrics,
)

GRID = Grid(1.0, RowMap.NORMALIZE, 20, True)
FACTOR = squared_factor(Quantity.SCORE, GRID, 0)
UNIT = 1 << 20
ROWS = ([0.0, 0.0], [1.0, 0.0], [-3.0, 4.0], [1e308, -1e308], [5e-324, 0.0])
MODELS = (Point(np.array([1.0, -2.0]), 0.3), Point(np.array([1e150, -1e150]), 0.0, 2.0))
CENTRINGS = (None, Centring(np.array([0, 1]), np.array([0.2, -0.1]), 0.5))
SCORES: tuple[tuple[RecordMetrics, int, tuple[float, ...]], ...] = (
    (ClassMetrics(2, 4.0), 0, (0.0, 1.0)),
    (ValueMetrics(), 0, (-2.0, 0.0, 0.4, 1.0, 3.0)),
    (ValueMetrics(), 1, (-2.0, 0.0, 0.4, 1.0, 3.0)),
    (QuantileMetrics(0.2), 1, (-2.0, 0.0, 0.4, 1.0, 3.0)),
    (CountMetrics(9.0, 4.0), 1, (0.0, 0.1, 1.0)),
)


def total(
    records: list[tuple[list[float], float]],
    metrics: RecordMetrics,
    which: int,
    point: Point,
    centring: Centring | None,
) -> int:
    """The exact sum, in integers."""
    design = dense_design(np.array([row for row, _ in records]).reshape(-1, 2), GRID, finer=GRID)
    release = GaussianRelease("score", Quantity.SCORE, FACTOR, UNIT, 30, 1)
    curator = Curator(
        records=PrivateRecords(design, np.array([y for _, y in records])),
        loss=Logistic(),
        grid=GRID,
        n_rows=1,
        releases=[release],
        noise=NoNoise(),
    )
    return round(curator.score("score", metrics, which, point, centring) * UNIT)


@pytest.mark.parametrize(("metrics", "which", "targets"), SCORES)
@pytest.mark.parametrize("centring", CENTRINGS, ids=["grid", "centred"])
def test_no_record_moves_a_score_beyond_the_charge(
    metrics: RecordMetrics, which: int, targets: tuple[float, ...], centring: Centring | None
) -> None:
    """Replaced or zeroed out, beside another; and its own part is the same beside any other."""
    beside = ([0.6, 0.8], 1.0)
    for point in MODELS:
        alone = total([beside], metrics, which, point, centring)
        parts = []
        for record in itertools.product(ROWS, targets):
            both = total([record, beside], metrics, which, point, centring)
            parts.append(both - alone)
            assert parts[-1] == total([record], metrics, which, point, centring)
        assert max(parts) - min(parts) <= UNIT * FACTOR.replace_one**0.5
        assert max(map(abs, parts)) <= UNIT * FACTOR.add_remove**0.5


def test_a_score_is_released_once() -> None:
    """And a Curator without a charge for one has none."""
    release = GaussianRelease("score", Quantity.SCORE, FACTOR, UNIT, 30, 1)
    curator = Curator(
        records=PrivateRecords(dense_design(np.eye(2), GRID, finer=GRID), np.ones(2)),
        loss=Logistic(),
        grid=GRID,
        n_rows=2,
        releases=[release],
        noise=NoNoise(),
    )
    asked = ("score", SCORES[0][0], 0, MODELS[0], None)
    curator.score(*asked)
    with pytest.raises(RuntimeError, match="not charged"):
        curator.score(*asked)
