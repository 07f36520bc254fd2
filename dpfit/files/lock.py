"""An advisory lock beside a file, whose refusal names the holder.

``filelock`` truncates the lock file while it waits and so wipes the holder's name; a lock that dies
with its process and says who holds it is these few lines over ``flock``.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator

from dpfit.errors import LockBusyError, StorageError, reason_of

_POLL_SECONDS = 0.005
_SIGNATURE = b"process "


@contextlib.contextmanager
def locked(
    path: str, *, timeout: float, while_waiting: Callable[[], None] | None = None
) -> Iterator[Callable[[], None]]:
    """Hold the exclusive lock of ``path`` (the file ``path + ".lock"``) for the block.

    Yields a last look: call it just before what the lock guards is changed; it raises when the lock
    file was removed meanwhile, so that another process may hold the lock too.

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
    name = lock_name(path)
    deadline = time.monotonic() + timeout
    while True:
        descriptor = _open(name, path)
        try:
            _acquire(descriptor, path, deadline, while_waiting)
            if not _still_named(descriptor, name):
                continue  # removed by somebody while we waited: that lock guards nothing any more
            _sign(descriptor)
            yield functools.partial(_require_named, descriptor, name, path)
            return
        finally:
            os.close(descriptor)  # lets go of the lock, whatever happened


def lock_name(path: str) -> str:
    """The file that is locked for ``path``; links lead to one lock."""
    return os.path.realpath(path) + ".lock"


def _open(name: str, path: str) -> int:
    """Open the lock file, never through a link, and never a file that is something else."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(name, flags, 0o666)
    except OSError as error:
        reason = reason_of(error)
        raise StorageError(
            f"{path}: its lock file cannot be opened: {reason}",
            hint="who charges a ledger must be able to write it, its lock and its folder: see "
            "dpfit-recipes(7)",
        ) from None
    regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
    if not regular or os.pread(descriptor, len(_SIGNATURE), 0) not in (b"", _SIGNATURE):
        os.close(descriptor)
        raise StorageError(f"{path}: {os.path.basename(name)} stands where its lock file belongs")
    return descriptor


def _require_named(descriptor: int, name: str, path: str) -> None:
    if not _still_named(descriptor, name):
        raise StorageError(f"{path}: its lock file was removed while it was held")


def _still_named(descriptor: int, name: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(name))
    except FileNotFoundError:
        return False


def _acquire(
    descriptor: int, path: str, deadline: float, while_waiting: Callable[[], None] | None
) -> None:
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
            reason = reason_of(error)
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
