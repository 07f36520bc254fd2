"""One holder at a time, and a name for the one who holds."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dpfit.errors import LockBusyError, StorageError
from dpfit.files.lock import locked

HOLD = "import sys; from dpfit.files.lock import locked\nwith locked(sys.argv[1], timeout=9):\n"


def test_one_holder(tmp_path: Path) -> None:
    """A held lock is refused at once with timeout 0, and free again after the block."""
    path = str(tmp_path / "x")
    with locked(path, timeout=0), pytest.raises(LockBusyError), locked(path, timeout=0):
        pass
    with locked(path, timeout=0):
        pass


def test_holder_is_named_and_dies_with_its_process(tmp_path: Path) -> None:
    """The refusal names the other process; when that is killed the lock is free."""
    path = str(tmp_path / "x")
    code = f"{HOLD}    print(flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        with (
            pytest.raises(LockBusyError, match=rf"process {process.pid} on "),
            locked(path, timeout=0),
        ):
            pass
        process.kill()
        process.wait()
    with locked(path, timeout=0):
        pass


def test_waiting(tmp_path: Path) -> None:
    """A waiter gets the lock when it becomes free, or gives up when its time is over."""
    path = str(tmp_path / "x")
    held, enough = threading.Event(), threading.Event()

    def hold() -> None:
        with locked(path, timeout=0):
            held.set()
            enough.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    try:
        with pytest.raises(LockBusyError), locked(path, timeout=0.02):
            pass
        with locked(path, timeout=600, while_waiting=enough.set):
            assert enough.is_set()
    finally:
        enough.set()
        holder.join()


def test_wait_can_be_ended(tmp_path: Path) -> None:
    """What is called during the wait ends it by raising."""
    path = str(tmp_path / "x")

    def enough() -> None:
        raise KeyboardInterrupt

    with (
        locked(path, timeout=0),
        pytest.raises(KeyboardInterrupt),
        locked(path, timeout=600, while_waiting=enough),
    ):
        pass


def test_no_folder(tmp_path: Path) -> None:
    """A lock that cannot be made is a storage error."""
    with pytest.raises(StorageError), locked(os.path.join(tmp_path, "no", "x"), timeout=0):
        pass
