"""A Laplace release as a mechanism: its integer sensitivities, its scale and its charge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpfit.design.grid import Grid
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.conversion import pure_epsilon
from dpfit.privacy.events import LaplaceEvent
from dpfit.privacy.gaussian_release import finest_unit, squared_factor
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.quantity import Quantity

# From one strip of the sampler, 2^-6 wide, to where floor(2^s X) stays inside int64.
_SCALE_BITS: Final = range(6, 55)


def l1_factor(grid: Grid, chosen: int) -> PerAdjacency[int]:
    """l1 sensitivity of a gradient sum on k columns and the intercept's, per unit of the release.

    A record has at most k + 1 integers there, each at most K_inf and with squares that sum to at
    most K2. Their l1 norm is an integer at most ``(k + 1) K_inf`` and, by Cauchy and Schwarz,
    ``sqrt((k + 1) K2)``; replacing a record moves the sum by twice that.
    """
    norm = min((chosen + 1) * grid.largest_entry, math.isqrt((chosen + 1) * grid.squared_norm))
    return PerAdjacency(replace_one=2 * norm, add_remove=norm)


@dataclass(frozen=True)
class LaplaceRelease:
    """``count`` releases of an integer vector plus ``floor(2^s X)`` on every coordinate.

    Attributes
    ----------
    label : str
        What is released, as the ledger calls it.
    l1_factor : PerAdjacency of int
        l1 sensitivity in units of ``unit``.
    squared_factor : PerAdjacency of int
        Squared l2 sensitivity in units of ``unit ** 2``.
    unit : int
        R_int, the bound on a record's multiplier.
    scale_bits : int
        s: the Laplace scale is 2^s in integer units.
    count : int
        Number of releases.
    chosen : int
        Columns of the gradient, beside the intercept's.
    quantity : Quantity
        The only question that this release answers.
    """

    label: str
    l1_factor: PerAdjacency[int]
    squared_factor: PerAdjacency[int]
    unit: int
    scale_bits: int
    count: int
    chosen: int = 0
    quantity: Quantity = Quantity.PARTIAL_GRADIENT

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation of the noise over the largest share that one record can have."""
        share = self.unit * math.sqrt(self.squared_factor.add_remove)
        return math.sqrt(2.0) * math.ldexp(1.0, self.scale_bits) / share

    def event(self) -> LaplaceEvent:
        """The charge of all ``count`` releases."""
        return LaplaceEvent(
            label=self.label,
            l1_sensitivity=self.l1_factor.times(self.unit),
            squared_sensitivity=self.squared_factor.times(self.unit**2),
            scale=1 << self.scale_bits,
            count=self.quantity.charges(self.count),
        )


def plan_laplace(
    planned: PlannedRelease,
    grid: Grid,
    *,
    unit_bits: int,
    rho: Fraction | None,
    epsilon: Fraction | None = None,
    adjacency: Adjacency,
) -> LaplaceRelease:
    """The finest unit for which all releases are together at most ``rho``-zCDP or ``epsilon``-DP.

    One release costs the lesser of ``D_2^2 / (2 b^2)`` and what ``D_1 / b`` pure differential
    privacy implies; the unit may be as large as either allows.

    Parameters
    ----------
    planned : PlannedRelease
        A gradient: on how many columns, and how often.
    grid : Grid
        The record map's integer bounds.
    unit_bits : int
        Upper bound on the bits of the unit.
    rho, epsilon : Fraction or None
        What to spend, in one of them; both None plan a run without noise.
    adjacency : Adjacency
        The neighbouring relation under which the budget is meant.

    Raises
    ------
    PrivacyError
        The budget leaves no number grid.
    """
    l1, squared_l2 = l1_factor(grid, planned.chosen), _squared_l2(grid, planned.chosen)
    share = None
    if epsilon is not None:
        share = (epsilon / planned.charges / l1.under(adjacency)) ** 2
    elif rho is not None:
        rho_of_one = rho / planned.charges
        by_pure = (Fraction(pure_epsilon(rho_of_one)) / l1.under(adjacency)) ** 2
        share = max(2 * rho_of_one / squared_l2.under(adjacency), by_pure)
    unit, scale_bits = finest_unit(share, unit_bits, _SCALE_BITS)
    return LaplaceRelease(
        planned.label,
        l1,
        squared_l2,
        unit,
        scale_bits,
        planned.count,
        planned.chosen,
        planned.quantity,
    )


def _squared_l2(grid: Grid, chosen: int) -> PerAdjacency[int]:
    return squared_factor(Quantity.PARTIAL_GRADIENT, grid, chosen)
