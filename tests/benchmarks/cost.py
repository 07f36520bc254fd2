"""Time of an iteration and memory of every algorithm, as columns and as rows grow.

usage: python tests/benchmarks/cost.py

First d grows at 20,000 rows, then n at 100,000 columns; a row has 75 entries, columns are
Zipf-like, s = 500, epsilon = 1 at delta = 1e-6, one thread. Every cell is a process of its own.

`step` is the median processor time between two iterations, `before` that of what precedes the first
one after the reading: the screen of dp-screen, the votes of two-stage. Below stand log-log slopes:
1 is linear. Memory is what the peak of the process exceeds a bare start by, also as a multiple of
the design's bytes (12 an entry, 4 a column). Peeling draws s d noise values a step, so it makes two
steps only and none at the largest d. dp-screen keeps more columns the more rows there are, so its
slope in n is above 1.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from statistics import median

import numpy as np
from usage import answer_help

from dpfit.data.rows import RowBlock
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.request import FitRequest
from dpfit.privacy.calibration import Budget
from dpfit.privacy.declared_facts import DeclaredFacts, Layout

PER_ROW = 75
BLOCK_ROWS = 5_000
SPARSITY = 500
STEPS = 8
PEELING = "dp-iht peeling"
PEELING_STEPS, PEELING_COLUMNS = 2, 1_000_000
ALGORITHMS = ("dp-ight", "dp-gd", "dp-screen", "dp-iht", PEELING, "dp-fw", "two-stage")
WIDER = tuple((20_000, columns) for columns in (10_000, 100_000, 1_000_000, 10_000_000))
LONGER = tuple((rows, 100_000) for rows in (5_000, 20_000, 80_000))


def random_rows(n_rows: int, n_columns: int) -> Iterator[RowBlock]:
    """Rows whose entry k lies in the k-th part of the logarithmic scale of columns."""
    rng = np.random.default_rng(0)
    places, wide = np.arange(PER_ROW), n_columns - PER_ROW
    for start in range(0, n_rows, BLOCK_ROWS):
        count = min(BLOCK_ROWS, n_rows - start)
        share = (places + rng.random((count, PER_ROW))) / PER_ROW
        ranks = (10.0 * ((wide + 10.0) / 10.0) ** share - 10.0).astype(np.int32)
        values = rng.random((count, PER_ROW)) + 0.1
        target = np.sign(values[:, 10:40:2].sum(axis=1) - values[:, 11:40:2].sum(axis=1))
        yield RowBlock(
            np.arange(0, count * PER_ROW + 1, PER_ROW, dtype=np.int64),
            (ranks + places.astype(np.int32)).ravel(),  # rise strictly
            values.ravel(),
            target,
        )


def peak_bytes() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def cell(algorithm: str, n_rows: int, n_columns: int) -> dict[str, float]:
    """Seconds and bytes of one run."""
    name, _, selection = algorithm.partition(" ")
    request = FitRequest(
        sparsity=None if name == "dp-fw" else SPARSITY,
        budget=Budget.from_request(1.0, 1e-6, None, None),
        dataset="generated",
        algorithm=name,
        loss="logistic",
        iterations=PEELING_STEPS if selection else STEPS,
        selection=selection or None,
        declared=DeclaredFacts(
            n_rows=n_rows, n_features=n_columns, index_base=0, labels=(-1.0, 1.0)
        ),
    )
    bare = peak_bytes()
    fit = LinearFit.of(request, random_rows(n_rows, n_columns), layout=Layout, source="generated")
    read = peak_bytes()
    times = [time.process_time()]
    fit.run(lambda description: None, lambda done: times.append(time.process_time()))
    before, *steps = (late - early for early, late in pairwise(times[: STEPS + 2]))
    return {
        "before": before,
        "step": median(steps),
        "read": read - bare,
        "run": peak_bytes() - bare,
    }


def measured(algorithm: str, n_rows: int, n_columns: int) -> dict[str, float]:
    """The same in a process of its own."""
    if algorithm == PEELING and n_columns > PEELING_COLUMNS:
        return dict.fromkeys(("before", "step", "read", "run"), math.nan)
    command = [sys.executable, __file__, algorithm, str(n_rows), str(n_columns)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def table(title: str, shapes: tuple[tuple[int, int], ...], sizes: list[int]) -> None:
    """A line of times, of their slopes and of memory for each algorithm."""
    print(f"\n{title}\n{'':<22}" + "".join(f"{size:>16,}" for size in sizes))
    for algorithm in ALGORITHMS:
        cells = [measured(algorithm, *shape) for shape in shapes]
        for part in ("before", "step"):
            seconds = [one[part] for one in cells]
            show(f"{algorithm} {part} ms", [f"{1e3 * value:.2f}" for value in seconds])
            show("  slope", ["", *slopes(sizes, seconds)])
        memory = []
        for one, (rows, columns) in zip(cells, shapes, strict=True):
            design = 12 * rows * PER_ROW + 4 * columns
            memory.append(f"{one['run'] / 1e6:.0f} ({one['run'] / design:.1f} x)")
        show("  memory MB", memory)


def slopes(sizes: list[int], seconds: list[float]) -> list[str]:
    points = zip(pairwise(sizes), pairwise(seconds), strict=True)
    return [f"{math.log(t2 / t1) / math.log(n2 / n1):.2f}" for (n1, n2), (t1, t2) in points]


def show(name: str, cells: list[str]) -> None:
    print(f"{name:<22}" + "".join(f"{text:>16}" for text in cells), flush=True)


def main() -> None:
    table("d grows, 20,000 rows", WIDER, [columns for _, columns in WIDER])
    table("n grows, 100,000 columns", LONGER, [rows for rows, _ in LONGER])


if __name__ == "__main__":
    answer_help(__doc__)
    if len(sys.argv) > 1:
        print(json.dumps(cell(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
    else:
        main()
