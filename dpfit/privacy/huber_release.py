"""A Huber release as a mechanism: its integer sensitivities, its scale and its charge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpfit.privacy.adjacency import PerAdjacency
from dpfit.privacy.events import HuberEvent
from dpfit.privacy.quantity import Quantity


def huber_variance(knee: float) -> float:
    """V(a), the variance of Huber noise of scale one (methods, 4.1).

    Parameters
    ----------
    knee : float
        a.
    """
    normal = math.sqrt(2.0 * math.pi) * math.erf(knee / math.sqrt(2.0))
    height = math.exp(-(knee**2) / 2.0)
    mass = normal + 2.0 / knee * height
    return (normal + height * (4.0 / knee + 4.0 / knee**3)) / mass


@dataclass(frozen=True)
class HuberRelease:
    """``count`` releases of an integer vector plus ``floor(2^s X)`` on every coordinate.

    Attributes
    ----------
    label : str
        What is released, as the ledger calls it.
    quantity : Quantity
        The only question that this release answers.
    l1_factor : PerAdjacency of int
        l1 sensitivity in units of ``unit``.
    squared_factor : PerAdjacency of int
        Squared l2 sensitivity in units of ``unit ** 2``.
    unit : int
        The largest integer that a user's share of the sum is scaled to.
    scale_bits : int
        s: tau is 2^s in integer units.
    count : int
        Number of releases.
    knee : Fraction
        Where the law turns from normal to exponential, in units of tau.
    chosen : int
        Columns of a partial gradient.
    """

    label: str
    quantity: Quantity
    l1_factor: PerAdjacency[int]
    squared_factor: PerAdjacency[int]
    unit: int
    scale_bits: int
    count: int
    knee: Fraction
    chosen: int = 0

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation of the noise over the largest share that one user can have."""
        share = self.unit * math.sqrt(self.squared_factor.add_remove)
        return math.sqrt(huber_variance(float(self.knee))) * 2.0**self.scale_bits / share

    def event(self) -> HuberEvent:
        """The charge of all ``count`` releases."""
        return HuberEvent(
            label=self.label,
            l1_sensitivity=self.l1_factor.times(self.unit),
            squared_sensitivity=self.squared_factor.times(self.unit**2),
            scale=1 << self.scale_bits,
            count=self.count,
            knee=self.knee,
        )
