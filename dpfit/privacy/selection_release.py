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


def score_sensitivity(quantity: Quantity, grid: Grid) -> PerAdjacency[int]:
    """How far a neighbour moves a score, per unit of the release.

    One record's share of a gradient sum has entries of at most ``K_inf unit``: a score moves by
    twice that when the record is replaced and once when it is zeroed. It is in one block of rows
    alone, which votes for a column once or not at all: a count moves by at most 1 either way. So do
    the numbers of records below and up to a candidate for a quantile.
    """
    match quantity:
        case Quantity.SELECTION:
            entry = grid.largest_entry
            return PerAdjacency(replace_one=2 * entry, add_remove=entry)
        case Quantity.VOTES | Quantity.TARGET_RANKS:
            return PerAdjacency(replace_one=1, add_remove=1)
    raise ValueError(f"{quantity} is no selection")


@dataclass(frozen=True)
class SelectionRelease:
    """``count`` selections of the ``chosen`` largest of integer scores + Gumbel(2^b).

    Each of the ``chosen`` rounds has a log-probability range of ``2 D_inf / 2^b``, with
    ``D_inf = sensitivity unit`` (methods, section 0 D).

    Attributes
    ----------
    label : str
        What is chosen, as the ledger calls it.
    quantity : Quantity
        The only question that this release answers.
    sensitivity : PerAdjacency of int
        The most that a neighbour moves a score, in units of ``unit``.
    unit : int
        What scores are scaled by: R_int of a gradient, the weight of a vote.
    scale_bits : int
        b: the Gumbel scale is 2^b in score units.
    chosen : int
        k, how many are chosen at a time.
    count : int
        How many selections.
    """

    label: str
    quantity: Quantity
    sensitivity: PerAdjacency[int]
    unit: int
    scale_bits: int
    chosen: int
    count: int

    @property
    def noise_multiplier(self) -> float:
        """Gumbel scale over the most that one record can add to a score."""
        return math.ldexp(1.0, self.scale_bits) / (self.sensitivity.add_remove * self.unit)

    def event(self) -> BoundedRangeEvent:
        """The charge of all rounds of all selections."""
        return BoundedRangeEvent(
            label=self.label,
            eta=self.sensitivity.times(Fraction(2 * self.unit, 1 << self.scale_bits)),
            count=self.chosen * self.count,
        )


def plan_selection(
    planned: PlannedRelease,
    grid: Grid,
    *,
    unit_bits: int,
    rho: Fraction | None,
    epsilon: Fraction | None = None,
    adjacency: Adjacency,
) -> SelectionRelease:
    """The finest unit for which all rounds together are at most ``rho``-zCDP, or ``epsilon``-DP.

    A round of range ``eta = 2 D unit / 2^b``, with D the sensitivity in units, costs ``eta^2 / 8``,
    so ``unit = isqrt(2 rho 4^b / (k T D^2))``; or it costs eta.

    Parameters
    ----------
    planned : PlannedRelease
        What is chosen by, k and T.
    grid : Grid
        Gives K_inf.
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
    sensitivity = score_sensitivity(planned.quantity, grid)
    rounds = planned.chosen * planned.count
    moved = sensitivity.under(adjacency)
    share = None
    if epsilon is not None:
        share = (epsilon / (2 * rounds * moved)) ** 2
    elif rho is not None:
        share = 2 * rho / (rounds * moved**2)
    unit, scale_bits = finest_unit(share, unit_bits, _SCALE_BITS)
    return SelectionRelease(
        planned.label,
        planned.quantity,
        sensitivity,
        unit,
        scale_bits,
        planned.chosen,
        planned.count,
    )
