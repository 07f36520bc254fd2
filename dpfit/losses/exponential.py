"""``e^x`` by IEEE basic operations only."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dpfit.losses.base import Floats

# e^r on |r| <= ln(2)/2 by its Taylor polynomial: the first term left out is below 2^-57.
_TAYLOR: Final = tuple(1.0 / math.factorial(k) for k in range(13, -1, -1))
# ln 2 in two parts: the high one has 32 bits, so its products with |k| <= 2^10 are exact.
_LN2_HIGH: Final = float.fromhex("0x1.62e42fep-1")
_LN2_LOW: Final = float.fromhex("0x1.f473de6af278fp-30")
_SATURATED: Final = 40.0  # e^-40 < 2^-57: a probability is 0 or 1 to the last bit


def exponential(x: Floats) -> Floats:
    """``e^x``, saturated beyond |x| = 40, from +, -, *, rint and ldexp alone.

    Those are exactly rounded in IEEE 754, so the result has the same bits on every machine and
    does not depend on a mathematical library (exactness, section 6).
    """
    x = np.fmin(np.fmax(x, -_SATURATED), _SATURATED)
    k = np.rint(x * (1.0 / math.log(2.0)))
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    value = np.full_like(r, _TAYLOR[0])
    for coefficient in _TAYLOR[1:]:
        value *= r
        value += coefficient
    return np.ldexp(value, k.astype(np.int32))
