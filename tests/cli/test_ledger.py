"""The ledger under pressure: many processes, full disks, closed folders, damaged files."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.events import event_from_json

DELTA = 0.001


def exact_cost(plan: str, runs: int) -> float:
    """Epsilon of so many equal runs, from the events that a dry run printed."""
    events = [event_from_json(event) for event in json.loads(plan)["events"]] * runs
    return float(compose(events, Adjacency.REPLACE_ONE).epsilon(DELTA))


# --- several processes ---------------------------------------------------------------------------


@pytest.mark.parametrize(("together", "allowed"), [(2, 1), (8, 3)])
def test_processes_started_together_cannot_overspend(
    dpfit: Any, together: int, allowed: int
) -> None:
    """However many runs start at once, exactly those that the cap allows succeed; the rest exit 4.

    Every process has passed its early look at the ledger before the first gets its data: the reader
    of a pipe opens it after that look.
    """
    args = ("fit", dpfit.svm(), *dpfit.budget, *dpfit.facts)
    epsilon = exact_cost(dpfit.here(*args, "--dry-run", "--json").out, allowed)
    dpfit.here("budget", "l.json", "--cap-eps", repr(epsilon * 1.0001), "--cap-delta", str(DELTA))
    processes, writers = [], []
    for i in range(together):
        os.mkfifo(f"{i}.svm")
        names = ("-o", f"m{i}", "--ledger", "l.json", "--threads", "1")
        processes.append(dpfit.start("fit", f"{i}.svm", *dpfit.budget, *dpfit.facts, *names))
    for i, process in enumerate(processes):
        writers.append(dpfit.open_pipe(f"{i}.svm", process))
    data = dpfit.read("tiny.svm")
    for writer in writers:
        os.write(writer, data)
    for writer in writers:
        os.close(writer)
    errors = [process.communicate(timeout=300)[1] for process in processes]
    statuses = sorted(process.returncode for process in processes)
    assert statuses == [0] * allowed + [4] * (together - allowed), errors
    assert dpfit.kinds("l.json").count("reserved") == allowed
    assert dpfit.kinds("l.json").count("released") == allowed
    assert sum(Path(f"m{i}").exists() for i in range(together)) == allowed
    left = json.loads(dpfit.here("budget", "l.json", "--json").out)
    assert exact_cost(dpfit.here(*args, "--dry-run", "--json").out, allowed) <= epsilon * 1.0001
    assert left["left"]["epsilon"] < 4


def test_lock_of_a_dead_process_is_free(dpfit: Any) -> None:
    """A lock file that nobody holds stops nobody, whatever it says."""
    Path("tiny.ledger.json.lock").write_text("process 1 on elsewhere\n", encoding="utf-8")
    dpfit.fit("--lock-timeout", "0")


# --- disks and folders ---------------------------------------------------------------------------


def limited(size: int) -> Any:
    """A limit on file sizes, which fails writes as a full disk does."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_no_room_for_the_reservation(dpfit: Any) -> None:
    """A ledger that cannot grow stops the run with 5; its bytes stay, and nothing is lost."""
    dpfit.fit()
    before = dpfit.read("tiny.ledger.json")
    args = ("fit", "tiny.svm", *dpfit.budget, *dpfit.facts, "-o", "new", "--ledger")
    outcome = dpfit(*args, "tiny.ledger.json", preexec_fn=limited(len(before) + 100))
    assert outcome.status == 5
    assert "tiny.ledger.json: cannot be written: file too large" in outcome.err
    assert dpfit.read("tiny.ledger.json") == before
    assert dpfit.names() == {"tiny.svm", "tiny.model.json", "tiny.ledger.json"}
    assert dpfit.here(*args, "tiny.ledger.json").status == 0


def test_no_room_for_the_model(dpfit: Any) -> None:
    """A model that does not fit on the disk: 5, spent and aborted, no half model."""
    dpfit.svm(features=900, rows=200)
    args = ["--eps", "4", "--delta", "0.001", "--sparsity", "800"]
    outcome = dpfit("fit", "tiny.svm", *args, preexec_fn=limited(6000))
    assert outcome.status == 5
    assert "tiny.model.json: cannot be written" in outcome.err
    assert dpfit.names() == {"tiny.svm", "tiny.ledger.json"}
    assert dpfit.outcomes() == ["aborted"]


def test_model_to_a_full_device(dpfit: Any) -> None:
    """A device that takes no byte: 5, and the run is paid for and aborted."""
    dpfit.svm()
    outcome = dpfit.here("fit", "tiny.svm", *dpfit.budget, *dpfit.facts, "-o", "/dev/full")
    assert outcome.status == 5
    assert "no space left on device" in outcome.err
    assert dpfit.outcomes() == ["aborted"]


FULL_DISK = r"""
set -e
mount -t tmpfs -o size=64k none disk
cp tiny.ledger.json disk/
dd if=/dev/zero of=disk/filler bs=1k 2>/dev/null || true
status=0
"$@" || status=$?
cmp tiny.ledger.json disk/tiny.ledger.json
echo $(ls -A disk)
rm disk/filler
"$@"
exit $status
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a small disk")
def test_full_disk(dpfit: Any) -> None:
    """On a full disk a run exits 5 and the ledger keeps its bytes; with room again it works."""
    dpfit.fit()
    Path("disk").mkdir()
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("no mount namespace to be had")
    args = ("fit", "tiny.svm", *dpfit.budget, *dpfit.facts, "-o", "new", "--ledger")
    script = ["unshare", "-m", "sh", "-c", FULL_DISK, "sh"]
    outcome = dpfit(*args, "disk/tiny.ledger.json", prefix=script)
    assert outcome.status == 5, outcome.err
    assert outcome.err == (
        "dpfit: error: disk/tiny.ledger.json: cannot be written: no space left on device\n"
        "hint: make room, or name a folder on another disk\n"
    )
    assert set(outcome.out.split()) <= {"filler", "tiny.ledger.json", "tiny.ledger.json.lock"}
    assert dpfit.names() >= {"new"}


def test_read_only_folder(dpfit: Any, as_user: list[str]) -> None:
    """A folder that takes no file is refused with 5 before a byte of data is read."""
    Path("bad.svm").write_text("no record\n", encoding="utf-8")
    closed = Path("closed")
    closed.mkdir()
    closed.chmod(0o555)
    for option in ("-o", "--ledger"):
        args = ("fit", "bad.svm", *dpfit.budget, option, "closed/x")
        outcome = dpfit(*args, prefix=as_user)
        assert outcome.status == 5
        assert "closed/x: cannot be written: permission denied" in outcome.err
    closed.chmod(0o755)
    assert dpfit.names() == {"bad.svm", "closed"}


def test_unreadable_ledger(dpfit: Any, as_user: list[str]) -> None:
    """A ledger that may not be read stops the run with 5; it is not begun anew."""
    dpfit.fit()
    Path("tiny.ledger.json").chmod(0)
    before = dpfit.read("tiny.ledger.json") if as_user else b""
    args = ("fit", "tiny.svm", *dpfit.budget, *dpfit.facts, "--force")
    outcome = dpfit(*args, prefix=as_user)
    assert outcome.status == 5
    assert "tiny.ledger.json: cannot be read: permission denied" in outcome.err
    assert not as_user or dpfit.read("tiny.ledger.json") == before


# --- the file itself -----------------------------------------------------------------------------


def test_mode_is_kept(dpfit: Any) -> None:
    """New files obey the umask; an existing ledger keeps its mode through every rewrite."""
    old = os.umask(0o027)
    try:
        dpfit.fit()
        for name in ("tiny.ledger.json", "tiny.model.json"):
            assert Path(name).stat().st_mode & 0o777 == 0o640
        Path("tiny.ledger.json").chmod(0o604)
        dpfit.fit("--force")
    finally:
        os.umask(old)
    assert Path("tiny.ledger.json").stat().st_mode & 0o777 == 0o604


def test_link_is_followed(dpfit: Any) -> None:
    """A linked ledger is charged behind the link, under one lock for both names."""
    Path("real").mkdir()
    Path("tiny.ledger.json").symlink_to("real/ledger.json")
    dpfit.fit()
    assert Path("tiny.ledger.json").is_symlink()
    assert dpfit.kinds("real/ledger.json") == ["reserved", "released"]
    assert Path("real/ledger.json.lock").exists()
    assert not Path("tiny.ledger.json.lock").exists()


def test_old_copy_is_a_ledger(dpfit: Any) -> None:
    """An old copy of a ledger is valid: the file alone cannot know of later runs (documented)."""
    dpfit.fit()
    old = dpfit.read("tiny.ledger.json")
    dpfit.fit("--force")
    Path("tiny.ledger.json").write_bytes(old)
    assert dpfit.outcomes() == ["released"]


@pytest.mark.parametrize("content", [b"", b"{}", b"null", b"\x00" * 100, b"[" * 100000])
def test_foreign_content_is_refused(dpfit: Any, content: bytes) -> None:
    """An empty or foreign file is no ledger: 4, before reading data, and it is left alone."""
    Path("bad.svm").write_text("no record\n", encoding="utf-8")
    Path("l.json").write_bytes(content)
    for args in (["fit", "bad.svm", *dpfit.budget, "--ledger", "l.json"], ["budget", "l.json"]):
        outcome = dpfit.here(*args)
        assert outcome.status == 4
        assert "l.json: damaged ledger: " in outcome.err
    assert dpfit.read("l.json") == content


def test_damage_at_any_byte(dpfit: Any) -> None:
    """A changed or missing byte is refused with 4 naming the place, or means nothing at all."""
    dpfit.here("budget", "tiny.ledger.json", "--cap-eps", "9", "--cap-delta", "0.001")
    dpfit.fit()
    dpfit.fit("--force", "--eps", "1")
    whole = dpfit.read("tiny.ledger.json")
    report = dpfit.here("budget", "tiny.ledger.json", "--json").out
    chance = random.Random(1)
    refused = 0
    for at in chance.sample(range(len(whole)), 100):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << chance.randrange(8)
        for damaged in (bytes(flipped), whole[:at]):
            Path("d.json").write_bytes(damaged)
            outcome = dpfit.here("budget", "d.json", "--json")
            if outcome.status == 0:
                assert outcome.out == report
                assert json.loads(damaged) == json.loads(whole)
                continue
            assert outcome.status == 4, (at, outcome.err)
            error = json.loads(outcome.err)["error"]
            assert any(place in error for place in ("entry ", "line ", "document")), error
            assert dpfit.read("d.json") == damaged
            refused += 1
    assert refused > 180
