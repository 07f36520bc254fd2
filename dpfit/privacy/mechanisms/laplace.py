"""Exact Laplace noise on integers.

For an integer vector G, G + floor(2^s X) = floor(G + 2^s X): the release is a function of the
continuous Laplace mechanism, with no rounding term (exactness.md, section 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpfit.privacy.mechanisms.certified_exp import Bounds, exponential_heights
from dpfit.privacy.mechanisms.strip_tables import STRIP_BITS
from dpfit.privacy.mechanisms.strips import DEFAULT_BAND, DEFAULT_BLOCK, StripNoise

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dpfit.privacy.random_bits import RandomWords

_STRIP_WIDTH = 2.0**-STRIP_BITS


@dataclass(frozen=True)
class StandardLaplace:
    """The law of density exp(-|z|) / 2 for the strip sampler: g(z) = exp(-z), mass 2."""

    def heights(self, precision: int) -> list[Bounds]:
        """Bounds of g(j h), j = 0, 1, ..., until the lower bound is zero."""
        return exponential_heights(STRIP_BITS, precision)

    def tail(self, n_strips: int, height: Bounds) -> int:
        """Upper bound of sum_{j >= n_strips} g(j h).

        A geometric sum: g / (1 - exp(-h)) <= g (1 / h + 1) whatever `n_strips` is.
        """
        return height.high * ((1 << STRIP_BITS) + 1) + 1

    def mass(self, precision: int) -> Bounds:
        """2, exactly."""
        return Bounds(2 << precision, 2 << precision)

    def exponent(self, strip: NDArray[np.int64], place: NDArray[np.float64]) -> NDArray[np.float64]:
        """h x, whatever the strip."""
        return place * _STRIP_WIDTH

    def exact_exponent(self, strip: int, place: int, bits: int) -> tuple[int, int]:
        """h x as numerator and shift, x = place / 2^bits."""
        return place, bits + STRIP_BITS


class LaplaceNoise(StripNoise):
    """Exact Laplace noise floor(2^s X), X standard Laplace; scale b = 2^s.

    Neighbours with |G(D) - G(D')|_1 <= D_1 and |G(D) - G(D')|_2 <= D_2 make the release
    (D_1 / b)-differentially private and also D_2^2 / (2 b^2)-zCDP (each coordinate's Bun-Steinke
    bound, added up).

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
        super().__init__(StandardLaplace(), bits, band=band, block=block)
