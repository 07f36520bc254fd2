"""Whole files or none: write beside the target, flush, rename, flush the folder."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from typing import BinaryIO

from dpfit.errors import StorageError, reason_of

_WAYS = {
    errno.ENOENT: "make its folder first, or name another",
    errno.EACCES: "name a folder in which you may write",
    errno.EPERM: "name a folder in which you may write",
    errno.EROFS: "name a folder in which you may write",
    errno.ENOSPC: "make room, or name a folder on another disk",
}
_NO_HARD_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def write_atomically(
    path: str,
    data: bytes,
    *,
    overwrite: bool,
    last_look: Callable[[], None] | None = None,
    mode_of: str | None = None,
) -> None:
    """Write ``data`` to ``path`` so that a reader, or a crash, never sees half of it.

    Parameters
    ----------
    path, data : str, bytes
        Where and what.
    overwrite : bool
        Whether an existing file may be replaced.
    last_look : callable, optional
        Called when all is on disk but the name; stops the replacement by raising.
    mode_of : str, optional
        The file whose mode it gets; as :func:`written_atomically` if none is named.

    Raises
    ------
    StorageError
        As :func:`written_atomically`.
    """
    with written_atomically(
        path, overwrite=overwrite, last_look=last_look, mode_of=mode_of
    ) as stream:
        stream.write(data)


def check_writable(path: str, *, overwrite: bool) -> None:
    """Refuse a target that could not be written later, before any work or budget is spent.

    Raises
    ------
    StorageError
        The file exists and may not be replaced, or its folder takes no new file.
    """
    target = os.path.realpath(path)
    if os.path.isdir(target):
        raise StorageError(f"{path}: is a folder, not a file", hint="name a file in it")
    if _is_special(target):
        if not stat.S_ISCHR(os.stat(target).st_mode):
            # Opening a pipe waits for its reader, for ever if there is none.
            raise StorageError(
                f"{path}: is a pipe or socket", hint="give -o - and redirect standard output"
            )
        return
    if os.path.exists(target) and not overwrite:
        raise StorageError(f"{path}: exists", hint="give --force to replace it")
    try:
        with _temporary_beside(target):
            pass
    except OSError as error:
        raise StorageError(
            f"{path}: cannot be written: {reason_of(error)}", hint=_WAYS.get(error.errno or 0)
        ) from None


@contextlib.contextmanager
def written_atomically(
    path: str,
    *,
    overwrite: bool,
    last_look: Callable[[], None] | None = None,
    mode_of: str | None = None,
) -> Iterator[BinaryIO]:
    """A stream whose content becomes ``path`` when the block ends, and vanishes when it fails.

    A link is followed, the mode of a file that is replaced is kept, and a new file gets the mode
    that the user's umask asks for.

    Parameters
    ----------
    path : str
        Target file. A device (``/dev/null``) is written directly.
    overwrite : bool
        Whether an existing file may be replaced.
    last_look : callable, optional
        Called when all is on disk but the name; stops the replacement by raising. Given by those
        who hold a lock that every writer of the file takes.
    mode_of : str, optional
        The file whose mode it gets, instead of the above.

    Raises
    ------
    StorageError
        The file exists and may not be replaced, or the system refused to write.
    """
    try:
        target = os.path.realpath(path)
        with _written(target, overwrite, last_look, mode_of or target) as stream:
            yield stream
    except FileExistsError:
        raise StorageError(f"{path}: exists", hint="give --force to replace it") from None
    except OSError as error:
        raise StorageError(
            f"{path}: cannot be written: {reason_of(error)}", hint=_WAYS.get(error.errno or 0)
        ) from None


@contextlib.contextmanager
def _written(
    target: str, overwrite: bool, last_look: Callable[[], None] | None, mode_of: str
) -> Iterator[BinaryIO]:
    if _is_special(target):
        with open(target, "wb") as stream:
            yield stream
        return
    with _temporary_beside(target) as (descriptor, temporary):
        with os.fdopen(os.dup(descriptor), "wb") as stream:
            yield stream
        os.fchmod(descriptor, _mode_for(mode_of))
        os.fsync(descriptor)
        if last_look is not None:
            last_look()
        if overwrite:
            os.replace(temporary, target)
        elif last_look is not None:
            _rename_after_look(temporary, target)
        else:
            _rename_to_free_name(temporary, target)
    _flush_folder(os.path.dirname(target))


def _rename_to_free_name(temporary: str, target: str) -> None:
    """Give the file its name unless that is taken."""
    try:
        os.link(temporary, target)  # fails when the name is taken, where a rename would replace it
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        # FAT and some network file systems: not losing a result that was paid for matters more
        # than the instant between this look and the rename.
        _rename_after_look(temporary, target)


def _rename_after_look(temporary: str, target: str) -> None:
    """Enough where a lock keeps others away; and no crash leaves the file with two names."""
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    os.replace(temporary, target)


@contextlib.contextmanager
def _temporary_beside(target: str) -> Iterator[tuple[int, str]]:
    folder, name = os.path.split(target)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{name[:40]}.", suffix=".tmp", dir=folder)
    try:
        yield descriptor, temporary
    finally:
        os.close(descriptor)
        with contextlib.suppress(FileNotFoundError):  # renamed away
            os.unlink(temporary)


def _is_special(target: str) -> bool:
    try:
        mode = os.stat(target).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _mode_for(path: str) -> int:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask


def _flush_folder(folder: str) -> None:
    descriptor = os.open(folder or ".", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
