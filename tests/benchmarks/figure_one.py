"""Errors on dense synthetic rows, against epsilon: Figure 1 of Wang and Gu (IJCAI 2019).

usage: python tests/benchmarks/figure_one.py [TRIALS] [WIDE_TRIALS] [PROCESSES] [ALL]

theta* is uniform on (-1, 1) on s* coordinates, entries are uniform on (-2, 2), rows longer than
K = 2 s* are scaled down to it; y = x.theta* + N(0, 0.1), or P(y = 1) = 1 / (1 + exp(-x.theta*)).
The noise is that of the stated budget under replace-one, which the paper's was not.

A cell holds the relative error of the coefficients, |theta - theta*| / |theta*|, that of the scores
of fresh rows, |f(X) - X theta*| / |X theta*|, and the per cent of the s* columns found; medians of
the trials (10, and 2 where d = 5000). The model of zeros has error 1 of both kinds. dp-screen and
two-stage score rows brought to length one on their columns: their coefficients are none of the same
model, so the first number is left out.

Declared, as the model class makes it known: K, 2 over the usual row length as the entry bound, and
for a value three standard deviations of y as its range. `no noise` has the non-private originals.
Below the default settings, which assume nothing of the rows, stand those of one who knows that they
are dense: `dense_settings`. Where d = 5000 fits of many dense products are left out: dp-gd,
dp-screen, and default settings where there are others; ALL = 1 has them too.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from multiprocessing import Pool
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from usage import answer_help

from dpfit.algorithms.outcome import Outcome
from dpfit.data.rows import RowBlock
from dpfit.design.grid import RowMap
from dpfit.fitting.algorithm_traits import ALGORITHMS, ORIGINALS
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.plan import plan_fit
from dpfit.fitting.request import FitRequest
from dpfit.privacy.calibration import Budget
from dpfit.privacy.declared_facts import DeclaredFacts, Layout

Floats: TypeAlias = NDArray[np.float64]
Settings: TypeAlias = dict[str, int | float]
Results: TypeAlias = dict[tuple[str, float | None, float | None], list[float]]
"""Numbers of a cell, by its row, delta and epsilon."""

EPSILONS = (2.0, 4.0, 6.0, 8.0, 10.0)
DELTAS = (0.01, 1e-6)
LOSSES = ("squared", "logistic")
NOISE_VARIANCE = 0.1
FRESH_ROWS = 1_000
BLOCK_ROWS = 500
DENSE = ", dense"
NARROW = ("dp-gd", "dp-screen")  # dense iterations, which take minutes at d = 5000
WITHOUT_INTERCEPT = [name for name, traits in ALGORITHMS.items() if traits.intercept]
WITH_INTERCEPT = [name for name, traits in ALGORITHMS.items() if not traits.intercept]
PLAIN = {private: original for original, private in ORIGINALS.items()}


@dataclass(frozen=True)
class Problem:
    """A setting of the figure: n, d and s*; ``wide`` leaves out what takes minutes a fit."""

    n_rows: int
    n_features: int
    sparsity: int
    wide: bool = False

    @property
    def row_norm(self) -> float:
        """K."""
        return 2.0 * self.sparsity

    @property
    def usual_norm(self) -> float:
        """Of a row before it is scaled."""
        return math.sqrt(4.0 / 3.0 * self.n_features)

    @property
    def entry_variance(self) -> float:
        """Of a row after it was scaled."""
        return 4.0 / 3.0 * min(self.row_norm / self.usual_norm, 1.0) ** 2

    @property
    def largest_target(self) -> float:
        return 3.0 * math.sqrt(self.sparsity / 3.0 * self.entry_variance + NOISE_VARIANCE)


@dataclass(frozen=True)
class Data:
    """Rows, targets, fresh rows and the truth."""

    rows: Floats
    target: Floats
    fresh: Floats
    truth: Floats

    def blocks(self) -> Iterator[RowBlock]:
        width = self.rows.shape[1]
        for start in range(0, len(self.rows), BLOCK_ROWS):
            part = self.rows[start : start + BLOCK_ROWS]
            yield RowBlock(
                np.arange(0, part.size + 1, width, dtype=np.int64),
                np.tile(np.arange(width, dtype=np.int32), len(part)),
                part.ravel(),
                self.target[start : start + BLOCK_ROWS],
            )


def generate(problem: Problem, loss: str, seed: int) -> Data:
    rng = np.random.default_rng(seed)
    truth = np.zeros(problem.n_features)
    chosen = rng.choice(problem.n_features, problem.sparsity, replace=False)
    truth[chosen] = rng.uniform(-1.0, 1.0, problem.sparsity)
    rows, fresh = (random_rows(problem, count, rng) for count in (problem.n_rows, FRESH_ROWS))
    scores = rows @ truth
    if loss == "squared":
        target = scores + math.sqrt(NOISE_VARIANCE) * rng.standard_normal(len(scores))
    else:
        target = (rng.random(len(scores)) < 1.0 / (1.0 + np.exp(-scores))).astype(np.float64)
    return Data(rows, target, fresh, truth)


def random_rows(problem: Problem, count: int, rng: np.random.Generator) -> Floats:
    rows = rng.uniform(-2.0, 2.0, (count, problem.n_features))
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    rows *= np.minimum(problem.row_norm / norms, 1.0)
    return rows


def dense_settings(problem: Problem, loss: str, algorithm: str, *, noise: bool) -> Settings | None:
    """Settings for entries that are all alike, found on other seeds; None: the default is for them.

    Steps are as long as the variance of an entry allows, where unit rows of any kind allow 1/d of
    that, and the l1 ball holds the usual model.
    """
    values = loss == "squared"
    clip, curvature = (0.1, 1.0) if values else (0.25, 0.25)
    if not noise:
        clip = 0.2 if values else 1.0
    if algorithm == "dp-fw":
        span = 2.0 * problem.largest_target if values else 1.0
        radius = problem.sparsity / 2.0 / span
        steps = 2 * problem.sparsity if noise else 200
        return {"iterations": steps, "l1_radius": radius, "residual_clip": clip}
    if algorithm not in ("dp-ight", "dp-iht", "dp-gd"):
        return None
    share = 0.4 if algorithm == "dp-gd" else 0.7 if values else 1.0
    step = share / curvature / problem.entry_variance
    steps = 50 if not noise else 5 if values else 3
    return {"iterations": steps, "step_size": step, "residual_clip": clip}


def base_request(problem: Problem, loss: str, algorithm: str) -> FitRequest:
    """By default settings, without noise."""
    values = loss == "squared"
    bound = problem.largest_target
    return FitRequest(
        sparsity=None if algorithm == "dp-fw" else problem.sparsity,
        budget=None,
        dataset="generated",
        without_noise=True,
        algorithm=algorithm,
        loss=loss,
        entry_clip=2.0 / problem.usual_norm,
        row_norm=problem.row_norm,
        row_map=RowMap.CLIP,
        intercept=not ALGORITHMS[algorithm].intercept,
        declared=DeclaredFacts(
            n_rows=problem.n_rows,
            n_features=problem.n_features,
            index_base=0,
            labels=None if values else (0.0, 1.0),
            target_range=(-bound, bound) if values else None,
        ),
    )


def refitted(read: LinearFit, request: FitRequest) -> Outcome:
    """A fit of the rows that were read for a request with the same record map."""
    fit = copy(read)
    low, high = read.target_range or (0.0, 1.0)
    fit.request = request
    fit.plan = plan_fit(request, read.plan.facts, read.plan.loss, target_span=high - low)
    return fit.run(lambda description: None, lambda done: None)


def errors(data: Data, problem: Problem, loss: str, outcome: Outcome) -> list[float]:
    """Of coefficients, of fresh rows' scores, and the per cent of columns found."""
    span = 2.0 * problem.largest_target if loss == "squared" else 1.0
    theta = np.zeros(problem.n_features)
    theta[outcome.columns] = span * outcome.values
    truth = data.fresh @ data.truth
    found = 100.0 * np.count_nonzero(theta[data.truth != 0.0]) / problem.sparsity
    distance = float(np.linalg.norm(theta - data.truth) / np.linalg.norm(data.truth))
    scores = data.fresh @ theta
    if outcome.centring is not None:
        distance = math.nan
        scores = span * unit_scores(data.fresh[:, outcome.columns] / problem.row_norm, outcome)
    return [distance, float(np.linalg.norm(scores - truth) / np.linalg.norm(truth)), found]


def unit_scores(shares: Floats, outcome: Outcome) -> Floats:
    """Scores of rows that are centred and brought to length one."""
    centring = outcome.centring
    assert centring is not None
    rows = np.column_stack([shares - centring.centre, np.full(len(shares), centring.constant)])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return outcome.offset + rows @ np.append(outcome.values, outcome.intercept)


@dataclass(frozen=True)
class Task:
    """All fits of one data set; a function of this alone but for the noise."""

    problem: Problem
    loss: str
    trial: int

    def run(self) -> Results:
        data = generate(self.problem, self.loss, self.trial)
        results: Results = {}
        for algorithms in (WITHOUT_INTERCEPT, WITH_INTERCEPT):
            first = base_request(self.problem, self.loss, algorithms[0])
            read = LinearFit.of(first, data.blocks(), layout=Layout, source="generated")
            for algorithm in algorithms:
                if not (self.problem.wide and algorithm in NARROW):
                    results |= self.of_algorithm(algorithm, read, data)
        return results

    def of_algorithm(self, algorithm: str, read: LinearFit, data: Data) -> Results:
        results: Results = {}
        base = base_request(self.problem, self.loss, algorithm)
        for name, budget in budgets().items():
            request = replace(base, budget=budget, without_noise=budget is None)
            if budget is None:
                request = replace(request, algorithm=PLAIN.get(algorithm, algorithm))
            own = dense_settings(self.problem, self.loss, algorithm, noise=budget is not None)
            for kind, settings in (("", {}), (DENSE, own)):
                skipped = self.problem.wide and kind == "" and own is not None
                if settings is not None and not skipped:
                    outcome = refitted(read, replace(request, **settings))
                    found = errors(data, self.problem, self.loss, outcome)
                    results[(algorithm + kind, *name)] = found
        return results


def budgets() -> dict[tuple[float | None, float | None], Budget | None]:
    """By delta and epsilon; last the run without noise."""
    named: dict[tuple[float | None, float | None], Budget | None] = {
        (delta, epsilon): Budget.from_request(epsilon, delta, None, None)
        for delta in DELTAS
        for epsilon in EPSILONS
    }
    return {**named, (None, None): None}


def show(problem: Problem, loss: str, trials: list[Results]) -> None:
    """A table for each delta."""
    for delta in DELTAS:
        print(
            f"\nn {problem.n_rows}, d {problem.n_features}, s* {problem.sparsity}, {loss}, "
            f"delta {delta:g}, {len(trials)} trials"
        )
        columns = [(delta, epsilon) for epsilon in EPSILONS] + [(None, None)]
        heads = [f"eps {epsilon:g}" for epsilon in EPSILONS] + ["no noise"]
        print(f"{'':<16}" + "".join(f"{head:>19}" for head in heads))
        for kind in ("", DENSE):
            for row in (name + kind for name in ALGORITHMS):
                if (row, None, None) in trials[0]:
                    cells = [[trial[(row, *column)] for trial in trials] for column in columns]
                    print(f"{row:<16}" + "".join(f"{cell(found):>19}" for found in cells))
    sys.stdout.flush()


def cell(found: list[list[float]]) -> str:
    """Medians of the three numbers."""
    coefficients, scores, columns = np.median(found, axis=0)
    return f"{coefficients:.3g} {scores:.3g} {columns:.0f}%".replace("nan", "-")


def main(trials: int = 10, wide_trials: int = 2, processes: int = 2, everything: int = 0) -> None:
    counts = {
        Problem(1_000, 1_000, 10): trials,
        Problem(5_000, 5_000, 30, wide=not everything): wide_trials,
    }
    with Pool(processes) as pool:
        for problem, loss in itertools.product(counts, LOSSES):
            tasks = [Task(problem, loss, trial) for trial in range(counts[problem])]
            if tasks:
                show(problem, loss, pool.map(Task.run, tasks, chunksize=1))


if __name__ == "__main__":
    answer_help(__doc__)
    main(*(int(argument) for argument in sys.argv[1:]))
