"""Certified bounds of exp and pi in plain integers.

A real number r is held as `Bounds` at a precision P: low <= r 2^P <= high. No global state and no
libm, so no other module can lower the precision behind our back (exactness.md, section 3).
"""

from __future__ import annotations

from math import isqrt
from typing import NamedTuple

_GUARD_BITS = 32


class Bounds(NamedTuple):
    """Integers around a real number scaled by a power of two."""

    low: int
    high: int


def exp_neg(numerator: int, shift: int, precision: int) -> Bounds:
    """Bounds of exp(-numerator / 2^shift) for an argument in [0, 1].

    Taylor series with floored integer terms. Term n is below its true value by less than
    e_n = (e_{n-1} + 2)/n + 1 <= 2.5 units, and the dropped alternating tail is below its first
    term, itself under 2.5 units; 3 units for each of the `count` terms therefore cover both.
    """
    if not 0 <= numerator <= 1 << shift:
        raise ValueError("the argument of exp_neg is outside [0, 1]")
    working = precision + _GUARD_BITS
    argument = (numerator << working) >> shift
    term = total = 1 << working
    count = 1
    while term:
        term = (term * argument >> working) // count
        total += -term if count & 1 else term
        count += 1
    return _narrow(total, 3 * count, _GUARD_BITS)


def sqrt_two_pi(precision: int) -> Bounds:
    """Bounds of sqrt(2 pi): Machin's 16 arctan(1/5) - 4 arctan(1/239) and an integer root."""
    working = precision + _GUARD_BITS
    fifth, fifth_error = _arctan_inverse(5, working)
    small, small_error = _arctan_inverse(239, working)
    pi = _narrow(16 * fifth - 4 * small, 16 * fifth_error + 4 * small_error, _GUARD_BITS)
    return Bounds(isqrt(pi.low << precision + 1), isqrt(pi.high << precision + 1) + 1)


def gaussian_heights(grid_bits: int, precision: int) -> list[Bounds]:
    """Bounds of g(j h) = exp(-(j h)^2 / 2), h = 2^-grid_bits, until the lower bound is zero.

    Recurrence g((j+1) h) = g(j h) q^(2j+1), q = exp(-h^2 / 2), two products a step, each rounded
    outwards.
    """
    shift = 2 * grid_bits + 1
    ratio = exp_neg(1, shift, precision)
    square = _product(ratio, ratio, precision)
    height = Bounds(1 << precision, 1 << precision)
    heights = [height]
    while height.low:
        height = _product(height, ratio, precision)
        ratio = _product(ratio, square, precision)
        heights.append(height)
    return heights


def exponential_heights(grid_bits: int, precision: int) -> list[Bounds]:
    """Bounds of g(j h) = exp(-j h), h = 2^-grid_bits, until the lower bound is zero.

    One product a step, rounded outwards.
    """
    ratio = exp_neg(1, grid_bits, precision)
    height = Bounds(1 << precision, 1 << precision)
    heights = [height]
    while height.low:
        height = _product(height, ratio, precision)
        heights.append(height)
    return heights


def huber_heights(grid_bits: int, knee: int, precision: int) -> list[Bounds]:
    """Bounds of g(j h), h = 2^-grid_bits, until the lower bound is zero, g of Huber's law.

    g(z) = exp(-z^2 / 2) up to a = knee h, then g(a) exp(-a (z - a)): the recurrence of
    :func:`gaussian_heights` to the knee, that of :func:`exponential_heights` beyond.
    """
    square = exp_neg(1, 2 * grid_bits, precision)
    ratio = exp_neg(1, 2 * grid_bits + 1, precision)
    beyond = exp_neg(knee, 2 * grid_bits, precision)
    height = Bounds(1 << precision, 1 << precision)
    heights = [height]
    while height.low:
        if len(heights) <= knee:
            height = _product(height, ratio, precision)
            ratio = _product(ratio, square, precision)
        else:
            height = _product(height, beyond, precision)
        heights.append(height)
    return heights


def huber_mass(grid_bits: int, knee: int, precision: int) -> Bounds:
    """Bounds of the integral of Huber's g over the whole line.

    With a = knee / 2^grid_bits <= 4 it is ``2 exp(-a^2 / 2) (1/a + sum_n a^(2n+1) / (2n+1)!!)``:
    the normal part's series has only positive terms. Each step floors twice, so term n is low by
    e_n <= a^2 e_(n-1) / (2n+1) + 2 <= 2 exp(a^2 / 2), and where a term vanishes the rest of the
    series falls by half each time: under two more such errors. ``growth`` is above 2 exp(a^2 / 2).
    """
    guard = _GUARD_BITS + 2 * max(knee.bit_length() - grid_bits, 0) ** 2
    working = precision + guard
    term = (knee << working) >> grid_bits
    total = count = 0
    while term:
        total += term
        count += 1
        term = (term * knee * knee >> 2 * grid_bits) // (2 * count + 1)
    inverse = (1 << working + grid_bits) // knee
    height = _power(exp_neg(knee, 2 * grid_bits + 1, working), knee, working)
    growth = 1 << (knee * knee >> 2 * grid_bits) + 2
    low, high = total + inverse, total + inverse + growth * (count + 3)
    shift = working - 1 + guard
    return Bounds(height.low * low >> shift, (height.high * high >> shift) + 1)


def _power(base: Bounds, exponent: int, precision: int) -> Bounds:
    """Bounds of a power, by repeated squaring."""
    result = Bounds(1 << precision, 1 << precision)
    while exponent:
        if exponent & 1:
            result = _product(result, base, precision)
        base = _product(base, base, precision)
        exponent >>= 1
    return result


def _product(a: Bounds, b: Bounds, precision: int) -> Bounds:
    return Bounds(a.low * b.low >> precision, (a.high * b.high >> precision) + 1)


def _narrow(value: int, error: int, bits: int) -> Bounds:
    return Bounds((value - error) >> bits, ((value + error) >> bits) + 1)


def _arctan_inverse(n: int, precision: int) -> tuple[int, int]:
    """arctan(1/n) 2^precision and a bound of its error, from the alternating series.

    Powers are floored with an error under 2 units, quotients with one more; the tail after the
    last power is under 2.
    """
    power = (1 << precision) // n
    total = 0
    count = 0
    while power:
        term = power // (2 * count + 1)
        total += -term if count & 1 else term
        power //= n * n
        count += 1
    return total, 3 * count + 2
