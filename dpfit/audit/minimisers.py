"""The evidence in a released minimiser, for an attacker who knows both data sets.

Where a random vector b is in the objective, the released w is the minimiser for one b only, minus
the gradient of the rest of the objective there: its density is that of b times the determinant of
the Hessian (Chaudhuri, Monteleoni and Sarwate, 2011, theorem 9). Where b is added to the minimiser,
it is the difference. The noise of the grid is a trifle beside it and left out.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy.sparse

from dpfit.audit.stand_ins import Floats
from dpfit.privacy.events import MinimiserLaw
from dpfit.privacy.minimiser_release import VectorRelease
from dpfit.privacy.objective import Objective
from dpfit.privacy.quantity import Quantity

_MOST_DENSE: Final = 500  # columns; of more the determinant is left out, so the test is not best


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
    term, log_determinant = linear_term(world, objective, centre, released * norm)
    return _log_law(vector, term) + log_determinant


def linear_term(
    world: Any, objective: Objective, centre: float, point: Floats
) -> tuple[Floats, float]:
    """The linear term whose minimiser the point is, and the Hessian's log-determinant there."""
    grid, records = world.plan.grid, world._records
    rows = records.design.as_floats(grid.integer_norm)
    constant = np.full((rows.shape[0], 1), grid.intercept_integer / grid.integer_norm)
    Z = scipy.sparse.hstack([rows, constant], format="csr")
    errors = records.target - centre - Z @ point
    shares = 1.0 if records.shares is None else records.shares
    term = Z.T @ (shares * objective.loss.score(errors)) - objective.ridge * point
    if len(point) > _MOST_DENSE:
        return term, 0.0
    curvature = (Z.T @ Z.multiply((shares * objective.loss.curvature(errors))[:, None])).toarray()
    hessian = curvature + objective.ridge * np.eye(len(point))
    return term, float(np.linalg.slogdet(hessian)[1])


def _log_law(vector: VectorRelease, value: Floats) -> float:
    scaled = value / float(vector.scale)
    match vector.law:
        case MinimiserLaw.L2:
            return -float(np.linalg.norm(scaled))
        case MinimiserLaw.L1:
            return -float(np.abs(scaled).sum())
        case MinimiserLaw.GAUSSIAN:
            return -float(scaled @ scaled) / 2.0
