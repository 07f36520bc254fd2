"""Huber's loss: squared near the prediction, absolute beyond a threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpfit.losses.base import Floats
from dpfit.losses.squared import Squared


@dataclass(frozen=True)
class Huber(Squared):
    """Least squares whose residual stops growing: ``l' = clip(m + 1/2 - y, +-threshold)``.

    Attributes
    ----------
    threshold : float
        On the scale of the mapped target, whose public range has length 1.
    """

    threshold: float

    name = "huber"

    def residual(self, margins: Floats, target: Floats) -> Floats:
        raw = super().residual(margins, target)
        return np.fmin(np.fmax(raw, -self.threshold), self.threshold)
