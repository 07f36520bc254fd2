"""What an algorithm hands back: a sparse score function of a mapped row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.privacy.centring import Centring
from dpfit.privacy.point import Scores

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Outcome:
    """Coefficients of the fitted model.

    Without a centring the score of a row is ``offset + intercept b + sum_j values_j x_j`` with b
    the grid's constant; with one it is ``offset + theta.(z / |z|)``, z the centred row.

    Attributes
    ----------
    columns : int64 array, shape (m,)
        Sorted columns the model uses.
    values : float64 array, shape (m,) or (m, k)
        Their coefficients, for each of k classes when there are several.
    intercept : float or float64 array, shape (k,)
        Coefficient of the constant column.
    offset : float or float64 array, shape (k,)
        Added to the score.
    centring : Centring or None
        Over the same columns.
    """

    columns: Integers
    values: Floats
    intercept: Scores
    offset: Scores = 0.0
    centring: Centring | None = None
