"""Points of the model space: what a gradient is asked at, and the integers it is taken with.

Public: everything here is a function of what was released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.integer_point import IntegerPoint

Floats: TypeAlias = NDArray[np.float64]
Scores: TypeAlias = float | Floats
"""One number, or one for each class."""

_MARGIN_BITS: Final = 53  # |margin| <= 2^53 by Cauchy-Schwarz: exact as an int64 and as a float64


@dataclass(frozen=True)
class Point:
    """A model to ask the gradient at, or a gradient.

    Attributes
    ----------
    coefficients : float64 array, shape (d,) or (d, k)
        On the records as the Curator holds them now, for each of k classes when there are several.
    intercept : float or float64 array, shape (k,)
        Coefficient of the constant column.
    offset : float or float64 array, shape (k,)
        Public numbers added to every margin.
    """

    coefficients: Floats
    intercept: Scores
    offset: Scores = 0.0


def quantised(point: Point, squared_norm: int) -> tuple[IntegerPoint, int]:
    """A public point on the finest grid 2^-bits for which every margin is exact.

    ``sqrt(K2) |theta_q| <= 2^53``, for each class, bounds every partial sum of a margin in any
    order, so margins are exact integers. What is not finite becomes zero.

    Parameters
    ----------
    point : Point
        Any floats.
    squared_norm : int
        K2, the bound on a record's squared integer norm.

    Returns
    -------
    tuple of IntegerPoint and int
        The integers ``rint(theta 2^bits)`` and ``bits``.
    """
    coefficients = point.coefficients
    support = np.flatnonzero(coefficients if coefficients.ndim == 1 else coefficients.any(axis=1))
    stacked = np.concatenate([coefficients[support], np.asarray(point.intercept)[None]])
    stacked = np.nan_to_num(stacked, posinf=0.0, neginf=0.0)
    largest = float(np.max(np.abs(stacked)))
    bits = 0
    if largest > 0.0:
        # log2 of sqrt(K2) |theta|, rounded up, with one bit for the rounding of the coefficients.
        norm = float(np.max(np.sqrt(np.sum((stacked / largest) ** 2, axis=0))))
        size = sum(math.frexp(part)[1] for part in (largest, norm, math.sqrt(squared_norm)))
        bits = _MARGIN_BITS - 1 - size
    integers = np.rint(np.ldexp(stacked, bits)).astype(np.int64)
    columns = integers[:-1]
    kept = np.flatnonzero(columns if columns.ndim == 1 else columns.any(axis=1))
    return IntegerPoint(support[kept], columns[kept], integers[-1]), bits
