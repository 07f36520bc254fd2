"""The gradient over units as a question: each unit's own sum over its rows, shrunk, then added."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.grid import Grid
from dpfit.privacy.owner_release import RESIDUAL_BITS
from dpfit.privacy.private_records import PrivateRecords
from dpfit.privacy.questions import GradientSums

Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class OwnerGradientSums:
    """Sums over units; the constant's come last, shape (d + 1,) or (d + 1, k).

    Attributes
    ----------
    rows : GradientSums
        Gives every row its multiplier, as finely as `RESIDUAL_BITS` says.
    grid : Grid
        The record map.
    clip : float
        C: how many rows of the longest residual a unit may be as long as.
    bound : int
        What that length becomes.
    """

    rows: GradientSums
    grid: Grid
    clip: float
    bound: int

    def __call__(self, records: PrivateRecords) -> Integers:
        owners = records.owners
        assert owners is not None
        limit = self.clip * math.ldexp(self.grid.integer_norm, RESIDUAL_BITS)
        return owners.sums(self.rows.multipliers(records), limit=limit, bound=self.bound)
