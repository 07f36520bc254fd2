"""Absolute loss and its tilt to other quantiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpfit.losses.base import Floats
from dpfit.losses.squared import Squared


@dataclass(frozen=True)
class Absolute(Squared):
    """``|r| + tilt r`` with ``r = y - m - 1/2``: twice the pinball loss of a quantile.

    Attributes
    ----------
    quantile : float
        Between 0 and 1; a half is the median.
    """

    quantile: float = 0.5

    name = "absolute"

    @property
    def tilt(self) -> float:
        """``2 q - 1``."""
        return 2.0 * self.quantile - 1.0

    @property
    def largest_residual(self) -> float:
        """The bound on ``|l'|``."""
        return 1.0 + abs(self.tilt)

    def residual(self, margins: Floats, target: Floats) -> Floats:
        """A subgradient: the sign of the error, zero where there is none, less the tilt."""
        return np.sign(super().residual(margins, target)) - self.tilt
