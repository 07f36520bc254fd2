"""Logistic loss, ``log(1 + e^m) - y m`` with y in {0, 1}."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dpfit.losses.base import Floats

# e^r on |r| <= ln(2)/2 by its Taylor polynomial: the first term left out is below 2^-57.
_EXP_TAYLOR: Final = tuple(1.0 / math.factorial(k) for k in range(13, -1, -1))
# ln 2 in two parts: the high one has 32 bits, so its products with |k| <= 2^10 are exact.
_LN2_HIGH: Final = float.fromhex("0x1.62e42fep-1")
_LN2_LOW: Final = float.fromhex("0x1.f473de6af278fp-30")
_SATURATED: Final = 40.0  # e^-40 < 2^-57: the sigmoid is 0 or 1 to the last bit


class Logistic:
    """Negative log-likelihood of a Bernoulli target; ``|l'| <= 1``."""

    name = "logistic"

    def mean(self, margins: Floats) -> Floats:
        """``1 / (1 + e^-m)`` from +, -, *, /, rint and ldexp alone.

        Those are exactly rounded in IEEE 754, so the result has the same bits on every machine and
        does not depend on a mathematical library (exactness, section 6).
        """
        small = _exp_of_negative(np.fmin(np.abs(margins), _SATURATED))
        p = 1.0 / (1.0 + small)
        return np.where(margins >= 0.0, p, 1.0 - p)

    def residual(self, margins: Floats, target: Floats) -> Floats:
        return self.mean(margins) - target


def _exp_of_negative(x: Floats) -> Floats:
    """``e^-x`` for 0 <= x <= 40."""
    k = np.rint(x * (1.0 / math.log(2.0)))
    r = (k * _LN2_HIGH - x) + k * _LN2_LOW
    value = np.full_like(r, _EXP_TAYLOR[0])
    for coefficient in _EXP_TAYLOR[1:]:
        value *= r
        value += coefficient
    return np.ldexp(value, -k.astype(np.int32))
