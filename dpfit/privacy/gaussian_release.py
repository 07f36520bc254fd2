"""A Gaussian release as a mechanism: its integer sensitivity, its scale and its charge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpfit.errors import PrivacyError
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.events import GaussianEvent

_LARGEST_SCALE_BITS: Final = 54  # floor(2^54 N) stays far inside int64
_SMALLEST_SCALE_BITS: Final = 6  # one strip of the sampler is 2^-6 wide

# Squared sensitivities in units of the release's own integer unit.
COLUMN_SUMS: Final = PerAdjacency(replace_one=2, add_remove=1)
"""Sums of |x|: two vectors of the non-negative part of the unit ball are at most sqrt(2) apart."""
TARGET_SUM: Final = PerAdjacency(replace_one=1, add_remove=1)
"""A sum of numbers in [0, 1]."""


def gradient_factor(squared_norm: int) -> PerAdjacency[int]:
    """Squared sensitivity of a gradient sum, per squared residual unit.

    One record adds at most ``sqrt(K2) R_int`` in l2, so replacing one moves the sum by at most
    ``2 sqrt(K2) R_int`` (attained by opposite residuals on the same row) and zeroing one by half
    of that (exactness, sections 6 to 8).

    Parameters
    ----------
    squared_norm : int
        K2, the bound on a record's squared integer norm.
    """
    return PerAdjacency(replace_one=4 * squared_norm, add_remove=squared_norm)


def partial_gradient_factor(squared_norm: int, entry: int, chosen: int) -> PerAdjacency[int]:
    """As :func:`gradient_factor` for some chosen columns beside the intercept's.

    A record's share of those has at most ``chosen + 1`` entries of at most ``entry``.
    """
    return gradient_factor(min(squared_norm, (chosen + 1) * entry**2))


@dataclass(frozen=True)
class GaussianRelease:
    """``count`` releases of an integer vector plus ``floor(2^s N)`` on every coordinate.

    Adding ``floor(2^s N)`` to an integer vector is post-processing of the continuous Gaussian
    mechanism, hence exactly ``(sensitivity / 2^s)``-Gaussian-DP in any dimension.

    Attributes
    ----------
    label : str
        What is released, as the ledger calls it.
    squared_factor : PerAdjacency of int
        Squared l2 sensitivity in units of ``unit ** 2``.
    unit : int
        The largest integer that a record's share of the sum is scaled to: R_int of a gradient.
    scale_bits : int
        s: the noise has standard deviation 2^s in integer units.
    count : int
        Number of releases.
    """

    label: str
    squared_factor: PerAdjacency[int]
    unit: int
    scale_bits: int
    count: int

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation of the noise over the largest share that one record can have."""
        share = self.unit * math.sqrt(self.squared_factor.add_remove)
        return math.ldexp(1.0, self.scale_bits) / share

    def event(self) -> GaussianEvent:
        """The charge of all ``count`` releases."""
        square = self.unit**2
        return GaussianEvent(
            label=self.label,
            squared_sensitivity=PerAdjacency(
                replace_one=self.squared_factor.replace_one * square,
                add_remove=self.squared_factor.add_remove * square,
            ),
            scale=1 << self.scale_bits,
            count=self.count,
        )


def plan_release(
    label: str,
    squared_factor: PerAdjacency[int],
    *,
    unit_bits: int,
    squared_mu: Fraction | None,
    count: int,
    adjacency: Adjacency,
) -> GaussianRelease:
    """The finest unit for which ``count`` releases cost at most ``squared_mu``.

    The scale is a power of two, which the exact sampler needs; the budget is met by the unit
    instead: ``unit = isqrt(mu_t^2 4^s / factor)``, s as large as ``unit <= 2^unit_bits`` allows.

    Parameters
    ----------
    label : str
        What is released.
    squared_factor : PerAdjacency of int
        Squared sensitivity per squared unit.
    unit_bits : int
        Upper bound on the bits of the unit.
    squared_mu : Fraction or None
        Total mu^2 of the Gaussian-DP guarantee to spend; None plans a run without noise.
    count : int
        Number of releases.
    adjacency : Adjacency
        The neighbouring relation under which ``squared_mu`` is meant.

    Raises
    ------
    PrivacyError
        The budget leaves no number grid.
    """
    if squared_mu is None:
        return GaussianRelease(label, squared_factor, 1 << unit_bits, 0, count)
    share = squared_mu / (count * squared_factor.under(adjacency))
    for scale_bits in range(_LARGEST_SCALE_BITS, _SMALLEST_SCALE_BITS - 1, -1):
        unit = math.isqrt(int(share * 4**scale_bits))
        if unit <= 1 << unit_bits:
            break
    else:
        raise PrivacyError("the budget is so large that the noise is below the number grid")
    if unit == 0:
        raise PrivacyError(
            "the budget is too small for this many releases",
            hint="ask for a larger epsilon or fewer --iterations",
        )
    return GaussianRelease(label, squared_factor, unit, scale_bits, count)
