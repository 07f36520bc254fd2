"""Signals, killed processes and closed pipes: the right status, and never a false account."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from dpfit.files.lock import locked

ENDLESS = ("--iterations", "1000000")
SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


def start_endless(dpfit: Any, *args: str, **options: Any) -> subprocess.Popen[bytes]:
    """A fit that has reserved its charge and now runs for long."""
    dpfit.svm()
    process = dpfit.start(
        "fit", "tiny.svm", *dpfit.budget, *dpfit.facts, *ENDLESS, *args, **options
    )
    dpfit.until(Path("tiny.ledger.json").exists, process)
    return process


# --- signals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_signal_while_reading_a_silent_pipe(dpfit: Any, number: int, status: int) -> None:
    """A signal ends a run that waits for data; nothing was spent and nothing is left."""
    os.mkfifo("in.svm")
    process = dpfit.start("fit", "in.svm", *dpfit.budget)
    writer = dpfit.open_pipe("in.svm", process)
    os.write(writer, b"+1 1:1\n")
    process.send_signal(number)
    err = process.communicate(timeout=300)[1].decode()
    os.close(writer)
    assert process.returncode == status
    assert err == f"dpfit: error: ended by {signal.Signals(number).name}\n"
    assert dpfit.names() == {"in.svm"}


@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_signal_while_fitting(dpfit: Any, number: int, status: int) -> None:
    """A signal between iterations: spent, aborted with its name, no model and no temporary file."""
    process = start_endless(dpfit)
    process.send_signal(number)
    process.communicate(timeout=300)
    assert process.returncode == status
    assert dpfit.names() == {"tiny.svm", "tiny.ledger.json"}
    assert dpfit.outcomes() == ["aborted"]
    entry = dpfit.json("tiny.ledger.json")["entries"][-1]
    assert entry["reason"] == signal.Signals(number).name


def test_timeout_is_a_termination(dpfit: Any) -> None:
    """--timeout ends a run as SIGTERM does: one that waits for data, after its time, and one that
    fits, at the alarm, which is sent here since nobody knows how far a run is by then."""
    os.mkfifo("in.svm")
    process = dpfit.start("fit", "in.svm", *dpfit.budget, "--timeout", "0.5")
    assert process.communicate(timeout=300)[1].endswith(b"dpfit: error: ended by SIGTERM\n")
    assert process.returncode == 143
    assert dpfit.names() == {"in.svm"}
    process = start_endless(dpfit, "--timeout", "100000")
    process.send_signal(signal.SIGALRM)
    process.communicate(timeout=300)
    assert process.returncode == 143
    assert dpfit.outcomes() == ["aborted"]


def test_ignored_signal_stays_ignored(dpfit: Any) -> None:
    """Under nohup a hangup is ignored, as the parent asked."""
    process = start_endless(dpfit, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    assert process.poll() is None
    process.terminate()
    process.communicate(timeout=300)
    assert process.returncode == 143


def test_signal_while_waiting_for_the_lock(dpfit: Any) -> None:
    """A run that waits for a busy ledger can be ended, at once and at no cost."""
    dpfit.svm()
    with locked("tiny.ledger.json", timeout=0):
        args = ("fit", "tiny.svm", *dpfit.budget, "-v", "--lock-timeout", "600")
        process = dpfit.start(*args)
        assert process.stderr is not None
        assert any(b"read 60 rows" in line for line in iter(process.stderr.readline, b""))
        time.sleep(0.3)
        assert process.poll() is None
        process.terminate()
        process.communicate(timeout=300)
    assert process.returncode == 143
    assert dpfit.names() == {"tiny.svm"}


def test_kill_while_fitting(dpfit: Any) -> None:
    """SIGKILL leaves the charge spent and unreleased, no half file and no held lock."""
    process = start_endless(dpfit)
    process.kill()
    process.communicate(timeout=300)
    assert dpfit.names() == {"tiny.svm", "tiny.ledger.json"}
    assert dpfit.outcomes() == ["unreleased"]
    dpfit.fit("--lock-timeout", "0")
    assert dpfit.outcomes() == ["unreleased", "released"]


# --- closed pipes and descriptors ----------------------------------------------------------------


def test_reader_that_leaves(dpfit: Any) -> None:
    """``| head -1`` ends predict with 141 and not a word."""
    dpfit.fit()
    Path("many.svm").write_bytes(dpfit.read("tiny.svm") * 5000)
    process = dpfit.start("predict", "tiny.model.json", "many.svm", stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() in (b"1\n", b"-1\n")
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=300) == 141


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["budget", "--mu", "1", "--json"]])
def test_no_reader_at_all(dpfit: Any, args: list[str]) -> None:
    """Any command that finds its reader gone ends with 141 and not a word."""
    reader, writer = os.pipe()
    os.close(reader)
    process = dpfit.start(*args, stdout=writer)
    os.close(writer)
    assert process.communicate(timeout=300)[1] == b""
    assert process.returncode == 141


def test_reader_that_never_takes_the_model(dpfit: Any) -> None:
    """A model that nobody took is paid for, and not called released."""
    dpfit.svm()
    reader, writer = os.pipe()
    os.close(reader)
    args = ("fit", "tiny.svm", *dpfit.budget, *dpfit.facts, "-o", "-")
    process = dpfit.start(*args, stdout=writer)
    os.close(writer)
    assert process.communicate(timeout=300)[1] == b""
    assert process.returncode == 141
    assert dpfit.outcomes() == ["aborted"]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_descriptors(dpfit: Any, closed: str) -> None:
    """With standard descriptors closed no message ends up in the model or the ledger."""
    dpfit.svm()
    args = ("fit", "tiny.svm", *dpfit.budget, "--seed", "1")
    assert dpfit.here(*args, "-o", "here", "--dataset", "tiny").status == 0
    outcome = dpfit(*args, "-vv", prefix=["sh", "-c", f'exec "$@" {closed}', "sh"])
    assert outcome.status == 0
    assert outcome.out == ""
    assert dpfit.read("tiny.model.json") == dpfit.read("here")
    assert dpfit.outcomes() == ["released", "released"]


def test_closed_descriptors_of_a_failing_run(dpfit: Any) -> None:
    """A failing run without stderr still tells by its status, and overwrites nothing."""
    dpfit.fit()
    before = dpfit.read("tiny.model.json"), dpfit.read("tiny.ledger.json")
    args = ("fit", "tiny.svm", *dpfit.budget, *dpfit.facts)
    assert dpfit(*args, prefix=["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]).status == 5
    assert (dpfit.read("tiny.model.json"), dpfit.read("tiny.ledger.json")) == before
