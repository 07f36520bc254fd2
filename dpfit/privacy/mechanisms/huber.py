"""Exact Huber noise on integers.

For an integer vector G, G + floor(2^s X) = floor(G + 2^s X): the release is a function of the
continuous mechanism of methods, 4.1, with no rounding term (exactness.md, section 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from dpfit.privacy.mechanisms.certified_exp import Bounds, huber_heights, huber_mass
from dpfit.privacy.mechanisms.strip_tables import STRIP_BITS
from dpfit.privacy.mechanisms.strips import DEFAULT_BAND, DEFAULT_BLOCK, StripNoise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpfit.privacy.random_bits import RandomWords

_QUADRATIC_SHIFT: Final = 2 * STRIP_BITS + 1
_QUADRATIC_UNIT: Final = 2.0**-_QUADRATIC_SHIFT
_LINEAR_SHIFT: Final = 2 * STRIP_BITS
_LINEAR_UNIT: Final = 2.0**-_LINEAR_SHIFT

KNEES: Final = (Fraction(1), Fraction(4))
"""Least and largest knee: beyond, strips would be too many, or the law as good as normal."""


@dataclass(frozen=True)
class StandardHuber:
    """The law of density proportional to exp(-rho_a(z)) for the strip sampler.

    ``rho_a(z) = z^2 / 2`` up to the knee a and ``a |z| - a^2 / 2`` beyond. The knee lies between
    two strips, so that each strip is of one kind.

    Attributes
    ----------
    knee_strips : int
        a in strips of width 2^-6.
    """

    knee_strips: int

    def heights(self, precision: int) -> list[Bounds]:
        """Bounds of g(j h), j = 0, 1, ..., until the lower bound is zero."""
        return huber_heights(STRIP_BITS, self.knee_strips, precision)

    def tail(self, n_strips: int, height: Bounds) -> int:
        """Upper bound of sum_{j >= n_strips} g(j h), beyond the knee.

        A geometric sum: g / (1 - exp(-a h)) <= g (1 / (a h) + 1), and a >= 1.
        """
        return height.high * ((1 << STRIP_BITS) + 1) + 1

    def mass(self, precision: int) -> Bounds:
        """Bounds of the integral of g."""
        return huber_mass(STRIP_BITS, self.knee_strips, precision)

    def exponent(self, strip: NDArray[np.int64], place: NDArray[np.float64]) -> NDArray[np.float64]:
        """h^2 x (2 j + x) / 2 below the knee, a h x beyond."""
        quadratic = place + 2 * strip
        quadratic *= place
        quadratic *= _QUADRATIC_UNIT
        linear = place * (self.knee_strips * _LINEAR_UNIT)
        return np.where(strip < self.knee_strips, quadratic, linear)

    def exact_exponent(self, strip: int, place: int, bits: int) -> tuple[int, int]:
        """The same as numerator and shift, x = place / 2^bits."""
        if strip < self.knee_strips:
            return place * ((2 * strip << bits) + place), 2 * bits + _QUADRATIC_SHIFT
        return place * self.knee_strips, bits + _LINEAR_SHIFT


def standard_huber(knee: Fraction) -> StandardHuber:
    """The law of a knee.

    Raises
    ------
    ValueError
        The knee is not between 1 and 4, or no multiple of 2^-6.
    """
    strips = knee * (1 << STRIP_BITS)
    if not KNEES[0] <= knee <= KNEES[1] or strips.denominator != 1:
        raise ValueError(f"a knee is a multiple of 2^-{STRIP_BITS} from 1 to 4, not {knee}")
    return StandardHuber(int(strips))


class HuberNoise(StripNoise):
    """Exact Huber noise floor(2^s X), X of :class:`StandardHuber`; scale tau = 2^s.

    Neighbours with |G(D) - G(D')|_1 <= D_1 and |G(D) - G(D')|_2 <= D_2 make the release
    (a D_1 / tau)-differentially private and also D_2^2 / (2 tau^2)-zCDP (methods, 4.1, H1 and H2).

    Parameters
    ----------
    bits : RandomWords
        Source of bits, normally a ``BitSource``.
    knee : Fraction
        a.
    band, block : float, int, keyword-only
        As :class:`StripNoise`; change speed only.
    """

    def __init__(
        self,
        bits: RandomWords,
        knee: Fraction,
        *,
        band: float = DEFAULT_BAND,
        block: int = DEFAULT_BLOCK,
    ) -> None:
        super().__init__(standard_huber(knee), bits, band=band, block=block)
