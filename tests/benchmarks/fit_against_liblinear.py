"""Whole-process time and memory of ``dpfit fit`` against ``liblinear-train -s 0``, in turn.

usage: python tests/benchmarks/fit_against_liblinear.py [--runs N] [FILE.svm]

Without a file a text-like one is generated (20,242 x 47,236, 1.5 M non-zeros). The peer is not
private; it comes from the Debian package liblinear-tools.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from generate_text import generate

_NO_BYTE_CODE = "PYTHONDONTWRITEBYTECODE"


def measure(command: list[str], folder: Path) -> tuple[float, float, float]:
    """Wall seconds, processor seconds and peak MiB of one run.

    Byte code is cached, as an installation does, whatever the environment says.
    """
    environment = {key: value for key, value in os.environ.items() if key != _NO_BYTE_CODE}
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    if status != 0:
        raise SystemExit(f"{command[0]} failed with status {status}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def show(name: str, rows: list[tuple[float, float, float]], *, width: int = 16) -> None:
    wall, cpu, peak = (statistics.median(column) for column in zip(*rows, strict=True))
    low, high = min(row[0] for row in rows), max(row[0] for row in rows)
    print(f"{name:<{width}} {wall:8.3f} {low:8.3f} {high:8.3f} {cpu:8.3f} {peak:9.0f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    peer = shutil.which("liblinear-train") or sys.exit("liblinear-train is not installed")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = arguments.file or folder / "text.svm"
        if arguments.file is None:
            print(generate(path, 20_242, 47_236, 75), "non-zeros,", path.stat().st_size, "bytes")
        dpfit = str(Path(sys.executable).parent / "dpfit")
        budget = ["--eps", "1", "--delta", "1e-6", "--sparsity", "500"]
        ours_command = [dpfit, "fit", "--algo", "dp-ight", *budget, str(path), "--force", "-q"]
        peer_command = [peer, "-q", "-s", "0", str(path), str(folder / "peer.model")]
        ours, theirs = [], []
        for _ in range(arguments.runs + 1):
            ours.append(measure(ours_command, folder))
            theirs.append(measure(peer_command, folder))
    print(f"{'median of ' + str(arguments.runs):<16} {'wall s':>8} {'min':>8} {'max':>8} ", end="")
    print(f"{'cpu s':>8} {'peak MiB':>9}")
    show("dpfit fit", ours[1:])  # the first run of each warms the caches and is not counted
    show("liblinear -s 0", theirs[1:])
    pairs = [a[0] / b[0] for a, b in zip(ours[1:], theirs[1:], strict=True)]
    print(f"wall ratio, pair by pair: median {statistics.median(pairs):.2f}", end="")
    print(f" ({min(pairs):.2f} to {max(pairs):.2f})")


if __name__ == "__main__":
    main()
