"""Exact Gaussian noise on integers.

For an integer vector G, G + floor(2^s N) = floor(G + 2^s N): the release is a function of the
continuous Gaussian mechanism, so neighbours with |G(D) - G(D')|_2 <= Delta make it exactly
(Delta / 2^s)-GDP in any dimension, with no rounding term (exactness.md, section 1; Dong, Roth and
Su 2022 for GDP).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpfit.privacy.mechanisms.certified_exp import Bounds, gaussian_heights, sqrt_two_pi
from dpfit.privacy.mechanisms.strip_tables import STRIP_BITS
from dpfit.privacy.mechanisms.strips import (
    DEFAULT_BAND,
    DEFAULT_BLOCK,
    StripNoise,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpfit.privacy.random_bits import RandomWords

_EXPONENT_SHIFT = 2 * STRIP_BITS + 1
_EXPONENT_UNIT = 2.0**-_EXPONENT_SHIFT


@dataclass(frozen=True)
class StandardNormal:
    """The law N(0, 1) for the strip sampler: g(z) = exp(-z^2 / 2), mass sqrt(2 pi)."""

    def heights(self, precision: int) -> list[Bounds]:
        """Bounds of g(j h), j = 0, 1, ..., until the lower bound is zero."""
        return gaussian_heights(STRIP_BITS, precision)

    def tail(self, n_strips: int, height: Bounds) -> int:
        """Upper bound of sum_{j >= n_strips} g(j h).

        Successive ratios are at most exp(-t), t = (2 n_strips + 1) / 2^13 <= 1, so the sum is at
        most g / (1 - exp(-t)) <= 2 g / t.
        """
        return (height.high << _EXPONENT_SHIFT + 1) // (2 * n_strips + 1) + 1

    def mass(self, precision: int) -> Bounds:
        """Bounds of sqrt(2 pi)."""
        return sqrt_two_pi(precision)

    def exponent(self, strip: NDArray[np.int64], place: NDArray[np.float64]) -> NDArray[np.float64]:
        """h^2 x (2 j + x) / 2."""
        t = place + 2 * strip
        t *= place
        t *= _EXPONENT_UNIT
        return t

    def exact_exponent(self, strip: int, place: int, bits: int) -> tuple[int, int]:
        """h^2 x (2 j + x) / 2 as numerator and shift, x = place / 2^bits."""
        return place * ((2 * strip << bits) + place), 2 * bits + _EXPONENT_SHIFT


class GaussianNoise(StripNoise):
    """Exact Gaussian noise floor(2^s N), N standard normal; its standard deviation is 2^s.

    Parameters
    ----------
    bits : RandomWords
        Source of bits, normally a ``BitSource``.
    band, block : float, int, keyword-only
        As :class:`StripNoise`; change speed only.
    """

    def __init__(
        self, bits: RandomWords, *, band: float = DEFAULT_BAND, block: int = DEFAULT_BLOCK
    ) -> None:
        super().__init__(StandardNormal(), bits, band=band, block=block)
