"""From the operands of a command to open, decompressed byte streams and their declared formats."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import IO, BinaryIO, Final, cast

from dpfit.data.compression import (
    MAGIC_BYTES,
    SUFFIXES,
    CheckedStream,
    PrefixedStream,
    compression_of,
)
from dpfit.data.remote import is_remote, open_parts, open_remote, remote_entries
from dpfit.errors import DataError, StorageError, UsageError, reason_of

STDIN = "-"

EXTENSIONS: Mapping[str, str] = {
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
"""The format of rows that an extension tells."""
_ALMOST_URL: Final = re.compile(r"(s3|gs|https)(:/*|//)[^/]", re.IGNORECASE)
_FOREIGN: Final = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".ods"), "save the sheet as CSV"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "JSON is not read: make it CSV or Parquet"),
    **dict.fromkeys((".zip", ".tar", ".tgz", ".7z"), "unpack it, and name the files in it"),
}
FORMATS = tuple(dict.fromkeys(EXTENSIONS.values()))


def expand_inputs(operands: Sequence[str]) -> list[str]:
    """Files behind the operands, in the order given; a directory gives its part files by name.

    Parameters
    ----------
    operands : sequence of str
        Files, directories of parts, URLs of either, or exactly one ``-`` for standard input.

    Returns
    -------
    list of str

    Raises
    ------
    UsageError
        No operand, ``-`` beside others, or a file that is named twice.
    StorageError
        A file does not exist, or a directory or server cannot be read.
    DataError
        A directory without part files.
    """
    if not operands:
        raise UsageError("no input file is given", hint="name a file, a directory, or - for stdin")
    if STDIN in operands:
        if len(operands) > 1:
            raise UsageError(
                "'-' (standard input) must be the only input",
                hint="leave it out, or feed all the files through it",
            )
        return [STDIN]
    paths: list[str] = []
    for operand in operands:
        entries = _entries(operand)
        paths.extend([operand] if entries is None else _parts_of(operand, entries))
    # A record that is read twice would count twice, under any of its file's names.
    names: dict[tuple[int, int] | str, str] = {}
    for path in paths:
        identity = _identity(path)
        if identity in names:
            first = names[identity]
            same = "" if first == path else f", as {first}"
            raise UsageError(f"{path}: is named twice{same}", hint="name each file once")
        names[identity] = path
    return paths


def _identity(path: str) -> tuple[int, int] | str:
    if is_remote(path):
        return path
    try:
        found = os.stat(path)
    except (OSError, ValueError) as error:
        raise StorageError(f"{path}: {_reason(error)}", hint=_near(path)) from None
    return found.st_dev, found.st_ino


def _near(path: str) -> str:
    """What may have been meant by a name that is none."""
    scheme = _ALMOST_URL.match(path)
    if scheme is not None:
        return f"a URL begins with {scheme[1].lower()}://"
    folder, name = os.path.split(path)
    names = []
    with contextlib.suppress(OSError, ValueError):
        names = difflib.get_close_matches(name, os.listdir(folder or "."), 1, 0.8)
    if names:
        return f"did you mean {os.path.join(folder, names[0])}?"
    return "is the name right? it is seen from the working directory"


def _entries(operand: str) -> dict[str, bool] | None:
    """What is in a directory, by name, and whether it is one itself; None for a file."""
    if is_remote(operand):
        return remote_entries(operand)
    if not os.path.isdir(operand):
        return None
    try:
        paths = [os.path.join(operand, name) for name in sorted(os.listdir(operand))]
    except OSError as error:
        raise StorageError(f"{operand}: {_reason(error)}") from None
    return {path: os.path.isdir(path) for path in paths}


def _parts_of(directory: str, entries: Mapping[str, bool]) -> list[str]:
    # Writers of part files mark their bookkeeping (_SUCCESS, .crc) by these first characters.
    parts = [path for path in entries if not os.path.basename(path).startswith(("_", "."))]
    nested = [part for part in parts if entries[part]]
    if nested:
        raise DataError(
            "the directory holds a directory",
            path=nested[0],
            hint="only one level is read: name the directories of part files one by one",
        )
    if not parts:
        raise DataError(
            "the directory holds no part files",
            path=directory,
            hint="names that begin with . or _ are left out; name the files themselves",
        )
    return parts


def _reason(error: Exception) -> str:
    """A name with a NUL byte is a ValueError, which has no reason of the system's."""
    return reason_of(error) if isinstance(error, OSError) else "cannot be opened"


def open_binary(path: str, stdin: BinaryIO | None = None) -> BinaryIO:
    """Open one input for reading, decompressed if name and first bytes say so.

    Only what has no name, standard input or a pipe, goes by its first bytes alone.

    Parameters
    ----------
    path : str
        A file or its URL, or ``-``.
    stdin : binary file, optional
        What ``-`` means; the process's standard input if omitted. It is never closed.

    Returns
    -------
    binary file
        Its ``read`` raises `DataError` for damaged compression and `StorageError` for the rest.
    """
    raw = _open_raw(path, stdin)
    head = _head(CheckedStream(raw, path, owned=False))
    compression = compression_of(head)
    named = SUFFIXES.get(os.path.splitext(path)[1].lower())
    # An empty file is left to the reader, which says that it holds no records.
    if head and named is not None and named != compression:
        raw.close()
        raise DataError(
            f"the name says {named} but the content is not {named} data",
            path=path,
            hint="rename it if it is not compressed, or copy it again",
        )
    # What is no regular file, such as a pipe, has no name that could tell.
    if compression is not None and named is None and (is_remote(path) or os.path.isfile(path)):
        raw.close()
        suffix = next(suffix for suffix, name in SUFFIXES.items() if name == compression)
        raise DataError(
            f"the content is {compression} data, which the name does not say",
            path=path,
            hint=f"rename it to end in {suffix}, or decompress it",
        )
    joined = PrefixedStream(head, raw, owned=path != STDIN)
    return cast(BinaryIO, CheckedStream(cast(BinaryIO, joined), path, compression))


def open_seekable(path: str) -> IO[bytes] | None:
    """The bytes of a file as they are, in any order; None for what can only be read once through.

    Raises
    ------
    StorageError
        It cannot be opened.
    """
    if is_remote(path):
        return open_parts(path)
    if path == STDIN or not os.path.isfile(path):
        return None
    try:
        return open(path, "rb")
    except OSError as error:
        raise StorageError(f"{path}: {_reason(error)}") from None


def _open_raw(path: str, stdin: BinaryIO | None) -> BinaryIO:
    if path == STDIN:
        if stdin is not None:
            return stdin
        if sys.stdin is None:
            raise StorageError("standard input is closed")
        return sys.stdin.buffer
    if is_remote(path):
        return open_remote(path)
    try:
        return open(path, "rb", buffering=0)
    except (OSError, ValueError) as error:
        raise StorageError(f"{path}: {_reason(error)}") from None


def _head(stream: CheckedStream) -> bytes:
    head = b""
    while len(head) < MAGIC_BYTES:
        more = stream.read(MAGIC_BYTES - len(head))
        if not more:
            break
        head += more
    return head


def format_of(
    path: str, declared: str | None = None, extensions: Mapping[str, str] = EXTENSIONS
) -> str:
    """Format of an input: the declared one, else by extension, never by content.

    Parameters
    ----------
    path : str
        The input's name.
    declared : str, optional
        A format, or ``auto``.
    extensions : mapping of str to str, optional
        The known formats by extension.

    Returns
    -------
    str
        One of the values of ``extensions``.
    """
    formats = ", ".join(dict.fromkeys(extensions.values()))
    if declared not in (None, "auto"):
        if declared not in extensions.values():
            raise UsageError(f"unknown format; --format is one of auto, {formats}")
        return declared
    hint = f"give --format ({formats})"
    if path == STDIN:
        raise UsageError("the format of standard input is not known", hint=hint)
    stem, extension = os.path.splitext(os.path.basename(path))
    if extension.lower() in SUFFIXES:
        extension = os.path.splitext(stem)[1]
    found = extensions.get(extension.lower())
    if found is None:
        hint = _FOREIGN.get(extension.lower(), hint)
        raise UsageError(f"{path}: the extension tells no format", hint=hint)
    return found
