"""The bytes of a ledger's file, if it is one that can be a ledger."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO, Final

from dpfit.errors import PrivacyError, StorageError, reason_of

_LARGEST_FILE: Final = 1 << 28  # a hundred thousand runs in one part; more is not ours
_CHUNK: Final = 1 << 16  # small enough for the allocator to use the same memory again


def ledger_bytes(file: str, shown: str, known: bytes = b"") -> bytes | None:
    """What a file holds, None if it does not exist; ``known`` itself if it holds just that.

    Parameters
    ----------
    file, shown : str
        The file, and its name for messages.
    known : bytes
        What it held before.

    Raises
    ------
    StorageError
        It cannot be read, or is a folder, pipe or the like.
    PrivacyError
        It has a second name or is too large.
    """
    try:
        status = os.lstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise StorageError(f"{shown}: is no regular file and cannot be a ledger")
        if status.st_nlink > 1:
            # A rename would part the names, and each would carry the whole budget.
            raise PrivacyError(
                f"{shown}: the ledger has a second hard link",
                hint="remove the other name; a symbolic link to the ledger is fine",
            )
        if status.st_size > _LARGEST_FILE:
            raise PrivacyError(f"{shown}: damaged ledger: larger than a ledger can be")
        with open(file, "rb") as stream:
            return known if _holds(stream, known) else stream.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{shown}: cannot be read: {reason_of(error)}") from None


def _holds(stream: BinaryIO, known: bytes) -> bool:
    """Whether a file holds just these bytes, without a second copy of them; rewinds it if not."""
    for at in range(0, len(known) + 1, _CHUNK):
        if stream.read(_CHUNK) != known[at : at + _CHUNK]:
            stream.seek(0)
            return False
    return True
