"""Seconds of each phase of ``dpfit fit`` on data of the shape of url and of kdda, and its peak.

usage: python tests/benchmarks/large_shapes.py [--shape url|kdda] [--scale N/M ...] [--columns N/M]
                                               [--algo NAME] [--folder DIR] [-- OPTION ...]

url has 2.4 million rows of 3.2 million columns with 115 entries each, kdda 8.4 million of 20
million with 36. Rows and columns are scaled alike unless the scale of columns is given. Each file
is generated, fitted with 1,000 coefficients at epsilon 1 in a process of its own, and deleted.
Options behind ``--`` go to ``dpfit fit``. Phases are of that process: its functions are timed from
outside. Seconds are of one call, the mean of all calls.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import wraps
from pathlib import Path
from typing import Any, Final

SHAPES: Final = {"url": (2_400_000, 3_200_000, 115), "kdda": (8_400_000, 20_000_000, 36)}
PHASES: Final = ("read", "build", "margins", "gradient", "noise", "select", "threshold", "step")
SECONDS: Counter[str] = Counter()
CALLS: Counter[str] = Counter()


def timed(owner: Any, name: str, phase: str) -> None:
    """Have calls of a function counted as a phase."""
    function: Callable[..., Any] = getattr(owner, name)

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        begun = time.perf_counter()
        try:
            return function(*args, **options)
        finally:
            SECONDS[phase] += time.perf_counter() - begun
            CALLS[phase] += 1

    setattr(owner, name, call)


def fit(arguments: list[str]) -> None:
    """The process that is measured; prints its phases and its peak."""
    from dpfit.algorithms import dp_ight, dp_iht, noisy_descent
    from dpfit.cli.app import run
    from dpfit.design.builder import DesignBuilder
    from dpfit.design.local import LocalDesign
    from dpfit.privacy.mechanisms.noise import ExactNoise

    timed(DesignBuilder, "collect", "read")
    timed(DesignBuilder, "build", "build")
    timed(LocalDesign, "margins", "margins")
    timed(LocalDesign, "gradient", "gradient")
    timed(ExactNoise, "integers", "noise")
    timed(ExactNoise, "choose", "select")
    for module in (dp_ight, dp_iht):
        if hasattr(module, "hard_threshold"):
            timed(module, "hard_threshold", "threshold")
    timed(noisy_descent, "stepped", "step")
    begun = time.perf_counter()
    if run(arguments) != 0:
        raise SystemExit(1)
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert peak is not None
    whole = {"whole": time.perf_counter() - begun, "peak": int(peak[1]) / 2**20}
    print(json.dumps({**whole, "seconds": SECONDS, "calls": CALLS}))


def measure(shape: tuple[int, int, int], algo: str, folder: Path, more: list[str]) -> None:
    """Print a line of totals and a line of seconds a call."""
    from sparse_rows import write_svm

    path = folder / "rows.svm"
    begun = time.perf_counter()
    write_svm(path, *shape)
    made = time.perf_counter() - begun
    command = [sys.executable, __file__, "fit", "rows.svm", "--algo", algo, "--eps", "1"]
    command += ["--delta", "1e-8", "--sparsity", "1000", "--labels=-1,1", "--index-base", "1"]
    command += ["--n-features", str(shape[1]), "--n-rows", str(shape[0]), "-q", "--force", *more]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    n_rows, n_columns, per_row = shape
    entries = n_rows * per_row
    print(
        f"{n_rows:>10,} {n_columns:>11,} {entries / 1e6:>7.0f} {path.stat().st_size / 1e9:>6.2f}",
        end="",
    )
    print(f" {made:>6.1f} {found['whole']:>7.1f} {found['peak']:>6.2f}", end="")
    print("".join(cells(found["seconds"], found["calls"])), flush=True)


def cells(seconds: dict[str, float], calls: dict[str, int]) -> list[str]:
    """Mean seconds of a call."""
    return [
        f" {seconds[phase] / calls[phase]:>9.3f}" if phase in calls else f" {'-':>9}"
        for phase in PHASES
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shape", choices=SHAPES, default="url")
    parser.add_argument("--scale", nargs="+", type=Fraction, default=[Fraction(1, 16)])
    parser.add_argument("--columns", type=Fraction)
    parser.add_argument("--algo", default="dp-ight")
    parser.add_argument("--folder")
    parser.add_argument("more", nargs="*")
    arguments = parser.parse_args()
    heads = f"{'rows':>10} {'columns':>11} {'M nnz':>7} {'GB':>6} {'made s':>6} {'fit s':>7}"
    print(f"{heads} {'GiB':>6}", end="")
    print("".join(f" {phase:>9}" for phase in PHASES) + "   seconds a call", flush=True)
    rows, columns, per_row = SHAPES[arguments.shape]
    for scale in arguments.scale:
        wide = columns * (scale if arguments.columns is None else arguments.columns)
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            shape = int(rows * scale), int(wide), per_row
            measure(shape, arguments.algo, Path(folder), arguments.more)


if __name__ == "__main__":
    if sys.argv[1:2] == ["fit"]:
        fit(sys.argv[1:])
    else:
        main()
