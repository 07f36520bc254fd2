"""Speed of the LIBSVM reader against scikit-learn's, in one process, alternately.

usage: python tests/benchmarks/reader.py [REPEATS]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from sklearn.datasets import load_svmlight_file
from usage import answer_help

from dpfit.data.reader import Reader, ReadOptions

ROWS, COLUMNS, PER_ROW = 20_242, 47_236, 75


def write_text_like(path: Path) -> None:
    """Rows as of a tf-idf text set: sorted columns, values like 0.0123456789, labels +1 and -1."""
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        for _ in range(ROWS):
            columns = np.sort(rng.choice(COLUMNS, PER_ROW, replace=False)) + 1
            values = rng.random(PER_ROW) * 0.2
            pairs = " ".join(f"{i}:{v:.15f}" for i, v in zip(columns, values, strict=True))
            file.write(f"{'+1' if rng.random() < 0.5 else '-1'} {pairs}\n")


def read_all(path: str, threads: int) -> int:
    """Read every block and let it go, as a caller that works by blocks does."""
    blocks = Reader([path], ReadOptions(threads=threads))
    return sum(len(block.values) for block in blocks)


def read_and_hold(path: str, threads: int) -> int:
    """Read every block and keep it, as scikit-learn keeps its matrix."""
    blocks = list(Reader([path], ReadOptions(threads=threads)))
    return sum(len(block.values) for block in blocks)


def peak_memory(path: str, threads: int) -> float:
    """Growth of the peak resident size in MiB over a run in a fresh process, blocks let go."""
    code = (
        "import re, sys; sys.path.insert(0, sys.argv[3])\n"
        "from dpfit.data.reader import Reader, ReadOptions\n"
        "import dpfit.data.libsvm\n"
        # Not getrusage: its peak starts with that of the parent process.
        "status = lambda: open('/proc/self/status').read()\n"
        "size = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', status())[1])\n"
        "before = size()\n"
        "for block in Reader([sys.argv[1]], ReadOptions(threads=int(sys.argv[2]))): pass\n"
        "print((size() - before) / 1024)\n"
    )
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", code, path, str(threads), root]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main(repeats: int) -> None:
    """Time each reader ``repeats`` times in turn and print a table of medians."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.svm"
        write_text_like(path)
        megabytes = path.stat().st_size / 1e6
        runs: dict[str, Callable[[], object]] = {
            "scikit-learn": lambda: load_svmlight_file(str(path)),
            "dpfit, 1 thread": lambda: read_all(str(path), 1),
            "dpfit, 2 threads": lambda: read_all(str(path), 2),
            "dpfit, 1 thread, kept": lambda: read_and_hold(str(path), 1),
            "dpfit, 2 threads, kept": lambda: read_and_hold(str(path), 2),
        }
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        busy: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(repeats):
            for name, run in runs.items():
                start, start_busy = time.perf_counter(), time.process_time()
                run()
                seconds[name].append(time.perf_counter() - start)
                busy[name].append(time.process_time() - start_busy)
        print(f"{megabytes:.1f} MB, {ROWS} rows, {PER_ROW} entries each; median of {repeats}")
        base = median(seconds["scikit-learn"])
        for name, times in seconds.items():
            middle = median(times)
            rate, ratio = megabytes / middle, base / middle
            cpu = median(busy[name])
            print(f"{name:24s} {middle:7.3f} s {rate:6.0f} MB/s {ratio:5.1f} x  cpu {cpu:.3f} s")
        for threads in (1, 2):
            extra = peak_memory(str(path), threads)
            print(f"peak extra memory, {threads} thread(s): {extra:.0f} MiB")


if __name__ == "__main__":
    answer_help(__doc__)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
