"""dpfit beside other programs on the same files: time, peak memory and test error in one table.

usage: python tests/benchmarks/peers.py [TRAIN.svm TEST.svm] [--environments DIR] [--runs N]
                                        [--epsilon E] [--delta D] [--sparsity S] [--only NAME,...]

Without files two text-like ones are generated (generate_text.py: 10,000 and 5,000 of 15,000 rows,
20,000 columns, 75 non-zeros a row). Files may be compressed by gzip; two classes, numbered from 1.

Every peer runs in an environment that this script makes in DIR, or for the run, by ``python -m
venv`` and pip: none is a dependency of dpfit. liblinear comes from the Debian package
liblinear-tools and is left out where that is absent. A peer that cannot be installed or fails is
told and left out.

Programs take turns, so that a slow minute of the machine falls on all. Time and memory are of the
whole process as the system counts them (wait4); those of the Python peers also read the test file,
so the seconds of their fit alone stand beside. Each figure is the median of the runs, with the
least and the largest. Private ones make new noise each time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from generate_text import generate

MODELS = Path(__file__).with_name("peer_models.py")
DPFIT = (sys.executable, "-c", "from dpfit.cli.app import main; main()")
# What each environment holds; diffprivlib needs a scikit-learn of its time.
ENVIRONMENTS = {
    "learn": ("scikit-learn",),
    "diffprivlib": ("diffprivlib", "scikit-learn<1.6"),
    "opendp": ("opendp", "scikit-learn"),
}


@dataclass(frozen=True)
class Run:
    """What one run showed; ``fit`` is None where only the whole process can be timed."""

    wall: float
    peak: float
    error: float
    used: float
    fit: float | None = None


@dataclass(frozen=True)
class Peer:
    """A program, whether its model is private, and whether it works on sparse rows."""

    name: str
    private: str
    rows: str
    run: Callable[[int], Run]


def measured(command: list[str], folder: Path) -> tuple[float, float, str]:
    """Wall seconds, peak MiB and output of one process."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(os.cpu_count())}
    with tempfile.TemporaryFile() as out:
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdout=out, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = status
        if status != 0:
            raise RuntimeError(f"{command[0]} failed")
        out.seek(0)
        return wall, usage.ru_maxrss / 1024, out.read().decode()


class Programs:
    """All that is compared, on one pair of files.

    Parameters
    ----------
    train, test : Path
    folder : Path
        Where environments are, or are made.
    work : Path
        For models.
    options : argparse.Namespace
        epsilon, delta, sparsity.
    """

    def __init__(
        self, train: Path, test: Path, folder: Path, work: Path, options: argparse.Namespace
    ) -> None:
        self._train, self._test = str(train), str(test)
        self._folder, self._work = folder, work
        self._budget = (str(options.epsilon), str(options.delta))
        self._sparsity = str(options.sparsity)

    def all(self) -> list[Peer]:
        pure = f"({self._budget[0]}, 0)"
        both = f"({', '.join(self._budget)})"
        return [
            Peer("dpfit", both, "sparse", lambda _: self._dpfit(*self._charge())),
            Peer("dpfit without noise", "no", "sparse", lambda _: self._dpfit("--non-private")),
            Peer("liblinear -s 0", "no", "sparse", lambda _: self._liblinear()),
            Peer("scikit-learn SGD", "no", "sparse", self._model("sgd", "learn")),
            Peer("scikit-learn saga", "no", "sparse", self._model("saga", "learn")),
            Peer("diffprivlib", pure, "dense", self._model("diffprivlib", "diffprivlib")),
            Peer("OpenDP noise in DP-GD", both, "sparse", self._model("opendp", "opendp")),
            Peer("NumPy DP-GD", both, "sparse", self._model("numpy_gd", "learn")),
            Peer("NumPy DP-SGD", both, "sparse", self._model("numpy_sgd", "learn")),
            Peer("NumPy DP-FW", both, "sparse", self._model("numpy_fw", "learn")),
        ]

    def _charge(self) -> tuple[str, ...]:
        return ("--eps", self._budget[0], "--delta", self._budget[1])

    def _dpfit(self, *charge: str) -> Run:
        model = str(self._work / "dpfit.json")
        options = ("--loss", "logistic", "--sparsity", self._sparsity, "-o", model, "--force", "-q")
        ledger = ("--ledger", str(self._work / "dpfit.ledger"))
        fit = [*DPFIT, "fit", self._train, *charge, *options, *ledger]
        wall, peak, _ = measured(fit, self._work)
        predict = [*DPFIT, "predict", model, self._test, "--evaluate", "--json"]
        shown = subprocess.run(predict, check=True, capture_output=True, text=True)
        stored = json.loads(Path(model).read_bytes())
        return Run(wall, peak, _error_told(shown.stderr), _share(stored))

    def _liblinear(self) -> Run:
        train, predict = (shutil.which(f"liblinear-{verb}") for verb in ("train", "predict"))
        if train is None or predict is None:
            raise RuntimeError("liblinear-tools is not installed")
        model, out = str(self._work / "liblinear"), str(self._work / "predicted")
        wall, peak, _ = measured([train, "-q", "-s", "0", self._train, model], self._work)
        _, _, told = measured([predict, self._test, model, out], self._work)
        accuracy = float(told.split("=")[1].split("%")[0])
        return Run(wall, peak, 1 - accuracy / 100, 1.0)

    def _model(self, name: str, environment: str) -> Callable[[int], Run]:
        def run(seed: int) -> Run:
            python = self._python(environment)
            command = [python, str(MODELS), name, self._train, self._test, str(seed), *self._budget]
            wall, peak, told = measured(command, self._work)
            return Run(wall, peak, **json.loads(told))

        return run

    def _python(self, environment: str) -> str:
        """The interpreter of an environment, which is made where it is not there."""
        place = self._folder / environment
        python = place / "bin" / "python"
        if not (place / "complete").exists():
            subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
            install = [str(python), "-m", "pip", "install", "-q", *ENVIRONMENTS[environment]]
            subprocess.run(install, check=True)
            (place / "complete").touch()
        return str(python)


def _error_told(text: str) -> float:
    """The share of wrong labels that ``dpfit predict --evaluate --json`` tells."""
    for line in text.splitlines():
        values = json.loads(line)
        if "evaluation" in values:
            return float(values["evaluation"]["error_rate"])
    raise RuntimeError("dpfit told no error rate")


def _share(model: dict[str, Any]) -> float:
    return len(model["coefficients"]["indices"]) / model["features"]["count"]


def plain(path: Path, work: Path) -> Path:
    """The file, decompressed: not every peer reads what is not."""
    if path.suffix != ".gz":
        return path.resolve()
    copy = work / path.stem
    with gzip.open(path) as packed, copy.open("wb") as out:
        shutil.copyfileobj(packed, out)
    return copy


def generated(work: Path) -> tuple[Path, Path]:
    """Training and test rows of one truth."""
    whole, train, test = (work / name for name in ("whole.svm", "train.svm", "test.svm"))
    generate(whole, 15_000, 20_000, 75)
    lines = whole.read_bytes().splitlines(keepends=True)
    train.write_bytes(b"".join(lines[:10_000]))
    test.write_bytes(b"".join(lines[10_000:]))
    return train, test


def spread(values: list[float], digits: int) -> str:
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def show(peer: Peer, runs: list[Run]) -> None:
    walls, peaks, errors = zip(*((run.wall, run.peak, run.error) for run in runs), strict=True)
    fits = [run.fit for run in runs if run.fit is not None]
    cells = (
        f"{peer.name:<20} {spread(list(walls), 2):>22} {spread(fits, 2) if fits else '-':>22}",
        f"{median(peaks):>8.0f} {spread([100 * e for e in errors], 1):>18}",
        f"{100 * median([run.used for run in runs]):>7.1f}  {peer.private:<11} {peer.rows}",
    )
    print(" ".join(cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--environments", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--sparsity", type=int, default=500)
    parser.add_argument("--only", help="names, separated by commas")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        train, test = (plain(p, work) for p in options.files) if options.files else generated(work)
        folder = (options.environments or work / "environments").resolve()
        peers = Programs(train, test, folder, work, options).all()
        if options.only:
            peers = [peer for peer in peers if peer.name in options.only.split(",")]
        found: dict[str, list[Run]] = {peer.name: [] for peer in peers}
        for number in range(options.runs + 1):
            for peer in list(peers):
                try:
                    run = peer.run(number)
                except (RuntimeError, subprocess.CalledProcessError) as error:
                    print(f"left out: {peer.name}: {error}", flush=True)
                    peers.remove(peer)
                    continue
                if number:  # the first of each warms the caches, and may have installed
                    found[peer.name].append(run)
    print(f"{'median (range)':<20} {'process s':>22} {'fit alone s':>22} {'peak MiB':>8}", end=" ")
    print(f"{'test error %':>18} {'used %':>7}  {'private':<11} rows")
    for peer in peers:
        show(peer, found[peer.name])


if __name__ == "__main__":
    main()
