"""The evidence in a released minimiser, for an attacker who knows both data sets.

Where a random vector b is in the objective, the released w is the minimiser for one b only, minus
the gradient of the rest of the objective there: its density is that of b times the determinant of
the Hessian (Chaudhuri, Monteleoni and Sarwate, 2011, theorem 9). Where b is added to the minimiser,
it is the difference. The noise of the grid is a trifle beside it and left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfit.audit.stand_ins import Floats
from dpfit.privacy.events import MinimiserLaw
from dpfit.privacy.minimiser_release import VectorRelease
from dpfit.privacy.minimiser_term import linear_term, minimised_records
from dpfit.privacy.objective import Objective
from dpfit.privacy.quantity import Quantity


def random_vector(world: Any) -> VectorRelease | None:
    """The random vector that protects a minimiser; None where noise on the grid does."""
    vectors = (one for one in world.plan.releases if isinstance(one, VectorRelease))
    return next(vectors, None)


def log_density(
    world: Any, objective: Objective, centre: float, released: Floats, minimiser: Floats
) -> float:
    """The log-density of a released point in a world, up to a constant.

    Parameters
    ----------
    world : LinearFit
        Planned; one with a random vector.
    objective : Objective
        As charged.
    centre : float
        Public; targets are measured from it.
    released, minimiser : float64 arrays, shape (d + 1,)
        The released point, and the world's without any noise.
    """
    vector = random_vector(world)
    assert vector is not None
    norm = world.plan.grid.row_norm
    if vector.quantity is Quantity.MINIMISER_SHIFT:
        return _log_law(vector, (released - minimiser) * norm)
    records = minimised_records(world._records.here(), world.plan.grid, centre)
    term, log_determinant = linear_term(records, objective, released * norm)
    return _log_law(vector, term) + log_determinant


def _log_law(vector: VectorRelease, value: Floats) -> float:
    scaled = value / float(vector.scale)
    match vector.law:
        case MinimiserLaw.L2:
            return -float(np.linalg.norm(scaled))
        case MinimiserLaw.L1:
            return -float(np.abs(scaled).sum())
        case MinimiserLaw.GAUSSIAN:
            return -float(scaled @ scaled) / 2.0
