"""What one round of a cluster costs: seconds and bytes, by columns and workers.

usage: python tests/benchmarks/cluster.py [--rounds N] [--columns D,D,...] [--workers K,K,...]

Workers are processes of this machine, encrypted, as --cluster local:K makes them. A round is what a
gradient step is to the network: a point of 1,000 coefficients goes to every worker, each answers
with D integers, which are added in pairs, and one sum comes to the client. Nothing is computed on
rows. The bytes are those of the sums, 8 D from each worker once: 8 D K a round, of which the client
receives 8 D.
"""

from __future__ import annotations

import argparse
import time
from statistics import median

import numpy as np
from numpy.typing import NDArray

from dpfit.cli.cluster import connected

POINT = np.arange(2 * 1_000)  # columns and coefficients


def answer(point: NDArray[np.int64], d: int) -> NDArray[np.int64]:
    """As long as a gradient."""
    return np.full(d, point[1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--columns", default="1000,100000,1000000,4000000")
    parser.add_argument("--workers", default="1,2,4")
    options = parser.parse_args()
    print(f"{'workers':>7} {'columns':>9} {'MB a round':>10} {'seconds (range)':>24} {'MB/s':>7}")
    for k in map(int, options.workers.split(",")):
        with connected(f"local:{k}") as workers:
            for d in map(int, options.columns.split(",")):
                seconds = []
                for _ in range(options.rounds + 1):
                    started = time.perf_counter()
                    total = workers.total(workers.each(answer, [POINT] * k, [d] * k))
                    seconds.append(time.perf_counter() - started)
                    assert total[-1] == k
                seconds = seconds[1:]  # the first opens connections
                moved = 8e-6 * d * k
                told = f"{median(seconds):.3f} ({min(seconds):.3f}-{max(seconds):.3f})"
                print(f"{k:>7} {d:>9} {moved:>10.1f} {told:>24} {moved / median(seconds):>7.0f}")


if __name__ == "__main__":
    main()
