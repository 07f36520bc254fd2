"""Logistic loss, ``log(1 + e^m) - y m`` with y in {0, 1}."""

from __future__ import annotations

import numpy as np

from dpfit.losses.base import Floats
from dpfit.losses.exponential import exponential


class Logistic:
    """Negative log-likelihood of a Bernoulli target; ``|l'| <= 1``."""

    name = "logistic"
    n_scores = 1

    def mean(self, margins: Floats) -> Floats:
        """``1 / (1 + e^-m)``, never through a large exponential."""
        p = 1.0 / (1.0 + exponential(-np.abs(margins)))
        return np.where(margins >= 0.0, p, 1.0 - p)

    def residual(self, margins: Floats, target: Floats) -> Floats:
        return self.mean(margins) - target
