"""Releases of sums over users, planned: which noise, and how fine a unit the budget allows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final

from dpfit.errors import PrivacyError
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.charged_releases import SumRelease
from dpfit.privacy.conversion import pure_epsilon
from dpfit.privacy.gaussian_release import GaussianRelease
from dpfit.privacy.huber_release import HuberRelease
from dpfit.privacy.laplace_release import LaplaceRelease
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.user_sensitivity import UserGrid, UserSensitivity, user_sensitivity

# From one strip of the sampler, 2^-6 wide, to where floor(2^s X) stays inside int64.
_SCALE_BITS: Final = range(6, 55)


class NoiseLaw(StrEnum):
    """The laws of noise that sums over users may have."""

    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"
    HUBER = "huber"


@dataclass(frozen=True)
class UserNoise:
    """The noise of a run.

    Attributes
    ----------
    law : NoiseLaw
        Its law.
    knee : Fraction
        Of Huber noise.
    pure : bool
        Whether the budget is a pure epsilon, parts of which add up.
    """

    law: NoiseLaw = NoiseLaw.GAUSSIAN
    knee: Fraction = Fraction(2)
    pure: bool = False


def plan_user_release(
    planned: PlannedRelease,
    grid: UserGrid,
    noise: UserNoise,
    *,
    share: Fraction | None,
    adjacency: Adjacency,
) -> SumRelease:
    """The finest unit for which ``count`` releases cost at most their share.

    Parameters
    ----------
    planned : PlannedRelease
        What is released, and how often.
    grid : UserGrid
        The public numbers.
    noise : UserNoise
        Its law, and the currency of the share.
    share : Fraction or None
        What all ``count`` may spend: epsilon where the budget is pure, else mu^2 or twice rho. None
        plans a run without noise.
    adjacency : Adjacency
        The neighbouring relation under which the share is meant.

    Raises
    ------
    PrivacyError
        The budget leaves no number grid.
    """
    sensitivity = user_sensitivity(planned.quantity, grid)
    most = grid.unit_bits(planned.quantity)
    if share is None:
        return _release(planned, sensitivity, NoiseLaw.GAUSSIAN, noise.knee, 1 << most, 0)
    per_unit = _unit_per_scale(share / planned.count, sensitivity, noise, adjacency)
    unit, scale_bits = _finest(per_unit, most)
    return _release(planned, sensitivity, noise.law, noise.knee, unit, scale_bits)


def _unit_per_scale(
    share: Fraction, sensitivity: UserSensitivity, noise: UserNoise, adjacency: Adjacency
) -> Fraction:
    """The square of the largest unit over the noise scale that one release's share allows.

    Gaussian, Laplace and Huber noise (its knee being at least one) cost the same zCDP at the same
    scale: ``D_2^2 / (2 scale^2)``. In pure epsilon it is ``a D_1 / scale``, with a = 1 for Laplace.
    """
    l1 = sensitivity.l1.under(adjacency)
    steepness = noise.knee if noise.law is NoiseLaw.HUBER else Fraction(1)
    if noise.pure:
        return (share / (steepness * l1)) ** 2
    by_norm = share / sensitivity.squared_l2.under(adjacency)
    if noise.law is NoiseLaw.GAUSSIAN:
        return by_norm
    return max(by_norm, (Fraction(pure_epsilon(share / 2)) / (steepness * l1)) ** 2)


def _finest(squared: Fraction, most_bits: int) -> tuple[int, int]:
    """The largest unit of at most so many bits, and the noise scale 2^s that it goes with.

    Raises
    ------
    PrivacyError
        No scale leaves a unit.
    """
    for scale_bits in reversed(_SCALE_BITS):
        unit = math.isqrt(int(squared * 4**scale_bits))
        if unit == 0:
            raise PrivacyError(
                "the budget is too small for this many releases",
                hint="ask for a larger epsilon, or fewer --sweeps",
            )
        if unit <= 1 << most_bits:
            return unit, scale_bits
    raise PrivacyError("the budget is so large that the noise is below the number grid")


def _release(
    planned: PlannedRelease,
    sensitivity: UserSensitivity,
    law: NoiseLaw,
    knee: Fraction,
    unit: int,
    scale_bits: int,
) -> SumRelease:
    l1, squared = sensitivity.l1, sensitivity.squared_l2
    label, quantity, count = planned.label, planned.quantity, planned.count
    match law:
        case NoiseLaw.GAUSSIAN:
            return GaussianRelease(label, quantity, squared, unit, scale_bits, count)
        case NoiseLaw.LAPLACE:
            return LaplaceRelease(label, l1, squared, unit, scale_bits, count, 0, quantity)
        case NoiseLaw.HUBER:
            return HuberRelease(label, quantity, l1, squared, unit, scale_bits, count, knee)
