"""Test metric of every algorithm by default settings, against epsilon.

usage: python tests/benchmarks/utility.py TRAIN TEST [SPARSITY] [RUNS] [-- OPTIONS OF FIT]

Runs are unseeded, delta is 1e-6. The metric is the error rate in per cent for classes, R2 for a
real target and D2, the explained share of the Poisson deviance, for counts. The table also has the
non-private run of each algorithm. SPARSITY 0 asks for dense models, where an algorithm has them.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from usage import answer_help

DPFIT = str(Path(sys.executable).parent / "dpfit")
ALGORITHMS = ("dp-screen", "dp-gd", "dp-ight", "dp-iht", "dp-fw", "two-stage")
EPSILONS = ("0.5", "1", "2", "4")


def metric(train: str, test: str, options: list[str], folder: Path) -> float:
    """Metric on the test file of one fit; NaN when it is refused."""
    model = str(folder / "model.json")
    fit = [DPFIT, "fit", "-q", "--force", "-o", model, *options, train]
    if subprocess.run(fit, cwd=folder, check=False).returncode:
        return float("nan")
    predict = [DPFIT, "predict", "--json", "--evaluate", "--ignore-new-features", model, test]
    done = subprocess.run(predict, capture_output=True, text=True, check=True)
    values = json.loads(done.stderr)["evaluation"]
    if "error_rate" in values:
        return 100.0 * float(values["error_rate"])
    return float(values["D2" if "D2" in values else "R2"])


def main(arguments: list[str]) -> None:
    extra: list[str] = []
    if "--" in arguments:
        cut = arguments.index("--")
        arguments, extra = arguments[:cut], arguments[cut + 1 :]
    train, test = (str(Path(name).resolve()) for name in arguments[:2])
    sparsity, runs = ([*arguments[2:], "500", "3"][:2])[0], int([*arguments[2:], "500", "3"][1])
    print(
        f"{'algorithm':<10}" + "".join(f"{'eps ' + e:>16}" for e in EPSILONS) + f"{'no noise':>12}"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for algorithm in ALGORITHMS:
            size = [] if algorithm == "dp-fw" or sparsity == "0" else ["--sparsity", sparsity]
            options = ["--algo", algorithm, *size, *extra]
            cells = []
            for epsilon in EPSILONS:
                budget = ["--eps", epsilon, "--delta", "1e-6"]
                found = [metric(train, test, [*options, *budget], folder) for _ in range(runs)]
                spread = statistics.stdev(found) if runs > 1 else 0.0
                cells.append(f"{statistics.mean(found):9.3f} ({spread:.3f})")
            plain = metric(train, test, [*options, "--non-private"], folder)
            print(
                f"{algorithm:<10}" + "".join(f"{c:>16}" for c in cells) + f"{plain:12.3f}",
                flush=True,
            )


if __name__ == "__main__":
    answer_help(__doc__)
    main(sys.argv[1:])
