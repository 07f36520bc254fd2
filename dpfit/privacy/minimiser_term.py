"""Which random linear term has a given minimiser: what an attacker who knows the records computes.

Un-noised: for audits, whose records are synthetic or declared to be told about.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dpfit.design.grid import Grid
from dpfit.privacy.minimise import FittedRecords
from dpfit.privacy.objective import Objective
from dpfit.privacy.private_records import PrivateRecords

Floats: TypeAlias = NDArray[np.float64]

_MOST_DENSE: Final = 500  # columns; of more the determinant is left out


def minimised_records(records: PrivateRecords, grid: Grid, centre: float) -> FittedRecords:
    """What is minimised over, with targets from a public centre."""
    return FittedRecords(records.design, grid, records.target - centre, records.shares)


def linear_term(
    records: FittedRecords, objective: Objective, point: Floats
) -> tuple[Floats, float]:
    """The linear term whose minimiser a point is, and the Hessian's log-determinant there.

    Parameters
    ----------
    records : FittedRecords
        Those of a world.
    objective : Objective
        As charged.
    point : float64 array, shape (d + 1,)
        In units of the norm of rows; the constant column's last.

    Returns
    -------
    float64 array of shape (d + 1,), float
    """
    grid = records.grid
    rows = records.design.as_floats(grid.integer_norm)
    constant = np.full((rows.shape[0], 1), grid.intercept_integer / grid.integer_norm)
    Z = scipy.sparse.hstack([rows, constant], format="csr")
    errors = records.target - Z @ point
    shares = 1.0 if records.shares is None else records.shares
    term = Z.T @ (shares * objective.loss.score(errors)) - objective.ridge * point
    if len(point) > _MOST_DENSE:
        return term, 0.0
    curvature = (Z.T @ Z.multiply((shares * objective.loss.curvature(errors))[:, None])).toarray()
    hessian = curvature + objective.ridge * np.eye(len(point))
    return term, float(np.linalg.slogdet(hessian)[1])
