"""Where the rows of a fit stand while it runs, and how much memory it may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dpfit.errors import UsageError

_LARGEST_CHUNK: Final = 1 << 22  # entries, 50 MB; larger ones keep less of a product in the cache
_BYTES_WHILE_MADE: Final = 120  # an entry of a chunk, of all that are made or used at a time
_PROGRAM: Final = 320 << 20  # the interpreter, its libraries and the blocks of text being read


@dataclass(frozen=True)
class Storage:
    """How rows are held.

    Attributes
    ----------
    memory : int or None
        Bytes that the process may take; None bounds nothing.
    folder : str or None
        Where a nameless file may hold the rows; None holds them in memory.
    """

    memory: int | None = None
    folder: str | None = None

    @property
    def chunk_entries(self) -> int:
        """After how many entries a chunk of rows ends."""
        if self.memory is None:
            return _LARGEST_CHUNK
        spare = max(self.memory - _PROGRAM, 0)
        most = max(1, min(_LARGEST_CHUNK, spare // (2 * _BYTES_WHILE_MADE)))
        return 1 << (most.bit_length() - 1)  # kept chunks suit all bounds of about that size

    def check(self, held: int, arrays: int = 0, columns: int = 0) -> None:
        """Refuse what would not fit; no message tells a size, which may come from private rows.

        Parameters
        ----------
        held : int
            Bytes of the rows that stand in memory.
        arrays : int
            Bytes of all that a step needs beside them.
        columns : int
            And what it needs by the number of columns.

        Raises
        ------
        UsageError
            The bound is lower.
        """
        if not self._allows(0):
            raise UsageError(f"--memory must be at least {_PROGRAM >> 20}MiB")
        if self._allows(held + arrays + columns):
            return
        hint = "allow more"
        if not self.folder and self._allows(arrays + columns):
            hint += ", or let --cache DIR hold the rows on disk"
        elif self._allows(held + arrays):
            hint += ", or declare fewer columns"
        raise UsageError("--memory: the fit needs more than it allows", hint=hint)

    def _allows(self, rest: int) -> bool:
        """Whether so many bytes fit beside the program and a chunk being made."""
        # A chunk takes half of what is spare, up to its largest size: see chunk_entries.
        chunk = min(rest, _BYTES_WHILE_MADE * _LARGEST_CHUNK)
        return self.memory is None or self.memory >= _PROGRAM + rest + chunk


IN_MEMORY: Final = Storage()
