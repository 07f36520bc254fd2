"""From residuals to the integers that multiply the records: the last operation is their bound."""

from __future__ import annotations

import math
from typing import Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
_Number = TypeVar("_Number", np.float64, np.int64)

_LARGEST: Final = 2**63 - 1
_SHRINK: Final = 1.0 - 2.0**-20
_SHRINK_ROUNDS: Final = 3


def residual_integers(
    residual: Floats, clip: float, limits: int | Integers, shares: Floats | None
) -> Integers:
    """Each record's integer multipliers, a function of that record and public numbers alone.

    Parameters
    ----------
    residual : float64 array, shape (n,) or (n, k)
        ``l'``, with a column for each of k classes when there are several.
    clip : float
        tau: bound on ``|l'|``, of k classes in the l2 norm.
    limits : int or int64 array, shape (n,)
        What tau becomes.
    shares : float64 array, shape (n,), or None
        Weight of each record over the largest one, in [0, 1].

    Returns
    -------
    int64 array, as ``residual``
        With l2 norm at most the record's limit, checked in integers.
    """
    if residual.ndim == 2:
        return _of_classes(residual, clip, limits, shares)
    part = np.fmin(np.fmax(residual, -clip), clip) / clip  # fmax turns NaN into -clip
    if shares is not None:
        part = part * shares
    integers = np.rint(part * limits).astype(np.int64)
    return np.asarray(np.clip(integers, -limits, limits))


def _of_classes(
    residual: Floats, clip: float, limits: int | Integers, shares: Floats | None
) -> Integers:
    """Truncated toward zero, then shrunk, or zeroed, where the integer norm is still too large.

    No entry exceeds the limit, which is small enough for the sum of their squares not to wrap.
    """
    n, k = residual.shape
    most = math.isqrt(_LARGEST // max(k, 1))
    capped: Integers = np.minimum(np.broadcast_to(limits, n), most)
    residual = np.nan_to_num(residual, posinf=1.0, neginf=-1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        scale = capped / np.fmax(np.sqrt(_squared_length(residual)), clip)
        if shares is not None:
            scale = scale * shares
        scaled = residual * scale[:, None]
    bound = capped.astype(np.float64)[:, None]
    integers = np.trunc(np.fmin(np.fmax(scaled, -bound), bound)).astype(np.int64)
    squared_limits = capped * capped
    for _ in range(_SHRINK_ROUNDS):
        over = _squared_length(integers) > squared_limits
        if not over.any():
            return integers
        integers[over] = np.trunc(integers[over] * _SHRINK).astype(np.int64)
    integers[_squared_length(integers) > squared_limits] = 0
    return integers


def _squared_length(rows: NDArray[_Number]) -> NDArray[_Number]:
    """Class after class, so that a record's sum does not depend on where it stands."""
    total = np.zeros(len(rows), rows.dtype)
    for column in rows.T:
        total += column * column
    return total
