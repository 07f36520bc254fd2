"""Enclosures of Gumbel keys: vectorised in floating point, or certified in plain integers.

A candidate that is `deficit` below the best score has the key

    -deficit / beta - log(-log(1 - V)),   V uniform on (0, 1).

Of V only leading bits are known, so a key is known to lie between two bounds; further bits close
in on it. V is one minus the usual variate because winners have V near 1 / d, which 64 bits hold to
a relative precision of d / 2^64.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpfit.privacy.mechanisms.certified_exp import Bounds
from dpfit.privacy.mechanisms.certified_log import log
from dpfit.privacy.mechanisms.strip_tables import WORD_BITS

# Stands for infinity among certified bounds: keys are below 2^65 in size and have at most 2^9
# fractional bits.
UNBOUNDED: Final = 1 << 1024

_CELL: Final = 2.0**-WORD_BITS
# Words this close to either end get no bounds at all; one word in 2^51 is.
_EDGE: Final = np.uint64(1 << 12)
_MIDDLE: Final = np.uint64(1 << 63)
# Times the default band: 2^-50 of the deficit, more than twice what its conversion and two sums err
# by, and twice the width of a cell.
_DEFICIT_SHARE: Final = 2.0**-10
_CELL_SHARE: Final = 2.0**-23


def enclose(
    words: NDArray[np.uint64], deficits: NDArray[np.uint64], scale_bits: int, band: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bounds of the keys in double precision; overwrites the words.

    With E = -log(1 - V) and g = log E the key's distance from its float value is at most

        band (|g| + 2^-10 deficit / beta + (V + 2^-23) / ((1 - V) E)).

    The last term is the derivative of g times the width of V: its cell of 2^-64 and its rounding.
    It exceeds the band, because E <= V / (1 - V). With the band 2^-40 all this allows log and
    log1p a relative error of 2^-42, a thousand times what libraries make.

    Parameters
    ----------
    words : array of uint64
        First 64 bits of each V.
    deficits : array of uint64
        Best score minus each score.
    scale_bits : int
        beta = 2^scale_bits.
    band : float
        At least 2^-40.

    Returns
    -------
    low, high : arrays of float64
    """
    # Unsigned words wrap: both ends of their range land on 0 .. 2^12.
    edges = (words + _EDGE <= _EDGE).nonzero()[0]
    words[edges] = _MIDDLE
    uniform = words.astype(np.float64)
    uniform += 0.5
    uniform *= _CELL
    rest = 1.0 - uniform
    exponential = np.negative(uniform)
    np.log1p(exponential, out=exponential)
    np.negative(exponential, out=exponential)
    rest *= exponential
    high = np.log(exponential, out=exponential)
    uniform += _CELL_SHARE
    uniform /= rest
    radius = np.abs(high, out=rest)
    radius += uniform
    deficit = deficits.astype(np.float64)
    deficit *= 2.0**-scale_bits
    high += deficit
    deficit *= _DEFICIT_SHARE
    radius += deficit
    radius *= band
    np.negative(high, out=high)
    low = np.subtract(high, radius, out=deficit)
    high += radius
    low[edges] = -np.inf
    high[edges] = np.inf
    return low, high


def certify(value: int, bits: int, deficit: int, scale_bits: int, precision: int) -> Bounds:
    """Integers around 2^precision times every key with V in [value, value + 1] / 2^bits.

    An end where the key is unbounded gets ``UNBOUNDED``; -UNBOUNDED below.
    """
    score = deficit << precision - scale_bits
    one = 1 << bits
    # The exponential -log(1 - V) grows with V, the key falls with it.
    smallest = -log(one - value, bits, precision).high
    high = -log(smallest, precision, precision).low - score if smallest > 0 else UNBOUNDED
    if value + 1 == one:
        return Bounds(-UNBOUNDED, high)
    largest = -log(one - value - 1, bits, precision).low
    return Bounds(-log(largest, precision, precision).high - score, high)
