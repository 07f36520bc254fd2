"""Where a command may write: never over what it reads, never over a ledger."""

from __future__ import annotations

import os
from collections.abc import Iterable

from dpfit.errors import StorageError, UsageError
from dpfit.files.atomic import check_writable

_LOOK = 64  # the schema stands in the first bytes of a model or ledger
_MODEL, _LEDGER = b"dpfit-model/", b"dpfit-ledger/"
_FACTORS, _PARQUET = b"dpfit-factors/", b"PAR1"  # stands in the last bytes of a Parquet file
_LARGEST_FOOTER = 1 << 26
_ANOTHER_NAME = "choose another name for what is written"


def check_target(
    path: str, *, force: bool, reads: Iterable[str], replaces_models_only: bool
) -> None:
    """Refuse an output that exists, cannot be written, or is something that must not be lost.

    Parameters
    ----------
    path : str
        The output.
    force : bool
        Whether an existing file may be replaced.
    reads : iterable of str
        Files that the command reads or charges.
    replaces_models_only : bool
        Whether ``--force`` may replace nothing but a model.

    Raises
    ------
    UsageError
        The output is one of ``reads``.
    StorageError
        The output may not or cannot be written.
    """
    check_apart(path, reads)
    check_writable(path, overwrite=force)
    head = _head(path)
    if not head:
        return
    if _LEDGER in head:
        raise StorageError(
            f"{path}: is a ledger, which --force does not replace", hint=_ANOTHER_NAME
        )
    if replaces_models_only and not (_MODEL in head or _is_of_factors(path, head)):
        raise StorageError(
            f"{path}: is not a model, and --force replaces nothing else", hint=_ANOTHER_NAME
        )


def check_apart(path: str, others: Iterable[str]) -> None:
    """Refuse a file to write that is one of ``others``, under whatever name."""
    for other in others:
        if other != "-" and _same_file(path, other):
            raise UsageError(f"{path}: is a file of this run", hint=_ANOTHER_NAME)


def _same_file(left: str, right: str) -> bool:
    try:
        return os.path.samefile(left, right)
    except OSError:
        return os.path.realpath(left) == os.path.realpath(right)


def _head(path: str) -> bytes:
    """First bytes of a regular file; empty when there is none."""
    if not os.path.isfile(path):
        return b""
    try:
        with open(path, "rb") as stream:
            return stream.read(_LOOK)
    except OSError as error:
        raise StorageError(f"{path}: exists and cannot be read") from error


def _is_of_factors(path: str, head: bytes) -> bool:
    """Whether a file is the Parquet file of a factor model, by its footer."""
    if not head.startswith(_PARQUET):
        return False
    with open(path, "rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - 8))
        length = int.from_bytes(stream.read(4), "little")
        stream.seek(max(0, size - 8 - min(length, _LARGEST_FOOTER)))
        return _FACTORS in stream.read(min(length, _LARGEST_FOOTER))
