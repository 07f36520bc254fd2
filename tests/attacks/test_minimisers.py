"""The laws of the evidence in a released minimiser."""

from __future__ import annotations

import numpy as np
import pytest

from dpfit.audit.stand_ins import Silence
from dpfit.audit.trial_keys import TrialKeys
from dpfit.audit.two_worlds import white_box_scores
from dpfit.audit.witness import flat
from dpfit.audit.worlds import linear_worlds
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.request import FitRequest
from dpfit.privacy.calibration import Budget
from dpfit.privacy.minimise import FittedRecords
from dpfit.privacy.minimiser_term import linear_term, minimised_records

CENTRE = 0.4


def worlds(algorithm: str, noise: str) -> tuple[LinearFit, LinearFit]:
    budget = Budget.from_request(1.0, None, None, None, pure=True)
    asked = FitRequest(None, budget, "synthetic", algorithm=algorithm, loss="absolute", noise=noise)
    return linear_worlds(asked, 20, 2)


def records(world: LinearFit) -> FittedRecords:
    return minimised_records(world._records, world.plan.grid, CENTRE)


def test_the_linear_term_is_that_whose_minimiser_a_point_is() -> None:
    """Zero at the minimiser without one."""
    world = worlds("median-objective", "l2")[0]
    objective = world.plan.algorithm.objective
    minimum = flat(world.curator(Silence()).minimiser("minimiser", objective, CENTRE))
    term, _ = linear_term(records(world), objective, minimum * world.plan.grid.row_norm)
    assert np.linalg.norm(minimum) > 0.01
    assert np.linalg.norm(term) < 1e-3


def test_the_determinant_is_that_of_the_map_from_points_to_terms() -> None:
    """By differences, away from the kinks of the loss."""
    world = worlds("median-objective", "l2")[0]
    objective = world.plan.algorithm.objective
    point, step = np.array([0.6, 0.013, 0.021]), 1e-6

    def term(at: np.ndarray) -> np.ndarray:
        return linear_term(records(world), objective, at)[0]

    moves = step * np.eye(3)
    jacobian = [(term(point + move) - term(point - move)) / (2 * step) for move in moves]
    _, log_determinant = linear_term(records(world), objective, point)
    assert log_determinant == pytest.approx(np.linalg.slogdet(np.array(jacobian))[1], rel=1e-6)
    assert log_determinant > 3 * np.log(objective.ridge) + 0.1


@pytest.mark.parametrize("algorithm", ["median-objective", "median-irls"])
@pytest.mark.parametrize("noise", ["l2", "l1"])
def test_the_evidence_is_within_a_pure_claim(algorithm: str, noise: str) -> None:
    """Whatever is released, and in no trial more."""
    scores = white_box_scores(worlds(algorithm, noise), 12, TrialKeys(1), lambda done: None)
    assert 0.05 < np.abs(scores).max() <= 1.0
