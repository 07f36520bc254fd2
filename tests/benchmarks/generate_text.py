"""A text-like LIBSVM file with a sparse truth, fast and the same every time.

usage: python tests/benchmarks/generate_text.py OUT.svm [ROWS] [COLUMNS] [NONZEROS_PER_ROW]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from usage import answer_help


def generate(path: Path, rows: int, columns: int, per_row: int) -> int:
    """Write the file and return its number of non-zeros.

    Column frequencies fall as 1 / rank, values are positive with unit row norm, and the label is
    the sign of a noisy score of 200 of the frequent columns.
    """
    rng = np.random.default_rng(20_242)
    weights = 1.0 / (np.arange(columns) + 10.0)
    edges = np.cumsum(weights / weights.sum())
    names = rng.permutation(columns)
    truth = np.zeros(columns)
    truth[names[rng.choice(2_000, 200, replace=False)]] = rng.standard_normal(200)
    total = 0
    with path.open("w") as stream:
        for _ in range(rows):
            ranks = np.searchsorted(edges, rng.random(4 * per_row)).clip(max=columns - 1)
            found = np.unique(names[ranks])
            chosen = np.sort(rng.choice(found, min(per_row, len(found)), replace=False))
            values = rng.random(len(chosen)) + 0.1
            values /= np.linalg.norm(values)
            score = values @ truth[chosen] + 0.02 * rng.standard_normal()
            pairs = zip((chosen + 1).tolist(), values.tolist(), strict=True)
            text = " ".join(f"{index}:{value:.14g}" for index, value in pairs)
            stream.write(f"{'+1' if score > 0 else '-1'} {text}\n")
            total += len(chosen)
    return total


if __name__ == "__main__":
    answer_help(__doc__)
    shape = [int(argument) for argument in sys.argv[2:]] + [20_242, 47_236, 75][len(sys.argv) - 2 :]
    print(generate(Path(sys.argv[1]), *shape), "non-zeros")
