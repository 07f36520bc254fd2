"""A private search against the default rule at equal total epsilon.

usage: python tests/benchmarks/tuning.py TRAIN TEST EPSILON RUNS [OPTIONS OF FIT, --tune among them]

Delta is 1e-6, runs are unseeded. Prints the mean and the standard deviation of the test error (rate
in per cent, or RMSE) of the default rule, of the search, and of the best and the worst combination
fixed beforehand with the whole budget: ranked by test error, so no one can choose the best.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from usage import answer_help

from dpfit.cli.tune_option import grid_of
from dpfit.fitting.search import Search

PROGRAM = (sys.executable, "-c", "from dpfit.cli.app import main; main()")


def error(train: str, test: str, options: list[str]) -> float:
    """Test error of one fit; NaN where it is refused, as without a setting that has no default."""
    with tempfile.TemporaryDirectory() as name:
        model = str(Path(name) / "model.json")
        fit = [*PROGRAM, "fit", "-q", "-o", model, *options, train]
        if subprocess.run(fit, cwd=name, check=False, stderr=subprocess.DEVNULL).returncode:
            return float("nan")
        evaluate = [*PROGRAM, "evaluate", "--public", "--json", "--ignore-new-features"]
        done = subprocess.run([*evaluate, model, test], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)["metrics"]
    return 100.0 * found["error_rate"] if "error_rate" in found else float(found["RMSE"])


def cell(found: list[float]) -> str:
    if any(math.isnan(value) for value in found):
        return f"{'refused':>9}"
    spread = statistics.stdev(found) if len(found) > 1 else 0.0
    return f"{statistics.mean(found):9.4f} ({spread:.4f})"


def main(arguments: list[str]) -> None:
    train, test = (str(Path(name).resolve()) for name in arguments[:2])
    epsilon, runs = arguments[2], int(arguments[3])
    plain, tuned, listed = [], [], []
    rest = iter(arguments[4:])
    for option in rest:
        if option == "--tune":
            text = next(rest)
            tuned += [option, text]
            listed.append(text)
        elif option == "--tune-runs":
            tuned += [option, next(rest)]
        else:
            plain.append(option)
    budget = ["--eps", epsilon, "--delta", "1e-6"]

    def errors(*options: str) -> list[float]:
        return [error(train, test, [*plain, *budget, *options]) for _ in range(runs)]

    known = {}
    grid = {name: tuple(values) for name, values in grid_of(listed).items()}
    for one in Search(grid).candidates():
        given = [part for n, v in one.items() for part in (f"--{n.replace('_', '-')}", str(v))]
        known[" ".join(given)] = errors(*given)
    order = sorted(known, key=lambda given: statistics.mean(known[given]))
    print(f"{Path(train).name} eps {epsilon} {' '.join(arguments[4:])}")
    print(f"  default {cell(errors())}  search {cell(errors(*tuned))}")
    for name, given in (("best", order[0]), ("worst", order[-1])):
        print(f"  {name} known {cell(known[given])} {given}", flush=True)


if __name__ == "__main__":
    answer_help(__doc__)
    main(sys.argv[1:])
