"""The noisy gradient as a mechanism: its integer sensitivity, its scale and its charge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpfit.design.grid import Grid
from dpfit.errors import PrivacyError
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.events import GaussianEvent

_LARGEST_SCALE_BITS: Final = 54  # floor(2^54 N) stays far inside int64
_SMALLEST_SCALE_BITS: Final = 6  # one strip of the sampler is 2^-6 wide


@dataclass(frozen=True)
class GradientRelease:
    """``count`` releases of ``sum_i rq_i (xq_i, b) + floor(2^s N)`` with ``|rq_i| <= R_int``.

    One record adds at most ``sqrt(K2) R_int`` in l2, so replacing one moves the sum by at most
    ``2 sqrt(K2) R_int`` (attained by opposite residuals on the same row) and zeroing one by half
    of that (exactness, sections 6 to 8). Adding ``floor(2^s N)`` to an integer vector is
    post-processing of the continuous Gaussian mechanism, hence exactly
    ``(sensitivity / 2^s)``-Gaussian-DP in any dimension.

    Attributes
    ----------
    grid : Grid
        Gives K2, the bound on a record's squared integer norm.
    residual_integer : int
        R_int.
    scale_bits : int
        s: the noise has standard deviation 2^s in integer units.
    count : int
        Number of releases, T.
    """

    grid: Grid
    residual_integer: int
    scale_bits: int
    count: int

    def event(self) -> GaussianEvent:
        """The charge of all ``count`` releases."""
        zero_out = self.grid.squared_norm * self.residual_integer**2
        return GaussianEvent(
            label="gradient",
            squared_sensitivity=PerAdjacency(replace_one=4 * zero_out, add_remove=zero_out),
            scale=1 << self.scale_bits,
            count=self.count,
        )


def plan_gradient(
    grid: Grid,
    *,
    residual_bits: int,
    squared_mu: Fraction,
    count: int,
    adjacency: Adjacency,
) -> GradientRelease:
    """The finest residual grid for which ``count`` releases cost at most ``squared_mu``.

    The scale is a power of two, which the exact sampler needs; the budget is met by the residual
    bound instead: ``R_int = isqrt(mu_t^2 4^s / (f K2))`` with f = 4 for replace-one and 1 for
    add-remove, s as large as ``R_int <= 2^residual_bits`` allows.

    Parameters
    ----------
    grid : Grid
        The record map.
    residual_bits : int
        Upper bound on the bits of R_int.
    squared_mu : Fraction
        Total mu^2 of the Gaussian-DP guarantee to spend.
    count : int
        Number of releases.
    adjacency : Adjacency
        The neighbouring relation under which ``squared_mu`` is meant.

    Raises
    ------
    PrivacyError
        The budget is so small that no residual grid is left.
    """
    factor = 4 if adjacency is Adjacency.REPLACE_ONE else 1
    share = squared_mu / (count * factor * grid.squared_norm)
    for scale_bits in range(_LARGEST_SCALE_BITS, _SMALLEST_SCALE_BITS - 1, -1):
        residual = math.isqrt(int(share * 4**scale_bits))
        if residual <= 1 << residual_bits:
            break
    else:
        raise PrivacyError("the budget is so large that the noise is below the number grid")
    if residual == 0:
        raise PrivacyError(
            "the budget is too small for this many releases",
            hint="ask for a larger epsilon or fewer --iterations",
        )
    return GradientRelease(grid, residual, scale_bits, count)
