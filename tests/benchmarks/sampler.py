"""Rate of the exact Gaussian noise on one core against numpy's float normal and OpenDP's exact one.

usage: python tests/benchmarks/sampler.py

Medians of five, all in one
run; ours and numpy's fill a reused array, as a fit does. OpenDP returns a Python list, so its time
includes making one: that is the only way its Python users can get the noise.
"""

from __future__ import annotations

import time

import numpy as np
import opendp.prelude as dp
from timing import median_seconds
from usage import answer_help

from dpfit.privacy.mechanisms.gaussian import GaussianNoise
from dpfit.privacy.random_bits import BitSource, RunKey

SIZES = (1_000, 10_000, 47_236, 1_000_000, 20_000_000)
SCALE_BITS = 40
# OpenDP needs minutes for more.
OPENDP_LIMIT = 100_000


def ours(size: int) -> float:
    """floor(2^40 N) into a reused array, a new step each time."""
    noise = GaussianNoise(BitSource(RunKey.from_system()))
    out = np.empty(size, np.int64)
    steps = iter(range(1 << 20))
    return median_seconds(lambda: noise.integers(SCALE_BITS, size, next(steps), out=out))


def numpy_normal(size: int) -> float:
    """Double-precision ziggurat of PCG64, not exact and not cryptographic."""
    generator = np.random.Generator(np.random.PCG64())
    out = np.empty(size)
    return median_seconds(lambda: generator.standard_normal(out=out))


def opendp_gaussian(size: int, *, floats: bool) -> float:
    """OpenDP's Gaussian on a vector of zeros, the same standard deviation for integers."""
    dp.enable_features("contrib")
    atom = dp.atom_domain(T=float, nan=False) if floats else dp.atom_domain(T=int)
    space = dp.vector_domain(atom, size=size), dp.l2_distance(T=float)
    scale = 1.0 if floats else 2.0**SCALE_BITS
    mechanism = dp.m.make_gaussian(*space, scale=scale)
    zeros = [0.0] * size if floats else [0] * size
    return median_seconds(lambda: mechanism(zeros))


def main() -> None:
    """Print the table: M values / s of each sampler and our rate as a multiple of the others'."""
    start = time.perf_counter()
    GaussianNoise(BitSource(RunKey.from_system()))
    print(f"tables and OpenSSL: {1e3 * (time.perf_counter() - start):.1f} ms")
    print(
        f"{'size':>10} {'ours ms':>9} {'ours':>8} {'numpy':>8} {'OpenDP i':>9} {'OpenDP f':>9}",
        end="",
    )
    print(f" {'/numpy':>8} {'/OpenDP i':>10} {'/OpenDP f':>10}   (M values/s)")
    for size in SIZES:
        seconds = [ours(size), numpy_normal(size)]
        if size <= OPENDP_LIMIT:
            seconds += [opendp_gaussian(size, floats=floats) for floats in (False, True)]
        rates = [size / s / 1e6 for s in seconds] + [float("nan")] * (4 - len(seconds))
        row = f"{size:>10} {1e3 * seconds[0]:>9.3f} {rates[0]:>8.1f} {rates[1]:>8.1f}"
        row += f" {rates[2]:>9.4f} {rates[3]:>9.4f} {rates[0] / rates[1]:>8.2f}"
        print(row + f" {rates[0] / rates[2]:>10.0f} {rates[0] / rates[3]:>10.0f}")


if __name__ == "__main__":
    answer_help(__doc__)
    main()
