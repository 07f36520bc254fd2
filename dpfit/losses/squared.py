"""Squared loss, ``(m - y)^2 / 2`` with y mapped from its public range to [0, 1]."""

from __future__ import annotations

from dpfit.losses.base import Floats


class Squared:
    """Least squares around the middle of the target range.

    The margin is measured from 1/2, the middle of the mapped range: a public start that needs no
    share of the budget. ``|l'| <= 1`` wherever the prediction stays inside the range.
    """

    name = "squared"
    n_scores = 1

    def mean(self, margins: Floats) -> Floats:
        return margins + 0.5

    def residual(self, margins: Floats, target: Floats) -> Floats:
        return self.mean(margins) - target
