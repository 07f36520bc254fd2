"""Rows on disk and memory within bounds: the same model, and nothing left behind."""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

RUN = ("fit", "wide.svm", "--algo", "dp-gd", "--eps", "4", "--delta", "0.001", "--seed", "1")
RUN += ("--n-features", "2000", "--index-base", "1", "--iterations", "3", "--labels=-1,1", "-q")

# A process begins with the peak of the one that forked it: this one is small, pytest is not.
MEASURED = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(process.pid, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.fixture
def wide(dpfit: Any) -> str:
    """A file of 3 million entries: 36 MB as integers."""
    rng = np.random.default_rng(0)
    line = "{} " + " ".join(f"{j}:{rng.integers(1, 9)}" for j in range(1, 1501)) + "\n"
    (dpfit.folder / "wide.svm").write_text("".join(line.format(y) for y in (-1, 1)) * 1000)
    return "wide.svm"


def peak_of(dpfit: Any, *args: str) -> tuple[bytes, int]:
    """The model, and the peak in MiB as the operating system says."""
    prefix = (sys.executable, "-c", MEASURED)
    outcome = dpfit(*RUN, *args, "-o", "m.json", "--force", prefix=prefix)
    assert outcome.status == 0, outcome.err
    return dpfit.read("m.json"), int(outcome.out) >> 10


@pytest.mark.usefixtures("wide")
def test_rows_on_disk_give_the_same_model(dpfit: Any) -> None:
    """To the bit, and within a bound that rows held in memory exceed."""
    (dpfit.folder / "scratch").mkdir()
    wide = dpfit.folder / "wide.svm"
    wide.write_text(wide.read_text() * 7)  # more than the bound, where the rows are held
    held, most = peak_of(dpfit)
    cached, least = peak_of(dpfit, "--cache", "scratch", "--memory", "420MiB")
    assert cached == held
    assert least <= 420 < most
    assert not list((dpfit.folder / "scratch").iterdir())


@pytest.mark.parametrize(
    ("options", "status", "told"),
    [
        (("--memory", "321MiB"), 2, "the fit needs about"),
        (("--memory", "1MiB"), 2, "the fit needs about"),
        (("--memory", "some"), 2, "is not a size"),
        (("--cache", "nowhere"), 5, "nowhere: cannot hold the rows: no such file"),
        (("--cache", "wide.svm"), 5, "wide.svm: cannot hold the rows: not a directory"),
    ],
)
@pytest.mark.usefixtures("wide")
def test_what_does_not_fit_is_refused_before_the_charge(
    dpfit: Any, options: tuple[str, ...], status: int, told: str
) -> None:
    outcome = dpfit.here(*RUN, *options)
    assert outcome.status == status
    assert told in outcome.err
    assert not Path("wide.ledger.json").exists()


@pytest.mark.usefixtures("wide")
def test_a_folder_that_cannot_be_written_costs_nothing(dpfit: Any, as_user: list[str]) -> None:
    """5, one line, no charge."""
    (dpfit.folder / "closed").mkdir(mode=0o500)
    outcome = dpfit(*RUN, "--cache", "closed", prefix=as_user)
    assert outcome.status == 5, outcome.err
    assert "closed: cannot hold the rows: permission denied" in outcome.err
    assert not Path("wide.ledger.json").exists()


@pytest.mark.usefixtures("wide")
def test_a_full_disk_costs_nothing(dpfit: Any) -> None:
    """No room for the rows: 5, one line, no charge, no file."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    before = dpfit.names()
    outcome = dpfit(*RUN, "--cache", ".", preexec_fn=limit)
    assert outcome.status == 5, outcome.err
    assert "cannot hold the rows" in outcome.err
    assert dpfit.names() == before


@pytest.mark.usefixtures("wide")
def test_nothing_is_left_of_a_killed_run(dpfit: Any) -> None:
    """The file of the rows has no name, so none stays when the process is killed."""
    (dpfit.folder / "scratch").mkdir()
    long = ("--iterations", "100000", "--cache", "scratch")
    process = dpfit.start(*RUN, *long)
    dpfit.until(Path("wide.ledger.json").exists, process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not list((dpfit.folder / "scratch").iterdir())
