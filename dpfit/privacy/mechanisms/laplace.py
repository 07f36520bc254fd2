"""Exact Laplace noise on integers.

For an integer vector G, G + floor(2^s X) = floor(G + 2^s X): the release is a function of the
continuous Laplace mechanism, with no rounding term (exactness.md, section 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpfit.privacy.mechanisms.certified_exp import Bounds, exponential_heights
from dpfit.privacy.mechanisms.strip_tables import STRIP_BITS
from dpfit.privacy.mechanisms.strips import DEFAULT_BAND, DEFAULT_BLOCK, StripSampler

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


class LaplaceNoise:
    """Exact Laplace noise floor(2^s X), X of density exp(-|x|) / 2.

    With scale b = 2^s, neighbours with |G(D) - G(D')|_1 <= D_1 and |G(D) - G(D')|_2 <= D_2 make
    the release (D_1 / b)-differentially private and also D_2^2 / (2 b^2)-zCDP (each coordinate's
    Bun-Steinke bound, added up).

    Every value is a pure function of (key, step, index): any partition of the coordinates into
    calls gives the same bits. For that reason a step must be used for one data vector only, and
    not for another kind of noise either: the same (key, step, index) added to two vectors cancels
    in their difference and discloses it. The caller (the Curator) draws each step once; nothing
    here can check it.

    Draw whole vectors. The time of a single draw depends on its size (values beyond 6.25 b always
    take the slow path), so no time or count may be released.

    Not thread-safe: each thread needs its own object and its own source of bits.

    Parameters
    ----------
    bits : RandomWords
        Source of bits, normally a ``BitSource``.
    band : float, keyword-only
        Acceptance statistics no larger than this are decided exactly. Changes speed only.
    block : int, keyword-only
        Values made at a time. Changes speed only.
    """

    def __init__(
        self, bits: RandomWords, *, band: float = DEFAULT_BAND, block: int = DEFAULT_BLOCK
    ) -> None:
        self._sampler = StripSampler(StandardLaplace(), bits, band=band, block=block)

    def integers(
        self,
        scale_bits: int,
        size: int,
        step: int,
        *,
        first: int = 0,
        out: NDArray[np.int64] | None = None,
    ) -> NDArray[np.int64]:
        """Noise floor(2^scale_bits X) of coordinates first .. first + size - 1 of one step.

        Parameters
        ----------
        scale_bits : int
            s, from 6 to 54; the scale b is 2^s and the standard deviation sqrt(2) 2^s.
        size : int
            Number of coordinates.
        step : int
            Noise step, below 2^32; see the class for why it is used once.
        first : int, keyword-only
            First coordinate; first + size is at most 2^40.
        out : array of int64, shape (size,), optional, keyword-only
            Contiguous array to fill and return. Reuse one for a whole fit: in a fresh array page
            faults cost more than the noise.

        Returns
        -------
        array of int64, shape (size,)
        """
        return self._sampler.integers(scale_bits, size, step, first, out)
