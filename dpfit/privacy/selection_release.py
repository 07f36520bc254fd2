"""A Gumbel selection as a mechanism: its integer sensitivity, its scale and its charge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpfit.design.grid import Grid
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.events import BoundedRangeEvent
from dpfit.privacy.gaussian_release import finest_unit
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.quantity import Quantity

_SCALE_BITS: Final = range(0, 61)


@dataclass(frozen=True)
class SelectionRelease:
    """``count`` selections of the ``chosen`` largest of integer scores + Gumbel(2^b).

    One record's share of a gradient sum has entries of at most ``entry_bound unit``, so a score
    moves by at most twice that when a record is replaced and once when it is zeroed. Each of the
    ``chosen`` rounds has a log-probability range of ``2 D_inf / 2^b`` (methods, section 0 D).

    Attributes
    ----------
    label : str
        What is chosen, as the ledger calls it.
    entry_bound : int
        The largest integer entry of a record, the intercept column's included.
    unit : int
        R_int, the bound on a record's multiplier.
    scale_bits : int
        b: the Gumbel scale is 2^b in score units.
    chosen : int
        k, how many are chosen at a time.
    count : int
        How many selections.
    """

    label: str
    entry_bound: int
    unit: int
    scale_bits: int
    chosen: int
    count: int

    quantity = Quantity.SELECTION

    @property
    def noise_multiplier(self) -> float:
        """Gumbel scale over the largest entry that one record can have."""
        return math.ldexp(1.0, self.scale_bits) / (self.entry_bound * self.unit)

    def event(self) -> BoundedRangeEvent:
        """The charge of all rounds of all selections."""
        zero_out = Fraction(2 * self.entry_bound * self.unit, 1 << self.scale_bits)
        return BoundedRangeEvent(
            label=self.label,
            eta=PerAdjacency(replace_one=2 * zero_out, add_remove=zero_out),
            count=self.chosen * self.count,
        )


def plan_selection(
    planned: PlannedRelease,
    grid: Grid,
    *,
    unit_bits: int,
    rho: Fraction | None,
    adjacency: Adjacency,
) -> SelectionRelease:
    """The finest unit for which all rounds together are at most ``rho``-zCDP.

    A round of range eta costs ``eta^2 / 8``, so ``unit = isqrt(8 rho 4^b / (k T (2 f K_inf)^2))``
    with f = 2 for replace-one and 1 for add-remove.

    Parameters
    ----------
    planned : PlannedRelease
        k and T.
    grid : Grid
        Gives K_inf.
    unit_bits : int
        Upper bound on the bits of the unit.
    rho : Fraction or None
        What to spend; None plans a run without noise.
    adjacency : Adjacency
        The neighbouring relation under which ``rho`` is meant.

    Raises
    ------
    PrivacyError
        The budget leaves no number grid.
    """
    entry = grid.largest_entry
    if rho is None:
        unit, scale_bits = 1 << unit_bits, 0
    else:
        factor = 2 if adjacency is Adjacency.REPLACE_ONE else 1
        share = 8 * rho / (planned.chosen * planned.count * (2 * factor * entry) ** 2)
        unit, scale_bits = finest_unit(share, unit_bits, _SCALE_BITS)
    return SelectionRelease(planned.label, entry, unit, scale_bits, planned.chosen, planned.count)
