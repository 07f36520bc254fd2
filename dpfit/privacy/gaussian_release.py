"""A Gaussian release as a mechanism: its integer sensitivity, its scale and its charge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpfit.design.grid import Grid
from dpfit.errors import PrivacyError
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.events import GaussianEvent
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.quantity import Quantity

# From one strip of the sampler, 2^-6 wide, to where floor(2^s N) stays far inside int64.
SCALE_BITS: Final = range(6, 55)


def squared_factor(quantity: Quantity, grid: Grid, chosen: int) -> PerAdjacency[int]:
    """Squared l2 sensitivity of a sum, per squared unit of the release.

    Gradients: one record adds at most ``sqrt(K2) R_int``, so replacing one moves the sum by at most
    twice that (attained by opposite residuals on the same row) and zeroing one by once (exactness,
    sections 6 to 8). On k chosen columns and the intercept's, a record has at most k + 1 entries of
    at most K_inf. Column sums of positive and negative parts: two vectors of the non-negative part
    of the unit ball are at most sqrt(2) apart. The target is a number in [0, 1], as is the
    exposure, and a score's loss; a record counts once, for its class.

    Parameters
    ----------
    quantity : Quantity
        What is released.
    grid : Grid
        The record map's integer bounds.
    chosen : int
        Columns of a partial gradient.
    """
    match quantity:
        case Quantity.GRADIENT | Quantity.BATCH_GRADIENT:
            return _twice(grid.squared_norm)
        case Quantity.PARTIAL_GRADIENT:
            return _twice(min(grid.squared_norm, (chosen + 1) * grid.largest_entry**2))
        case Quantity.UNIT_GRADIENT:
            return _twice(grid.integer_norm**2)
        case Quantity.COLUMN_SUMS:
            return PerAdjacency(replace_one=2, add_remove=1)
        case Quantity.TARGET_SUM | Quantity.SCORE:
            return PerAdjacency(replace_one=1, add_remove=1)
        case Quantity.TARGET_AND_EXPOSURE_SUMS:
            return PerAdjacency(replace_one=2, add_remove=2)
        case Quantity.CLASS_SUMS:
            return PerAdjacency(replace_one=2, add_remove=1)
    raise ValueError(f"{quantity} is no sum over records")


def with_room(factor: PerAdjacency[int]) -> PerAdjacency[int]:
    """The factor of a refined gradient in a run whose budget is meant under replace-one.

    Where replacing a record moves the sum by less than twice its part, the unit grows, and with it
    what zeroing a record moves: to at most half of the square, since ``S(M) >= sqrt(2) sigm(M)``.
    """
    return PerAdjacency(replace_one=factor.replace_one, add_remove=factor.replace_one // 2)


def _twice(squared_norm: int) -> PerAdjacency[int]:
    return PerAdjacency(replace_one=4 * squared_norm, add_remove=squared_norm)


@dataclass(frozen=True)
class GaussianRelease:
    """``count`` releases of an integer vector plus ``floor(2^s N)`` on every coordinate.

    Adding ``floor(2^s N)`` to an integer vector is post-processing of the continuous Gaussian
    mechanism, hence exactly ``(sensitivity / 2^s)``-Gaussian-DP in any dimension.

    Attributes
    ----------
    label : str
        What is released, as the ledger calls it.
    quantity : Quantity
        The only question that this release answers.
    squared_factor : PerAdjacency of int
        Squared l2 sensitivity in units of ``unit ** 2``.
    unit : int
        The largest integer that a record's share of the sum is scaled to: R_int of a gradient.
    scale_bits : int
        s: the noise has standard deviation 2^s in integer units.
    count : int
        Number of releases.
    chosen : int
        Columns of a partial gradient.
    refined : bool
        Whether a step may use a larger unit where its public point allows it.
    """

    label: str
    quantity: Quantity
    squared_factor: PerAdjacency[int]
    unit: int
    scale_bits: int
    count: int
    chosen: int = 0
    refined: bool = False

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation of the noise over the largest share that one record can have."""
        square = self.squared_factor.add_remove
        if self.refined:  # that number may have room for larger units
            square = self.squared_factor.replace_one // 4
        return math.ldexp(1.0, self.scale_bits) / (self.unit * math.sqrt(square))

    def event(self) -> GaussianEvent:
        """The charge of all ``count`` releases."""
        return GaussianEvent(
            label=self.label,
            squared_sensitivity=self.squared_factor.times(self.unit**2),
            scale=1 << self.scale_bits,
            count=self.quantity.charges(self.count),
        )


def plan_release(
    planned: PlannedRelease,
    grid: Grid,
    *,
    unit_bits: int,
    squared_mu: Fraction | None,
    adjacency: Adjacency,
    refined: bool = False,
) -> GaussianRelease:
    """The finest unit for which ``count`` releases cost at most ``squared_mu``.

    The scale is a power of two, which the exact sampler needs; the budget is met by the unit
    instead: ``unit = isqrt(mu_t^2 4^s / factor)``, s as large as ``unit <= 2^unit_bits`` allows.

    Parameters
    ----------
    planned : PlannedRelease
        What is released, and how often.
    grid : Grid
        The record map's integer bounds.
    unit_bits : int
        Upper bound on the bits of the unit.
    squared_mu : Fraction or None
        Total mu^2 of the Gaussian-DP guarantee to spend; None plans a run without noise.
    adjacency : Adjacency
        The neighbouring relation under which ``squared_mu`` is meant.
    refined : bool
        Whether steps may use the logistic sensitivity, see :mod:`.logistic_sensitivity`.

    Raises
    ------
    PrivacyError
        The budget leaves no number grid.
    """
    factor = squared_factor(planned.quantity, grid, planned.chosen)
    if refined and adjacency is Adjacency.REPLACE_ONE:
        factor = with_room(factor)
    share_of_one = None
    if squared_mu is not None:
        share_of_one = squared_mu / (planned.charges * factor.under(adjacency))
    unit, scale_bits = finest_unit(share_of_one, unit_bits, SCALE_BITS)
    return GaussianRelease(
        planned.label,
        planned.quantity,
        factor,
        unit,
        scale_bits,
        planned.count,
        planned.chosen,
        refined,
    )


def finest_unit(share: Fraction | None, unit_bits: int, scales: range) -> tuple[int, int]:
    """``(isqrt(share 4^s), s)`` for the largest s whose unit has at most ``unit_bits`` bits.

    Without a share, which is a run without noise, the largest unit of them all.

    Raises
    ------
    PrivacyError
        The budget leaves no number grid.
    """
    if share is None:
        return 1 << unit_bits, 0
    for scale_bits in reversed(scales):
        unit = math.isqrt(int(share * 4**scale_bits))
        if 0 < unit <= 1 << unit_bits:
            return unit, scale_bits
        if unit == 0:
            raise PrivacyError(
                "the budget is too small for this many releases",
                hint="ask for a larger epsilon or fewer --iterations",
            )
    raise PrivacyError("the budget is so large that the noise is below the number grid")
