"""The gradient product over an integer design, against reading the same bytes.

usage: python tests/benchmarks/gradient.py [ROWS] [COLUMNS] [NONZEROS_PER_ROW]
"""

from __future__ import annotations

import sys
from statistics import median

import numpy as np
from timing import median_seconds, paired_seconds
from usage import answer_help

from dpfit.data.rows import RowBlock
from dpfit.design.builder import DesignBuilder
from dpfit.design.grid import Grid, RowMap
from dpfit.design.integer_point import IntegerPoint
from dpfit.design.local import LocalDesign

RUNS = 9


def random_design(rows: int, columns: int, per_row: int, threads: int) -> LocalDesign:
    rng = np.random.default_rng(0)
    step = columns // per_row
    builder = DesignBuilder(Grid(1.0, RowMap.NORMALIZE, 20, True), threads)
    for start in range(0, rows, 50_000):
        count = min(50_000, rows - start)
        first = np.arange(per_row, dtype=np.int32) * np.int32(step)
        indices = first + rng.integers(0, step, (count, per_row), dtype=np.int32)
        indptr = np.arange(0, count * per_row + 1, per_row, dtype=np.int64)
        builder.collect([RowBlock(indptr, indices.ravel(), rng.random(count * per_row), None)])
    return builder.build(columns, grid=builder.grid, index_base=0)


def main(rows: int, columns: int, per_row: int) -> None:
    print(f"{rows} x {columns}, {rows * per_row} non-zeros; medians of 9, milliseconds")
    rng = np.random.default_rng(1)
    residuals = rng.integers(-(2**20), 2**20, rows)
    support = np.sort(rng.choice(columns, min(500, columns), replace=False))
    point = IntegerPoint(support, rng.integers(-(2**30), 2**30, len(support)), np.int64(1))
    for threads in (1, 2):
        design = random_design(rows, columns, per_row, threads)
        arrays = [part for c in design._chunks for part in (c.rows.data, c.rows.indices)]
        pairs = paired_seconds(
            lambda d=design: d.gradient(residuals),
            lambda a=arrays: [part.max() for part in a],
            RUNS,
        )
        gradient, read = (1e3 * median(times) for times in zip(*pairs, strict=True))
        ratios = [product / stream for product, stream in pairs]
        margins = 1e3 * median_seconds(lambda d=design: d.margins(point), RUNS)
        size = sum(part.nbytes for part in arrays) / 1e6
        print(
            f"{threads} thread(s): gradient {gradient:.2f}, margins of {len(support)} columns "
            f"{margins:.2f}, one thread reading the same {size:.0f} MB {read:.2f}, "
            f"gradient / read {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}), "
            f"{rows * per_row / gradient / 1e3:.0f} M nnz/s"
        )


if __name__ == "__main__":
    answer_help(__doc__)
    shape = [int(argument) for argument in sys.argv[1:]]
    main(*(shape or [20_242, 47_236, 75]))
