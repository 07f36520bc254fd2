"""A point of the model space in integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class IntegerPoint:
    """A point of the model space on its own public grid.

    Attributes
    ----------
    support : int64 array, shape (m,)
        Sorted columns with a non-zero coefficient.
    values : int64 array, shape (m,) or (m, k)
        Their integers, for each of k classes when there are several.
    intercept : int64 array, shape () or (k,)
        The integers of the intercept column's coefficients.
    """

    support: Integers
    values: Integers
    intercept: Integers
