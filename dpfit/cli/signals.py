"""Signals become one exception, except while a ledger or model is being written."""

from __future__ import annotations

import contextlib
import select
import signal
import socket
import threading
import time
from collections.abc import Iterator
from types import FrameType

_PATIENCE_SECONDS = 0.5
_CAUGHT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


class Interrupted(BaseException):
    """A signal asked the run to end.

    A handler that only sets a flag would leave a read from a silent pipe waiting for ever, so the
    handler raises, and the few places that must not be cut in two use :func:`uninterrupted`.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        # A --timeout ends the run the way `timeout` and cron do: as if terminated.
        self.number = signal.SIGTERM if number == signal.SIGALRM else signal.Signals(number)


class _Deferral:
    depth = 0
    pending: int | None = None


def install(timeout: float | None = None) -> None:
    """Route the signals that end a run through :class:`Interrupted`.

    A signal that the parent had ignored (``nohup``, a background job) stays ignored.

    Parameters
    ----------
    timeout : float, optional
        Seconds after which the run ends as if terminated.
    """
    _Bell.hang()
    for number in _CAUGHT:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _handle)
    if timeout is not None:
        signal.setitimer(signal.ITIMER_REAL, timeout)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Finish the block before a signal takes effect."""
    _Deferral.depth += 1
    try:
        yield
    finally:
        _Deferral.depth -= 1
        if _Deferral.depth == 0:
            raise_pending()


def heard() -> None:
    """Say that an :class:`Interrupted` arrived where it ends the run, so that none must follow."""
    _Bell.silence()


def raise_pending() -> None:
    """Let a waiting signal take effect now, inside :func:`uninterrupted`: a place to stop at."""
    if _Deferral.pending is not None:
        number, _Deferral.pending = _Deferral.pending, None
        raise Interrupted(number)


class _Bell:
    """Repeats a signal until it has taken effect.

    One that arrives between Python's last look and a wait for a silent pipe would take effect only
    after that wait, and an exception in a finaliser (that of a dropped file object, say) is lost.
    The system's handler puts a byte on a socket; while one lies there, a thread sends the signal
    again. It is taken off when the signal was deferred, and by :func:`heard`.
    """

    ring: socket.socket | None = None

    @classmethod
    def hang(cls) -> None:
        if cls.ring is None:
            cls.ring, hammer = socket.socketpair()
            hammer.setblocking(False)
            cls.ring.setblocking(False)
            signal.set_wakeup_fd(hammer.detach(), warn_on_full_buffer=False)
            threading.Thread(target=_repeat, args=(cls.ring,), daemon=True).start()

    @classmethod
    def silence(cls) -> None:
        if cls.ring is not None:
            with contextlib.suppress(BlockingIOError):
                cls.ring.recv(4096)


def _repeat(ring: socket.socket) -> None:
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    while True:
        select.select([ring], [], [])
        time.sleep(_PATIENCE_SECONDS)
        with contextlib.suppress(BlockingIOError):
            number = ring.recv(1, socket.MSG_PEEK)[0]
            if signal.getsignal(number) is _handle:
                signal.pthread_kill(main_thread, number)
            else:  # another's signal is the other's affair
                ring.recv(1)


def _handle(number: int, _frame: FrameType | None) -> None:
    if _Deferral.depth:
        _Bell.silence()
        _Deferral.pending = number
        return
    raise Interrupted(number)
