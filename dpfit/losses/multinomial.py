"""Multinomial loss, ``log sum_c e^(m_c) - m_y`` with y a class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpfit.losses.base import Floats
from dpfit.losses.exponential import exponential


@dataclass(frozen=True)
class Multinomial:
    """Negative log-likelihood of one of k classes; ``|l'|_2 <= sqrt(2)``.

    Attributes
    ----------
    n_scores : int
        k.
    """

    n_scores: int

    name = "multinomial"

    def mean(self, margins: Floats) -> Floats:
        """Softmax: the probability of each class, shape (n, k).

        Classes are added up one after the other, so that no order of a library's sum matters.
        """
        weights = exponential(margins - margins.max(axis=1, keepdims=True))
        total = np.zeros(len(weights))
        for column in weights.T:
            total += column
        return weights / total[:, None]

    def residual(self, margins: Floats, target: Floats) -> Floats:
        """``p - e_y``, shape (n, k)."""
        residual = self.mean(margins)
        residual[np.arange(len(residual)), target.astype(np.intp)] -= 1.0
        return residual
