"""Poisson loss, ``e^m - y m`` with y a count over the top of its public range."""

from __future__ import annotations

from dpfit.losses.base import Floats
from dpfit.losses.exponential import exponential


class Poisson:
    """Negative log-likelihood of a Poisson rate under the log link.

    Scaling counts to [0, 1] only shifts the intercept. ``l'`` has no bound of its own: it is the
    residual clip that bounds a record's share.
    """

    name = "poisson"
    n_scores = 1

    def mean(self, margins: Floats) -> Floats:
        """``e^m``, within e^-40 to e^40."""
        return exponential(margins)

    def residual(self, margins: Floats, target: Floats) -> Floats:
        return self.mean(margins) - target
