"""Certified bounds of the logarithm in plain integers, in the manner of certified_exp.py."""

from __future__ import annotations

from functools import cache

from dpfit.privacy.mechanisms.certified_exp import Bounds

_GUARD_BITS = 32


def log(numerator: int, shift: int, precision: int) -> Bounds:
    """Bounds of log(numerator / 2^shift), numerator >= 1.

    numerator / 2^shift = 2^e m with m in [3/4, 3/2), and log m = 2 artanh((m - 1) / (m + 1)).
    """
    if numerator < 1:
        raise ValueError("the argument of log is not positive")
    size = numerator.bit_length()
    # The two leading bits tell m in [1, 3/2) from m in [3/2, 2), which is halved.
    power = size - 1 + (numerator >> max(size - 2, 0) == 3)
    working = precision + _GUARD_BITS
    unit = 1 << power
    difference = abs(numerator - unit)
    mantissa = _artanh((difference << working) // (numerator + unit), working)
    if numerator < unit:
        mantissa = Bounds(-mantissa.high, -mantissa.low)
    exponent = power - shift
    two = _artanh_third(working)
    ends = (exponent * two.low, exponent * two.high)
    low, high = 2 * (mantissa.low + min(ends)), 2 * (mantissa.high + max(ends))
    return Bounds(low >> _GUARD_BITS, -(-high >> _GUARD_BITS))


@cache
def _artanh_third(working: int) -> Bounds:
    """Bounds of artanh(1/3) = log(2) / 2."""
    return _artanh((1 << working) // 3, working)


def _artanh(argument: int, working: int) -> Bounds:
    """Bounds of artanh z for a z in [argument, argument + 1) / 2^working, z <= 1/3.

    The square is below z^2 by less than 2 units. Powers are floored: each is below its true value
    by e' <= e / 9 + 2/3 + 1 < 2 units, so each quotient by less than 3, and the tail after the
    last power is under 3. No error has the other sign.
    """
    square = argument * argument >> working
    power, total, count = argument, 0, 0
    while power:
        total += power // (2 * count + 1)
        power = power * square >> working
        count += 1
    return Bounds(total, total + 3 * count + 3)
