"""From shares of one to the integers that a sum adds up: the last operation is their bound."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


def share_integers(shares: Floats, unit: int) -> Integers:
    """Shares, each a record's own, as integers from 0 to the unit; NaN counts as 0."""
    parts = np.rint(np.fmin(np.fmax(shares, 0.0), 1.0) * unit).astype(np.int64)
    return np.asarray(np.clip(parts, 0, unit))
