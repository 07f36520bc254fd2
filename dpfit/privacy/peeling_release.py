"""Peeling as a mechanism: its integer sensitivity, its Laplace scale and its charge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpfit.design.grid import Grid
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.conversion import pure_epsilon
from dpfit.privacy.events import PureEvent
from dpfit.privacy.gaussian_release import finest_unit
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.selection_release import score_sensitivity

# From one strip of the sampler to where deviates, at most 2^8 scales long, stay below 2^60:
# with scores below 1.5 x 2^62 no noisy score wraps around.
_SCALE_BITS: Final = range(6, 53)


@dataclass(frozen=True)
class PeelingRelease:
    """``count`` selections of ``chosen`` columns, one a round, by integer scores + Laplace(2^b).

    A round is a noisy maximum of two-sided scores: ``2 D_inf / 2^b``-differentially private, with
    ``D_inf = sensitivity unit`` (Cai, Wang and Zhang, 2020, Algorithm 3, charged anew; the proof on
    the integer grid is in :func:`dpfit.privacy.mechanisms.peeling.peel`).

    Attributes
    ----------
    label : str
        What is chosen, as the ledger calls it.
    sensitivity : PerAdjacency of int
        The most that a neighbour moves a score, in units of ``unit``.
    unit : int
        R_int, the bound on a record's multiplier.
    scale_bits : int
        b: the Laplace scale is 2^b in score units.
    chosen : int
        k, the rounds of one selection.
    count : int
        How many selections.
    """

    label: str
    sensitivity: PerAdjacency[int]
    unit: int
    scale_bits: int
    chosen: int
    count: int

    quantity = Quantity.SELECTION

    @property
    def noise_multiplier(self) -> float:
        """Laplace scale over the most that one record can add to a score."""
        return math.ldexp(1.0, self.scale_bits) / (self.sensitivity.add_remove * self.unit)

    def event(self) -> PureEvent:
        """The charge of all rounds of all selections."""
        return PureEvent(
            label=self.label,
            epsilon=self.sensitivity.times(Fraction(2 * self.unit, 1 << self.scale_bits)),
            count=self.chosen * self.count,
        )


def plan_peeling(
    planned: PlannedRelease,
    grid: Grid,
    *,
    unit_bits: int,
    rho: Fraction | None,
    adjacency: Adjacency,
) -> PeelingRelease:
    """The finest unit for which all rounds together are at most ``rho``-zCDP.

    Each round may cost ``rho / (k T)``, which buys a pure epsilon; ``unit = isqrt((epsilon 2^b /
    (2 D))^2)`` with D the sensitivity in units.

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
    sensitivity = score_sensitivity(planned.quantity, grid)
    share = None
    if rho is not None:
        epsilon = Fraction(pure_epsilon(rho / (planned.chosen * planned.count)))
        share = (epsilon / (2 * sensitivity.under(adjacency))) ** 2
    unit, scale_bits = finest_unit(share, unit_bits, _SCALE_BITS)
    return PeelingRelease(
        planned.label, sensitivity, unit, scale_bits, planned.chosen, planned.count
    )
