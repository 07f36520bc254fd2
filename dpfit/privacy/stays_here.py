"""What must not leave the process that made it."""

from __future__ import annotations

from typing import NoReturn


class StaysHere:
    """What cannot be pickled: a cluster moves values between its workers when it sees fit."""

    def __reduce__(self) -> NoReturn:
        raise TypeError("what is known of private records can be neither pickled nor copied")
