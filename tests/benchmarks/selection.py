"""Time of the exact top-k selection and of exact Laplace noise on one core.

usage: python tests/benchmarks/selection.py

Medians of five after a
warm-up, all in one run. `float` is the inexact one-shot selection a script would do: numpy's
Gumbel variates of PCG64 and argpartition, ties and rounding left to chance. `peeling` is the
literature's k rounds of Laplace noise on all candidates, in the same floating point; its time is
that of `ROUNDS` rounds, scaled. `OpenDP` is its exact top-k, where its version has one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from timing import median_seconds
from usage import answer_help

from dpfit.privacy.mechanisms.laplace import LaplaceNoise
from dpfit.privacy.mechanisms.top_k import GumbelTopK
from dpfit.privacy.random_bits import BitSource, RunKey

CASES = ((1_000, 10), (47_236, 1), (47_236, 500), (1_000_000, 500), (10_000_000, 500))
LAPLACE_SIZES = (1_000, 47_236, 1_000_000, 20_000_000)
SCALE_BITS = 40
ROUNDS = 3
OPENDP_LIMIT = 100_000


def make_scores(size: int) -> NDArray[np.int64]:
    """Exponential scores three times as wide as the noise."""
    scores = np.random.default_rng(0).standard_exponential(size) * (3 << SCALE_BITS)
    return scores.astype(np.int64)


def ours(scores: NDArray[np.int64], k: int, *, signed: bool = False) -> float:
    """A new step each time."""
    selector = GumbelTopK(BitSource(RunKey.from_system()))
    select = selector.select_signed if signed else selector.select
    steps = iter(range(1 << 20))
    return median_seconds(lambda: select(scores, k, SCALE_BITS, next(steps)))


def in_floats(scores: NDArray[np.int64], k: int) -> float:
    """numpy's Gumbel variates and argpartition."""
    generator = np.random.Generator(np.random.PCG64())

    def select() -> NDArray[np.int64]:
        noisy = scores + generator.gumbel(scale=2.0**SCALE_BITS, size=len(scores))
        return np.sort(np.argpartition(noisy, len(scores) - k)[len(scores) - k :])

    return median_seconds(select)


def peeling(scores: NDArray[np.int64], k: int) -> float:
    """k times Laplace noise on everybody left and the largest."""
    generator = np.random.Generator(np.random.PCG64())
    left = scores.astype(np.float64)

    def some_rounds() -> None:
        for _ in range(ROUNDS):
            left[(left + generator.laplace(scale=2.0**SCALE_BITS, size=len(left))).argmax()] = 0.0

    return median_seconds(some_rounds) * k / ROUNDS


def opendp_top_k(scores: NDArray[np.int64], k: int) -> float:
    """OpenDP's noisy top-k on the same scores; NaN where it is not to be had."""
    try:
        import opendp.prelude as dp

        dp.enable_features("contrib")
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
        measure = dp.zero_concentrated_divergence()
        mechanism = dp.m.make_noisy_top_k(*space, measure, k=k, scale=2.0**SCALE_BITS)
    except (ImportError, AttributeError):
        return float("nan")
    values = scores.tolist()
    return median_seconds(lambda: mechanism(values), 1)


def laplace(size: int) -> float:
    """floor(2^40 X) into a reused array, a new step each time."""
    noise = LaplaceNoise(BitSource(RunKey.from_system()))
    out = np.empty(size, np.int64)
    steps = iter(range(1 << 20))
    return median_seconds(lambda: noise.integers(SCALE_BITS, size, next(steps), out=out))


def numpy_laplace(size: int) -> float:
    """Double-precision Laplace variates of PCG64, which have no reused array."""
    generator = np.random.Generator(np.random.PCG64())
    return median_seconds(lambda: generator.laplace(size=size))


def main() -> None:
    """Print milliseconds of each selection, then M values / s of the Laplace noise."""
    heads = ("ours", "ours +-", "float", "peeling", "OpenDP")
    print(f"{'d':>10} {'k':>5}" + "".join(f" {head:>12}" for head in heads) + "   (ms)")
    for size, k in CASES:
        scores = make_scores(size)
        seconds = [ours(scores, k), ours(scores, k, signed=True)]
        seconds += [in_floats(scores, k), peeling(scores, k)]
        seconds.append(opendp_top_k(scores, k) if size <= OPENDP_LIMIT else float("nan"))
        print(f"{size:>10} {k:>5}" + "".join(f" {1e3 * s:>12.3f}" for s in seconds))
    print(f"\n{'size':>10} {'Laplace':>12} {'numpy':>12}   (M values/s)")
    for size in LAPLACE_SIZES:
        rates = [size / s / 1e6 for s in (laplace(size), numpy_laplace(size))]
        print(f"{size:>10}" + "".join(f" {rate:>12.1f}" for rate in rates))


if __name__ == "__main__":
    answer_help(__doc__)
    main()
