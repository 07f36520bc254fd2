"""``ln x`` by IEEE basic operations only."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dpfit.losses.base import Floats

# ln m = 2 artanh s with s = (m - 1) / (m + 1): on m in [sqrt(1/2), sqrt(2)] |s| is below 0.172,
# and the first term left out below 2^-57.
_SERIES: Final = tuple(2.0 / (2 * k + 1) for k in range(10, -1, -1))
_LEAST: Final = 5e-324
_LARGEST: Final = float(np.finfo(np.float64).max)
_LN2_HIGH: Final = float.fromhex("0x1.62e42fep-1")
_LN2_LOW: Final = float.fromhex("0x1.f473de6af278fp-30")


def logarithm(x: Floats) -> Floats:
    """``ln x``, of the least positive number where x is not positive.

    From +, -, *, / and the exact split of a float into mantissa and exponent, so the same bits on
    every machine and at every place in an array (exactness, section 6).
    """
    mantissa, exponent = np.frexp(np.fmin(np.fmax(x, _LEAST), _LARGEST))
    low = mantissa < math.sqrt(0.5)
    mantissa = np.where(low, 2.0 * mantissa, mantissa)
    k = (exponent - low).astype(np.float64)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square = s * s
    value = np.full_like(s, _SERIES[0])
    for coefficient in _SERIES[1:]:
        value *= square
        value += coefficient
    return np.asarray(k * _LN2_HIGH + (k * _LN2_LOW + s * value))
