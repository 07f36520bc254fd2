"""Signals, killed processes and closed pipes: the right status, and never a false account."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dpfit.files.linear_model import read_linear_model
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
    err = process.communicate(timeout=60)[1].decode()
    os.close(writer)
    assert process.returncode == status
    assert err == f"dpfit: error: ended by {signal.Signals(number).name}\n"
    assert dpfit.names() == {"in.svm"}


@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_signal_while_fitting(dpfit: Any, number: int, status: int) -> None:
    """A signal between iterations: spent, aborted with its name, no model and no temporary file."""
    process = start_endless(dpfit)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == status
    assert dpfit.names() == {"tiny.svm", "tiny.ledger.json"}
    assert dpfit.outcomes() == ["aborted"]
    entry = dpfit.json("tiny.ledger.json")["entries"][-1]
    assert entry["reason"] == signal.Signals(number).name


def test_timeout_is_a_termination(dpfit: Any) -> None:
    """--timeout ends a run as SIGTERM does."""
    process = start_endless(dpfit, "--timeout", "1.5")
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert dpfit.outcomes() == ["aborted"]


def test_ignored_signal_stays_ignored(dpfit: Any) -> None:
    """Under nohup a hangup is ignored, as the parent asked."""
    process = start_endless(dpfit, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    assert process.poll() is None
    process.terminate()
    process.communicate(timeout=60)
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
        process.communicate(timeout=30)
    assert process.returncode == 143
    assert dpfit.names() == {"tiny.svm"}


def test_kill_while_fitting(dpfit: Any) -> None:
    """SIGKILL leaves the charge spent and unreleased, no half file and no held lock."""
    process = start_endless(dpfit)
    process.kill()
    process.communicate(timeout=60)
    assert dpfit.names() == {"tiny.svm", "tiny.ledger.json"}
    assert dpfit.outcomes() == ["unreleased"]
    dpfit.fit("--lock-timeout", "0")
    assert dpfit.outcomes() == ["unreleased", "released"]


# --- kill -9 at every step of writing ------------------------------------------------------------

KILLER = r'''
"""argv: folder, first run's arguments. For k = 0, 1, ...: a copy, a run killed at its k-th step."""
import json, os, shutil, signal, sys, tempfile

import dpfit.cli.fit, dpfit.cli.fit_inputs, dpfit.data.libsvm, scipy.sparse, uuid
from dpfit.cli import app
from dpfit.privacy import random_bits

folder, arguments = sys.argv[1], sys.argv[2:]
app.run(["fit", "x.svm", "--print-config"])  # what Typer imports late is then there for every child
random_bits.BitSource(random_bits.RunKey.from_seed(1)).main(0, 0)
STEPS = [(os, n) for n in ("open", "link", "replace", "unlink", "fsync", "fchmod", "dup", "fdopen",
                           "close", "ftruncate", "pwrite")]


class Torn:
    """A file that is killed in the middle of its first write."""

    def __init__(self, stream, step):
        self.stream, self.step = stream, step

    def __enter__(self):
        return self

    def __exit__(self, *ended):
        self.stream.close()

    def write(self, data):
        self.stream.write(data[: len(data) // 2])
        self.stream.flush()
        self.step("half a write")
        self.stream.write(data[len(data) // 2 :])


def run(k):
    """In a child: die at step k; None: do not."""
    count = 0

    def step(name):
        nonlocal count
        if count == k:
            with open("killed-at", "w") as note:
                note.write(name)
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1

    def counted(name, real):
        def call(*args, **options):
            step(name)
            result = real(*args, **options)
            return Torn(result, step) if name == "fdopen" and "wb" in args else result
        return call

    real_key = random_bits.RunKey.from_system

    def key():
        open("key-made", "w").close()
        return real_key()

    if k is not None:
        random_bits.RunKey.from_system = key
        for module, name in STEPS:
            setattr(module, name, counted(name, getattr(module, name)))
    return app.run(arguments)


def child(where, k):
    pid = os.fork()
    if pid == 0:
        os.chdir(where)
        os._exit(run(k))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


k, ended = 0, -9
while ended == -9:
    where = os.path.join(folder, str(k))
    shutil.copytree(os.path.join(folder, "start"), where)
    ended = child(where, k)
    if k % 3 == 0:
        shutil.copytree(where, os.path.join(folder, f"{k}-again"))
        again = child(os.path.join(folder, f"{k}-again"), None)
        assert again == 0, (k, again)
    k += 1
assert ended == 0, ended
print(k - 1)
'''


@pytest.mark.parametrize("earlier", [0, 1], ids=["new ledger", "old ledger"])
def test_kill_at_every_step(dpfit: Any, earlier: int) -> None:
    """Killed before any step of writing: a valid ledger that covers what got out, no half file.

    The noise key is not made before the charge is on disk, a model is whole or absent, and the next
    run works (tried after every third step).
    """
    start = dpfit.folder / "start"
    start.mkdir()
    dpfit.svm("start/tiny.svm")
    args = ["fit", "tiny.svm", *dpfit.budget, *dpfit.facts, "--force", "--threads", "1"]
    if earlier:
        assert dpfit(*args, "-o", "old", cwd=start).status == 0
    ended = subprocess.run(
        [sys.executable, "-c", KILLER, str(dpfit.folder), *args],
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    steps = int(ended.stdout.splitlines()[-1])
    assert steps > 30
    for k in range(steps):
        check_after_kill(dpfit, k, earlier)


def check_after_kill(dpfit: Any, k: int, earlier: int) -> None:
    """The laws of one killed run."""
    folder = dpfit.folder / str(k)
    where = f"step {k}, {(folder / 'killed-at').read_text()}"
    names = {path.name for path in folder.iterdir()}
    whole = {name for name in names if not name.startswith(".") and not name.endswith(".lock")}
    known = {"tiny.svm", "old", "tiny.ledger.json", "tiny.model.json", "key-made", "killed-at"}
    assert whole <= known, where
    outcomes = dpfit.outcomes(f"{k}/tiny.ledger.json") if "tiny.ledger.json" in names else []
    assert outcomes[:earlier] == ["released"] * earlier, where
    if "key-made" in names or "tiny.model.json" in names:
        assert len(outcomes) == earlier + 1, where
    if outcomes[earlier:] == ["released"]:
        assert "tiny.model.json" in names, where
    if "tiny.model.json" in names:
        read_linear_model(str(folder / "tiny.model.json"))
    if k % 3 == 0:
        again = dpfit.outcomes(f"{k}-again/tiny.ledger.json")
        assert again == [*outcomes, "released"], where


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
    assert process.wait(timeout=60) == 141


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["budget", "--mu", "1", "--json"]])
def test_no_reader_at_all(dpfit: Any, args: list[str]) -> None:
    """Any command that finds its reader gone ends with 141 and not a word."""
    reader, writer = os.pipe()
    os.close(reader)
    process = dpfit.start(*args, stdout=writer)
    os.close(writer)
    assert process.communicate(timeout=60)[1] == b""
    assert process.returncode == 141


def test_reader_that_never_takes_the_model(dpfit: Any) -> None:
    """A model that nobody took is paid for, and not called released."""
    dpfit.svm()
    reader, writer = os.pipe()
    os.close(reader)
    args = ("fit", "tiny.svm", *dpfit.budget, *dpfit.facts, "-o", "-")
    process = dpfit.start(*args, stdout=writer)
    os.close(writer)
    assert process.communicate(timeout=60)[1] == b""
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
