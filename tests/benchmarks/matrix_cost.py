"""Seconds and memory of a private completion as users, items and rank grow.

usage: python tests/benchmarks/matrix_cost.py

Beside it one sweep of plain alternating least squares in NumPy: per-user and per-item Gram matrices
by sparse products, batched solves, no privacy. Memory is the peak of what a second run allocates
beside the triplets it is given.
"""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
from matrix import Problem, generated, request_of
from scipy.sparse import csr_matrix
from usage import answer_help

from dpfit.fitting.matrix_fit import MatrixFit

SHAPES = [
    (6_000, 3_700, 1_000_000, 8),
    (12_000, 3_700, 2_000_000, 8),
    (24_000, 3_700, 4_000_000, 8),
    (6_000, 15_000, 1_000_000, 8),
    (6_000, 3_700, 1_000_000, 2),
    (6_000, 3_700, 1_000_000, 16),
    (6_000, 3_700, 1_000_000, 32),
]


def private(problem: Problem, rank: int) -> tuple[float, float, float]:
    """Seconds of reading into users, of one pass and of one sweep."""
    before = time.perf_counter()
    request = request_of(problem, 10.0, 0, rank=rank, passes=2, sweeps=2)
    run = MatrixFit(request, problem.ratings, n_items=problem.shape[1], source="it")
    built = time.perf_counter() - before
    stamps: list[float] = []
    run.run(lambda _: None, lambda _: stamps.append(time.perf_counter()))
    return built, stamps[1] - stamps[0], stamps[-1] - stamps[-2]


def plain(problem: Problem, rank: int) -> float:
    """Seconds of one sweep of alternating least squares."""
    train = problem.train
    matrix = csr_matrix((train.value - 3.0, (train.user, train.item)), shape=problem.shape)
    factors = np.random.default_rng(0).standard_normal((problem.shape[1], rank + 1)) * 0.1
    before = time.perf_counter()
    for side in (matrix, matrix.T.tocsr()):
        i, j = np.triu_indices(rank + 1)
        seen = side.copy()
        seen.data = np.ones_like(seen.data)
        packed = seen @ (factors[:, i] * factors[:, j])
        grams = np.empty((side.shape[0], rank + 1, rank + 1))
        grams[:, i, j] = grams[:, j, i] = packed
        grams += 5.0 * np.eye(rank + 1)
        factors = np.linalg.solve(grams, (side @ factors)[:, :, None])[:, :, 0]
    return time.perf_counter() - before


def measure(users: int, items: int, ratings: int, rank: int) -> None:
    problem = generated(users, items, ratings)
    built, one_pass, sweep = private(problem, rank)
    tracemalloc.start()
    private(problem, rank)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    row = (users, items, len(problem.train.value), rank, built, one_pass, sweep)
    print("{:>7}{:>8}{:>9}{:>5}{:>8.2f}{:>7.2f}{:>8.2f}".format(*row), end="")
    print(f"{plain(problem, rank):>8.2f}{peak:>9.0f}", flush=True)


def main() -> None:
    heads = ("users", "items", "ratings", "r", "collect", "pass", "sweep", "ALS", "MB peak")
    print("{:>7}{:>8}{:>9}{:>5}{:>8}{:>7}{:>8}{:>8}{:>9}".format(*heads), flush=True)
    for shape in SHAPES:
        measure(*shape)


if __name__ == "__main__":
    answer_help(__doc__)
    main()
