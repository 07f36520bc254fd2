"""Exit statuses, the same for every command and documented in every man page."""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """How a run ended."""

    DONE = 0
    INTERNAL_FAULT = 1
    USAGE = 2
    INVALID_DATA = 3
    PRIVACY_REFUSAL = 4
    STORAGE = 5
    LOCK_BUSY = 6
    NOT_CONVERGED = 7
    HANGUP = 129
    INTERRUPTED = 130
    READER_CLOSED = 141
    TERMINATED = 143
