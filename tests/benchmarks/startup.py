"""Whole-process wall time of the commands that read no data.

usage: python tests/benchmarks/startup.py [RUNS]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from fit_against_liblinear import measure, show
from usage import answer_help

COMMANDS = (["--help"], ["--version"], ["budget", "--eps", "4", "--delta", "1e-6"])


def main(runs: int) -> None:
    dpfit = str(Path(sys.executable).parent / "dpfit")
    title = f"median of {runs}"
    print(f"{title:<34} {'wall s':>8} {'min':>8} {'max':>8} {'cpu s':>8} {'peak MiB':>9}")
    with tempfile.TemporaryDirectory() as name:
        for command in COMMANDS:
            rows = [measure([dpfit, *command], Path(name)) for _ in range(runs + 1)]
            show(" ".join(["dpfit", *command]), rows[1:], width=34)


if __name__ == "__main__":
    answer_help(__doc__)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 11)
