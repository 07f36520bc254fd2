"""Held-out error of private matrix completion against epsilon, beside what is easy.

usage: python tests/benchmarks/matrix.py [--seeds N] [--only NOISE-LOSS,...] [FILE:LOW:HIGH ...]

FILE is a CSV of user, item, value, as gzip or not; a fourth column that reads `test` holds a row
out, else one in ten is. Without files a low-rank matrix shaped like a million film ratings is
generated, whose truth is known.

Columns: epsilon at delta 1e-6; the noise and the loss; the error of the private item biases with
each user's own offset at the same epsilon (EB: the honest baseline), of the rule with its standard
deviation over seeds; and what the rule chose.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.csv as csv
from numpy.typing import NDArray

from dpfit.algorithms.factor_outcome import FactorOutcome, Standardised
from dpfit.data.ratings_by_user import RatingsByUser
from dpfit.fitting.matrix_fit import MatrixFit
from dpfit.fitting.matrix_request import MatrixRequest
from dpfit.fitting.user_solve import UserSolver
from dpfit.privacy.calibration import Budget

Floats = NDArray[np.float64]
EPSILONS = (1.0, 2.0, 5.0, 10.0, 20.0)
DELTA = 1e-6
VARIANTS = [(n, loss) for n in ("gaussian", "laplace", "huber") for loss in ("squared", "huber")]


@dataclass(frozen=True)
class Triplets:
    user: NDArray[np.int64]
    item: NDArray[np.int64]
    value: Floats

    def __getitem__(self, which: NDArray[np.bool_]) -> Triplets:
        return Triplets(self.user[which], self.item[which], self.value[which])


@dataclass(frozen=True)
class Problem:
    name: str
    train: Triplets
    test: Triplets
    shape: tuple[int, int]
    value_range: tuple[float, float]

    @property
    def ratings(self) -> RatingsByUser:
        train = self.train
        order = np.lexsort((train.item, train.user))
        counts = np.bincount(train.user, minlength=self.shape[0])
        indptr = np.concatenate([[0], np.cumsum(counts)])
        return RatingsByUser(0, indptr, train.item[order].astype(np.int32), train.value[order])


def read(argument: str) -> Problem:
    path, low, high = argument.rsplit(":", 2)
    table = csv.read_csv(path)
    users, items = (np.unique(table.column(i).to_numpy(), return_inverse=True)[1] for i in range(2))
    values = table.column(2).to_numpy().astype(np.float64)
    held = np.random.default_rng(0).random(len(values)) < 0.1
    if table.num_columns > 3:
        held = np.array(table.column(3).to_pylist()) == "test"
    whole = Triplets(users, items, values)
    shape = (int(users.max()) + 1, int(items.max()) + 1)
    return Problem(Path(path).name, whole[~held], whole[held], shape, (float(low), float(high)))


def generated(n_users: int = 6000, n_items: int = 3700, n_ratings: int = 1_000_000) -> Problem:
    """Rank 6 with biases and noise of .85, in 1..5; items by a power law, users log-normal.

    Users differ in how far they follow an item's bias and its popularity, as they do on films.
    """
    rng = np.random.default_rng(7)
    activity = rng.lognormal(0.0, 1.0, n_users)
    popularity = (np.arange(n_items) + 30.0) ** -1.1
    users = rng.choice(n_users, int(1.3 * n_ratings), p=activity / activity.sum())
    items = rng.choice(n_items, len(users), p=popularity / popularity.sum())
    pairs = rng.permutation(np.unique(users * n_items + items))[:n_ratings]
    users, items = pairs // n_items, pairs % n_items
    u, v = rng.standard_normal((n_users, 6)), rng.standard_normal((n_items, 6)) * 0.18
    bias = 0.45 * rng.standard_normal(n_items) - 0.1 * np.log(popularity[0] / popularity)
    values = 3.8 + bias[items] + 0.4 * rng.standard_normal(n_users)[users]
    fame = np.log(popularity / np.median(popularity))
    slopes = rng.standard_normal((n_users, 2)) * (0.35, 0.2)
    values += slopes[users, 0] * bias[items] + slopes[users, 1] * (fame - fame.mean())[items]
    values += (u[users] * v[items]).sum(1) + 0.85 * rng.standard_normal(len(users))
    values = np.clip(np.rint(values), 1.0, 5.0)
    held = rng.random(len(values)) < 0.1
    whole = Triplets(users, items, values)
    return Problem("generated", whole[~held], whole[held], (n_users, n_items), (1.0, 5.0))


def fit(problem: Problem, request: MatrixRequest) -> tuple[MatrixFit, FactorOutcome]:
    n_items = problem.shape[1]
    run = MatrixFit(request, problem.ratings, n_items=n_items, source=problem.name)
    return run, run.run(lambda _: None, lambda _: None)


def error(problem: Problem, outcome: FactorOutcome) -> float:
    solver = UserSolver(outcome)
    coefficients = solver.coefficients(problem.ratings)
    predicted = solver.predict(coefficients, problem.test.user, problem.test.item)
    return float(np.sqrt(np.mean((predicted - problem.test.value) ** 2)))


def offsets_only(outcome: FactorOutcome) -> FactorOutcome:
    """The same release, each user with an offset and nothing else."""
    off = Standardised(0.0, 0.0)
    return replace(outcome, bias_feature=off, count_feature=off)


def request_of(
    problem: Problem, epsilon: float | None, seed: int, **asked: object
) -> MatrixRequest:
    budget = None if epsilon is None else Budget(epsilon=epsilon, delta=DELTA)
    return MatrixRequest(
        budget, "benchmark", problem.value_range, without_noise=budget is None, seed=seed, **asked
    )


def show(problem: Problem, seeds: int, variants: list[tuple[str, str]]) -> None:
    train, test = problem.train, problem.test
    mean = train.value.mean()
    off = np.bincount(train.user, train.value - mean, problem.shape[0])
    off /= np.bincount(train.user, minlength=problem.shape[0]) + 6.0
    print(f"\n{problem.name}: {problem.shape[0]} users, {problem.shape[1]} items,", end=" ")
    print(f"{len(train.value)} ratings, {len(test.value)} held out")
    for name, guess in (("global mean", mean), ("user offset", mean + off[test.user])):
        print(f"  {name:<24}{np.sqrt(np.mean((guess - test.value) ** 2)):.4f}")
    for algorithm in ("als", "irls"):
        _, outcome = fit(problem, request_of(problem, None, 0, algorithm=algorithm))
        print(f"  {algorithm + ', no noise':<24}{error(problem, outcome):.4f}")
    print(f"  {'eps':>4} {'noise':<9}{'loss':<8}{'EB':>7}{'rule':>8}{'sd':>7}  bias r  T  seconds")
    for epsilon in EPSILONS:
        for noise, loss in variants:
            asked = {"noise": noise, "loss": loss}
            baseline, errors = [], []
            for seed in range(seeds):
                _, alone = fit(problem, request_of(problem, epsilon, seed, rank=0, **asked))
                baseline.append(error(problem, offsets_only(alone)))
            for seed in range(seeds):
                started = time.perf_counter()
                run, outcome = fit(problem, request_of(problem, epsilon, seed, **asked))
                seconds = time.perf_counter() - started
                errors.append(error(problem, outcome))
            chosen = run.plan.algorithm
            share = chosen.bias_share if chosen.has_factors else 1.0
            print(f"  {epsilon:4g} {noise:<9}{loss:<8}{np.mean(baseline):7.4f}", end="")
            print(f"{np.mean(errors):8.4f}{np.std(errors):7.4f}  {share:.2f}", end=" ")
            print(f"{outcome.rank}  {chosen.sweeps}  {seconds:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", help="comma-separated noise-loss")
    parser.add_argument("files", nargs="*")
    given = parser.parse_args()
    wanted = given.only and [tuple(one.split("-")) for one in given.only.split(",")]
    for problem in [read(one) for one in given.files] or [generated()]:
        show(problem, given.seeds, wanted or VARIANTS)


if __name__ == "__main__":
    main()
