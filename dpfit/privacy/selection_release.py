"""A Gumbel selection as a mechanism: its integer sensitivity, its scale and its charge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpfit.errors import PrivacyError
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.events import BoundedRangeEvent

_LARGEST_SCALE_BITS: Final = 60


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
    label: str,
    entry_bound: int,
    *,
    unit_bits: int,
    rho: Fraction | None,
    chosen: int,
    count: int,
    adjacency: Adjacency,
) -> SelectionRelease:
    """The finest unit for which all rounds together are at most ``rho``-zCDP.

    A round of range eta costs ``eta^2 / 8``, so ``unit = isqrt(8 rho 4^b / (k T (2 f K_inf)^2))``
    with f = 2 for replace-one and 1 for add-remove.

    Raises
    ------
    PrivacyError
        The budget leaves no number grid.
    """
    if rho is None:
        return SelectionRelease(label, entry_bound, 1 << unit_bits, 0, chosen, count)
    factor = 2 if adjacency is Adjacency.REPLACE_ONE else 1
    share = 8 * rho / (chosen * count * (2 * factor * entry_bound) ** 2)
    for scale_bits in range(_LARGEST_SCALE_BITS, -1, -1):
        unit = math.isqrt(int(share * 4**scale_bits))
        if unit <= 1 << unit_bits:
            break
    if not 0 < unit <= 1 << unit_bits:
        raise PrivacyError(
            "the budget leaves no number grid for this many selections",
            hint="ask for another epsilon or fewer --iterations",
        )
    return SelectionRelease(label, entry_bound, unit, scale_bits, chosen, count)
