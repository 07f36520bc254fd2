"""Out of memory wherever a run is: one line, a whole account and no half file."""

from __future__ import annotations

import errno
import random
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from dpfit.data import parsed_table
from dpfit.files.arrow_errors import memory_apart
from dpfit.memory import require_memory
from dpfit.privacy.charged_releases import ChargedReleases

SAID = "dpfit: error: out of memory\nhint: fewer --threads need less; what a ledger shows as "
MATRIX = ("--user", "u", "--item", "i", "--value", "v", "--range", "1", "5")
MATRIX += ("--eps", "4", "--delta", "1e-6")

STARVED = r'''
"""argv: when memory ends, then arguments. From then on the process gets no more than it has."""
import re, resource, sys

from dpfit.cli import app
from dpfit.cli.charged_run import ChargedRun
from dpfit.cli import matrix_inputs
from dpfit.design.builder import DesignBuilder
from dpfit.fitting import matrix_fit
from dpfit.privacy.collected_records import CollectedRecords

def end_memory():
    used = int(re.search(r"VmData:\s+(\d+)", open("/proc/self/status").read())[1]) << 10
    resource.setrlimit(resource.RLIMIT_DATA, (used, used))

def starve(owner, name, when):
    real = getattr(owner, name)
    def call(*args, **options):
        if when == "before":
            end_memory()
        result = real(*args, **options)
        if when == "after":
            end_memory()
        return result
    setattr(owner, name, call)

STAGES = {
    "fit reading": (CollectedRecords, "collect", "before"),
    "fit building": (DesignBuilder, "build", "before"),
    "fit fitting": (ChargedRun, "reserve", "after"),
    "complete-matrix reading": (matrix_inputs, "collect_ratings", "before"),
    "complete-matrix building": (matrix_fit, "private_ratings", "before"),
    "complete-matrix fitting": (ChargedRun, "reserve", "after"),
}
starve(*STAGES[sys.argv.pop(1)])
app.main()
'''


@pytest.fixture
def large(dpfit: Any) -> None:
    """Files that are read in a second and whose arrays need fresh memory."""
    chance = random.Random(1)
    block = "".join(
        f"{chance.choice((-1, 1)):+d} 1:1 {chance.randrange(2, 60_000)}:0.5 60000:0.25\n"
        for _ in range(1000)
    )
    Path("large.svm").write_text(block * 200, encoding="utf-8")
    rows = "".join(f"%d,{item},{chance.randrange(1, 6)}\n" for item in range(1, 21))
    users = "".join(rows % ((user,) * 20) for user in range(20_000))
    Path("large.csv").write_text("u,i,v\n" + users, encoding="utf-8")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize(
    ("stage", "threads"), [("reading", "1"), ("reading", "2"), ("building", "2"), ("fitting", "2")]
)
@pytest.mark.parametrize("command", ["fit", "complete-matrix"])
@pytest.mark.usefixtures("large")
def test_memory_that_ends(dpfit: Any, command: str, stage: str, threads: str) -> None:
    """Not to be had while reading, building or fitting: status 1 and one line; charged or not.

    What was free when memory ended may have carried the run as far as its charge, and may not do
    for the ledger's last word on it as well.
    """
    args = ["fit", "large.svm", *dpfit.budget, "--n-features", "60000", "--labels=-1,1"]
    if command == "complete-matrix":
        args = ["complete-matrix", "large.csv", *MATRIX, "-q"]
    before = dpfit.names()
    ended = subprocess.run(
        [sys.executable, "-c", STARVED, f"{command} {stage}", *args, "--threads", threads],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 1, ended.stderr
    assert SAID in ended.stderr
    assert "Traceback" not in ended.stderr
    left = dpfit.names() - before
    assert left <= {"large.ledger.json"}
    assert left or stage != "fitting"
    if left:
        assert dpfit.outcomes("large.ledger.json") in (["aborted"], ["unreleased"])


@pytest.mark.parametrize("command", ["fit", "complete-matrix"])
def test_a_fit_without_memory_is_aborted_in_the_ledger(
    dpfit: Any, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where memory is to be had again by then: a charge, its end, and no model."""
    dpfit.svm()
    ratings = "".join(f"{u},{i},{(u * i) % 5 + 1}\n" for u in range(20) for i in range(4))
    Path("tiny.csv").write_text("u,i,v\n" + ratings, encoding="utf-8")

    def none_left(self: ChargedReleases) -> int:
        raise MemoryError

    monkeypatch.setattr(ChargedReleases, "_next_step", none_left)
    args = ("tiny.svm", *dpfit.budget, *dpfit.facts) if command == "fit" else ("tiny.csv", *MATRIX)
    outcome = dpfit.here(command, *args)
    assert outcome.status == 1
    assert SAID in outcome.err
    assert dpfit.outcomes() == ["aborted"]
    assert dpfit.names() == {"tiny.svm", "tiny.csv", "tiny.ledger.json"}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="macOS ignores the limit")
@pytest.mark.parametrize("mebibytes", [70, 120, 150])
def test_memory_that_was_never_there(dpfit: Any, mebibytes: int) -> None:
    """Too little to load the libraries, in which OpenBLAS waits for ever: one line at once."""
    dpfit.svm()
    size = mebibytes << 20
    outcome = dpfit(
        *("fit", "tiny.svm", *dpfit.budget, *dpfit.facts),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (size, size)),
    )
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith(SAID)
    assert dpfit.names() == {"tiny.svm"}


@pytest.mark.parametrize(
    ("error", "is_memory"),
    [
        (MemoryError(), True),
        (pa.ArrowMemoryError(), True),
        (OSError(errno.ENOMEM, ""), True),
        (RuntimeError("can't start new thread"), True),
        (ImportError("x.so: failed to map segment from shared object"), True),
        (OSError(errno.ENOSPC, ""), False),
        (RuntimeError("a fault"), False),
        (ImportError("no module named x"), False),
    ],
)
def test_other_names_of_it(
    dpfit: Any, error: Exception, is_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raised while blocks are parsed, it is neither a bad file nor a reason to parse once more."""
    dpfit.svm()
    calls = []

    def fail(*_: object, **__: object) -> None:
        calls.append(1)
        raise error

    monkeypatch.setattr(ThreadPoolExecutor, "submit", fail)
    outcome = dpfit.here("fit", "tiny.svm", *dpfit.budget, *dpfit.facts, "--threads", "2")
    assert outcome.err.startswith(SAID) == is_memory
    assert len(calls) == 1
    assert dpfit.names() == {"tiny.svm"}


@pytest.mark.parametrize("name", ["tiny.svm", "tiny.csv", "tiny.parquet"])
def test_a_parser_without_memory_is_not_a_bad_file(
    dpfit: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By type pyarrow's error of memory is one of content too; it is not taken for one."""
    dpfit.svm()
    Path("tiny.csv").write_text("y,a\n" + "1,2\n0,1\n" * 20, encoding="utf-8")
    pq.write_table(pa.table({"y": [0, 1] * 20, "a": [1.0, 2.0] * 20}), "tiny.parquet")

    def fail(*_: object, **__: object) -> None:
        raise pa.ArrowMemoryError

    monkeypatch.setattr(pacsv, "read_csv", fail)
    monkeypatch.setattr(pq, "ParquetFile", fail)
    label = () if name == "tiny.svm" else ("--label", "y")
    outcome = dpfit.here("fit", name, *dpfit.budget, *label)
    assert outcome.status == 1
    assert outcome.err.startswith(SAID)


def test_no_room_for_the_parser_is_found_before_it(
    dpfit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parser, which would end the process, is not asked without as much memory as it takes."""
    with pytest.raises(MemoryError):
        require_memory(1 << 60)
    dpfit.svm()

    def none_left(n_bytes: int) -> None:
        raise MemoryError

    monkeypatch.setattr(parsed_table, "require_memory", none_left)
    monkeypatch.setattr(pacsv, "read_csv", None)
    assert dpfit.here("fit", "tiny.svm", *dpfit.budget).err.startswith(SAID)


def test_a_missing_cipher_costs_nothing(dpfit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes the noise is loaded before the charge: without it nothing is spent."""
    dpfit.svm()
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers", None)
    assert dpfit.here("fit", "tiny.svm", *dpfit.budget, *dpfit.facts).status == 1
    assert dpfit.names() == {"tiny.svm"}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="macOS ignores the limit")
@pytest.mark.parametrize("mebibytes", [300, 340, 360, 380])
def test_an_address_space_without_room_for_a_second_blas(dpfit: Any, mebibytes: int) -> None:
    """numpy's library fits and scipy's own may not, in which it would wait for ever."""
    dpfit.svm()
    size = mebibytes << 20
    outcome = dpfit(
        *("fit", "tiny.svm", *dpfit.facts[:4], "--algo", "median-irls", "--eps", "4"),
        *("--target-range", "-1", "1", "--delta", "0.001", "--index-base", "1"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
    )
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith(SAID)
    assert dpfit.names() == {"tiny.svm"}


@pytest.mark.parametrize(
    ("error", "is_memory"),
    [
        (pa.ArrowMemoryError(), True),
        (OSError("ZSTD decompression failed: Allocation error : not enough memory"), True),
        (OSError(errno.ENOMEM, ""), True),
        (pa.ArrowException("Unknown error: Failed to launch worker thread: x"), True),
        (RuntimeError("can't start new thread"), True),
        (pa.ArrowInvalid("invalid value 'memory'"), False),
        (OSError(errno.EIO, "", "memory.parquet"), False),
        (OSError("Corrupt snappy compressed data."), False),
    ],
)
def test_a_codec_without_memory_is_not_a_damaged_file(error: Exception, is_memory: bool) -> None:
    """Codecs say it in the text of an error of input and output."""
    with pytest.raises(MemoryError if is_memory else type(error)), memory_apart():
        raise error
