"""Shared by the command-line tests: running dpfit in this process, in another, or in many."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dpfit.cli.app import run

CODE = "from dpfit.cli.app import main; main()"
DUCKDB = "import duckdb, sys; duckdb.sql('SET enable_progress_bar=false'); duckdb.sql(sys.argv[2])"
CAUGHT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)

# nohup, and a shell's background, ignore some of them, which every child would inherit.
for number in CAUGHT:
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    status: int
    out: str
    err: str


class Dpfit:
    """Runs dpfit in one folder, which is also the working directory of the test."""

    program = (sys.executable, "-W", "error", "-W", "ignore::ResourceWarning", "-c", CODE)
    budget = ("--eps", "4", "--delta", "0.001", "--sparsity", "3", "--algo", "dp-ight")
    facts = ("--n-rows", "60", "--n-features", "10", "--index-base", "1", "--labels=-1,1")

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capture = capture
        self._started: list[subprocess.Popen[bytes]] = []

    # --- running ---------------------------------------------------------------------------------

    def here(self, *args: str) -> Outcome:
        """In this process: fast, and a warning is an error."""
        handlers = {number: signal.getsignal(number) for number in CAUGHT}
        self._capture.readouterr()
        try:
            status = run(list(args))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in handlers.items():
                signal.signal(number, handler)
        out, err = self._capture.readouterr()
        return Outcome(int(status), out, err)

    def __call__(self, *args: str, prefix: Sequence[str] = (), **options: Any) -> Outcome:
        """In a process of its own, as from a shell."""
        options = {"stdin": subprocess.DEVNULL, "timeout": 300, "cwd": self.folder, **options}
        if "input" in options:
            del options["stdin"]
        ended = subprocess.run(
            [*prefix, *self.program, *args], capture_output=True, check=False, **options
        )
        out, err = (os.fsdecode(stream) for stream in (ended.stdout, ended.stderr))
        return Outcome(ended.returncode, out, err)

    def start(self, *args: str, **options: Any) -> subprocess.Popen[bytes]:
        """Begun, not waited for; stderr is a pipe."""
        options = {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE, **options}
        process = subprocess.Popen([*self.program, *args], cwd=self.folder, **options)
        self._started.append(process)
        return process

    def end(self) -> None:
        """Kill what a failed test left running."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.communicate()

    @staticmethod
    def until(happened: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
        """Wait for what a running process will surely do."""
        deadline = time.monotonic() + 300
        while not happened():
            assert process.poll() is None, "it ended instead"
            assert time.monotonic() < deadline, "it never happened"
            time.sleep(0.01)

    def open_pipe(self, name: str, process: subprocess.Popen[bytes]) -> int:
        """The writing end of a named pipe, once the process reads from it."""
        opened: list[int] = []

        def tried() -> bool:
            with contextlib.suppress(OSError):  # no reader yet
                opened.append(os.open(self.folder / name, os.O_WRONLY | os.O_NONBLOCK))
            return bool(opened)

        self.until(tried, process)
        os.set_blocking(opened[0], True)
        return opened[0]

    # --- files -----------------------------------------------------------------------------------

    def svm(
        self, name: str = "tiny.svm", *, rows: int = 60, features: int = 10, seed: int = 0
    ) -> str:
        """A LIBSVM file with labels -1 and 1; every column occurs, the first and last often."""
        chance = random.Random(seed)
        with open(self.folder / name, "w", encoding="utf-8") as stream:
            for row in range(rows):
                label = 1 if row % 2 else -1
                middle = sorted(chance.sample(range(2, features), 3))
                cells = [(1, label), *((j, chance.random()) for j in middle), (features, 0.5)]
                text = " ".join(f"{j}:{value:.4f}" for j, value in cells)
                stream.write(f"{label:+d} {text}\n")
        return name

    def fit(self, *args: str) -> str:
        """Fit ``tiny.svm`` in this process, all facts declared; the model's name."""
        self.svm()
        outcome = self.here("fit", "tiny.svm", *self.budget, *self.facts, *args)
        assert outcome == Outcome(0, "", "")
        return "tiny.model.json"

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def json(self, name: str) -> Any:
        return json.loads(self.read(name))

    def kinds(self, name: str = "tiny.ledger.json") -> list[str]:
        """Kinds of the entries of a ledger."""
        return [entry["kind"] for entry in self.json(name)["entries"]]

    def outcomes(self, name: str = "tiny.ledger.json") -> list[str]:
        """How each charged run of a ledger ended, by the program's own account."""
        report = self.here("budget", name, "--json")
        assert report.status == 0, report.err
        return [entry["outcome"] for entry in json.loads(report.out)["entries"]]

    def names(self) -> set[str]:
        """Everything in the folder, hidden files included, locks left out."""
        return {entry for entry in os.listdir(self.folder) if not entry.endswith(".lock")}


@pytest.fixture
def dpfit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Dpfit]:
    """dpfit in an empty working directory."""
    for name in [name for name in os.environ if name.startswith("DPFIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    started = Dpfit(tmp_path, capsys)
    yield started
    started.end()


@pytest.fixture
def as_user() -> list[str]:
    """Command prefix under which file permissions count, also for root."""
    if os.getuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root without setpriv: permissions cannot be made to count")
    dropped = "-dac_override,-dac_read_search"
    return ["setpriv", "--bounding-set", dropped, f"--inh-caps={dropped}"]


@pytest.fixture
def shell(dpfit: Dpfit) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs shell lines in the test's folder, where dpfit and DuckDB are commands."""
    programs = Path(dpfit.folder, ".venv", "bin")
    programs.mkdir(parents=True)
    _write_program(programs / "dpfit", f'-c "{CODE}" "$@"')
    if shutil.which("duckdb") is None:  # its Python package does what its shell does for -c
        _write_program(programs / "duckdb", f'-c "{DUCKDB}" "$@"')

    def ended(
        lines: str, *, program: Sequence[str] = ("sh", "-c"), **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*program, lines],
            env={"PATH": f"{programs}:/usr/bin:/bin", **environment},
            cwd=dpfit.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return ended


def _write_program(path: Path, arguments: str) -> None:
    """A command that is this interpreter with ``arguments``, as an installed script is."""
    roots = os.environ.get("PYTHONPATH", "")
    text = f'#!/bin/sh\nPYTHONPATH="{roots}" exec "{sys.executable}" {arguments}\n'
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
