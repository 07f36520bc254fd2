"""Exact draws of a secret number of runs, and of which run each is.

Only rational coins are tossed, each from as many fair bits as it takes.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dpfit.privacy.random_bits import RandomWords

_WORD: Final = 64


class StoppingDraws:
    """Draws one after the other from the words of one step.

    Parameters
    ----------
    bits : RandomWords
        Of a key that serves nothing else.
    """

    def __init__(self, bits: RandomWords) -> None:
        self._bits = bits
        self._next = 0

    def below(self, bound: int) -> int:
        """Uniform on 0, ..., ``bound - 1``, by rejection."""
        size = (bound - 1).bit_length()
        while True:
            drawn = 0
            for _ in range(-(-size // _WORD)):
                drawn = drawn << _WORD | self._word()
            drawn >>= -size % _WORD
            if drawn < bound:
                return drawn

    def happens(self, chance: Fraction) -> bool:
        """Whether a coin of that chance, in [0, 1], shows heads."""
        return self.below(chance.denominator) < chance.numerator

    def number_of_runs(self, eta: Fraction, gamma: Fraction) -> int:
        """K >= 1 of the truncated negative binomial law, eta in (-1, 1].

        ``P(k + 1) / P(k) = (1 - gamma) (k + eta) / (k + 1)``: a geometric K whose steps beyond the
        first are each accepted with chance ``(l + eta) / (l + 1)``, or everything is drawn anew.
        """
        k = 1
        while not self.happens(gamma):
            # What is rejected is drawn anew from the first step, whatever its rest would have been.
            k = k + 1 if self.happens((k + eta) / Fraction(k + 1)) else 1
        return k

    def _word(self) -> int:
        index, self._next = self._next, self._next + 1
        return self._bits.deep(0, index, 0, 0, 0)
