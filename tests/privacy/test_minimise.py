"""What the solver of a perturbed objective promises about the point it hands back."""

from __future__ import annotations

import numpy as np
import pytest

from dense_rows import dense_design
from dpfit.design.grid import Grid, RowMap, grid_bits
from dpfit.losses.smoothed import HuberSmoothed
from dpfit.privacy import minimise as solver
from dpfit.privacy.objective import Objective

GRID = Grid(1.0, RowMap.CLIP, 20, True)


def minimum(within: float) -> solver.Minimum:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(300, 4))
    y = X[:, 0] + rng.standard_t(2, 300)
    records = solver.Records(dense_design(X, GRID), GRID, y, None)
    objective = Objective(HuberSmoothed(0.5, 0.05), 0.5)
    return solver.minimise(records, objective, np.ones(5), bits=grid_bits(300)[1], within=within)


@pytest.mark.parametrize("steps", range(6))
def test_the_certificate_is_about_the_point_that_is_returned(
    monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """Out of steps or not, the distance told is that of the point at hand, not of one before it."""
    best = minimum(1e-9).point
    monkeypatch.setattr(solver, "_MOST_STEPS", steps)
    found = minimum(0.0)
    assert np.linalg.norm(found.point - best) <= found.distance + 1e-9
    assert minimum(found.distance).point.tolist() == found.point.tolist()
