"""An advisory lock beside a file, whose refusal names the holder.

``filelock`` truncates the lock file while it waits and so wipes the holder's name; a lock that dies
with its process and says who holds it is these few lines over ``flock``.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterator

from dpfit.errors import LockBusyError, StorageError

_POLL_SECONDS = 0.005


@contextlib.contextmanager
def locked(
    path: str, *, timeout: float, while_waiting: Callable[[], None] | None = None
) -> Iterator[None]:
    """Hold the exclusive lock of ``path`` (the file ``path + ".lock"``) for the block.

    Parameters
    ----------
    path : str
        The file that the lock guards. It need not exist.
    timeout : float
        Seconds to wait for another holder; 0 does not wait.
    while_waiting : callable, optional
        Called again and again during the wait; ends it by raising.

    Raises
    ------
    LockBusyError
        Another process held the lock for the whole wait.
    StorageError
        The lock file cannot be opened.
    """
    name = os.path.realpath(path) + ".lock"
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        reason = (error.strerror or "refused").lower()
        raise StorageError(f"{path}: its lock file cannot be opened: {reason}") from None
    try:
        _acquire(descriptor, path, timeout, while_waiting)
        _sign(descriptor)
        yield
    finally:
        os.close(descriptor)  # lets go of the lock, whatever happened


def _acquire(
    descriptor: int, path: str, timeout: float, while_waiting: Callable[[], None] | None
) -> None:
    deadline = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise LockBusyError(
                    f"{path}: locked by {_holder(descriptor)}",
                    hint="wait for it, or give a longer --lock-timeout",
                ) from None
        except OSError as error:
            reason = (error.strerror or "refused").lower()
            raise StorageError(f"{path}: this file system gives no lock: {reason}") from None
        if while_waiting is not None:
            while_waiting()
        time.sleep(_POLL_SECONDS)


def _sign(descriptor: int) -> None:
    with contextlib.suppress(OSError):  # the name is a courtesy; a full disk must not stop us
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)


def _holder(descriptor: int) -> str:
    text = os.pread(descriptor, 300, 0).decode("utf-8", "replace").strip()
    return text or "another process"
