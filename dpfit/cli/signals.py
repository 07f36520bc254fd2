"""Signals become one exception, except while a ledger or model is being written."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

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


def raise_pending() -> None:
    """Let a waiting signal take effect now, inside :func:`uninterrupted`: nothing is begun yet."""
    if _Deferral.pending is not None:
        number, _Deferral.pending = _Deferral.pending, None
        raise Interrupted(number)


def _handle(number: int, _frame: FrameType | None) -> None:
    if _Deferral.depth:
        _Deferral.pending = number
        return
    raise Interrupted(number)
