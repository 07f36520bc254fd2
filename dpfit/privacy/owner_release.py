"""Releases of sums over units, each with all its rows: their sensitivity and their noise.

The number of units is public. Under replace-one a unit gives way to any other, with as many rows as
it likes; under add-remove what a unit contributes is left out and the divisor stays.

A unit's part of a gradient is an integer vector of norm at most U, the unit of the release
(:mod:`dpfit.design.owner_rows`), so the sum moves by at most U, and by 2 U when a unit is replaced,
whatever the number of its rows. Sums of numbers from 0 to U a row, two a row, are kept by the
number of rows alone: with at most m rows a unit's part lies in ``[0, m U]^2``, whose diameter is
``sqrt(2) m U``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.gaussian_release import SCALE_BITS, GaussianRelease, finest_unit
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.quantity import Quantity

_MOST_UNIT_BITS: Final = 26  # squares of integers are exact in floats
_WORD_BITS: Final = 61
RESIDUAL_BITS: Final = 20  # of the clip, in the multipliers that a unit's sums are made of
MOST_ROWS: Final = 1 << 20  # of a unit: with multipliers and rows of 20 bits its sums do not wrap


@dataclass(frozen=True)
class OwnerRule:
    """What belongs together, and how much of it counts.

    Attributes
    ----------
    column : str
        Name of the column that says which unit a record belongs to.
    max_rows : int
        m: rows of a unit that take part, at most.
    clip : float
        C: a unit's part of a gradient is shrunk to the length that C rows can have.
    """

    column: str
    max_rows: int
    clip: float


def owner_factor(quantity: Quantity, rule: OwnerRule) -> PerAdjacency[int]:
    """Squared l2 sensitivity of a sum over units, per squared unit of the release.

    Parameters
    ----------
    quantity : Quantity
        What is released.
    rule : OwnerRule
        Public.

    Raises
    ------
    ValueError
        It has no unit-level form.
    """
    match quantity:
        case Quantity.OWNER_GRADIENT:
            return PerAdjacency(replace_one=4, add_remove=1)
        case Quantity.TARGET_AND_EXPOSURE_SUMS:
            return PerAdjacency(replace_one=2, add_remove=2).times(rule.max_rows**2)
    raise ValueError(f"{quantity} is no sum over units")


def owner_quantity(quantity: Quantity) -> Quantity:
    """What is released over units where an algorithm asks for it over records."""
    return Quantity.OWNER_GRADIENT if quantity is Quantity.GRADIENT else quantity


def plan_owner_release(
    planned: PlannedRelease,
    rule: OwnerRule,
    *,
    n_owners: int,
    squared_mu: Fraction | None,
    adjacency: Adjacency,
) -> GaussianRelease:
    """The finest unit for which ``count`` releases over units cost at most ``squared_mu``.

    Parameters
    ----------
    planned : PlannedRelease
        As for records.
    rule : OwnerRule
        Public.
    n_owners : int
        Public number of units; a wrong one costs accuracy only.
    squared_mu : Fraction or None
        Total mu^2 to spend; None plans a run without noise.
    adjacency : Adjacency
        The neighbouring relation under which it is meant.

    Raises
    ------
    PrivacyError
        The budget leaves no number grid.
    """
    quantity = owner_quantity(planned.quantity)
    factor = owner_factor(quantity, rule)
    share = None
    if squared_mu is not None:
        share = squared_mu / (planned.charges * factor.under(adjacency))
    rows = 1 if quantity is Quantity.OWNER_GRADIENT else rule.max_rows
    spare = _WORD_BITS - max(n_owners * rows - 1, 1).bit_length()
    unit_bits = max(1, min(_MOST_UNIT_BITS, spare))
    unit, scale_bits = finest_unit(share, unit_bits, SCALE_BITS)
    return GaussianRelease(planned.label, quantity, factor, unit, scale_bits, planned.count)
