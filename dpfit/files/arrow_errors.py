"""pyarrow's lack of memory, told apart from what it raises for content."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from dpfit.memory import is_lack_of_memory

_NO_STATE: Final = ("alloc", "memory")  # a codec without room for its state says so in text only
_NO_THREAD: Final = "Unknown error: Failed to launch worker thread"  # for want of its stack


@contextmanager
def memory_apart() -> Iterator[None]:
    """Raise Python's own `MemoryError` for pyarrow's lack of memory.

    By type it is an error of content: an ``ArrowException``, or an ``OSError`` of a codec.
    """
    try:
        yield
    except (pa.ArrowException, OSError, RuntimeError) as error:
        if is_lack_of_memory(error) or _says_so(error):
            raise MemoryError from error
        raise


def _says_so(error: Exception) -> bool:
    text = str(error)
    if isinstance(error, OSError):  # no other kind is searched: its text may quote a cell
        return error.errno is None and any(word in text.lower() for word in _NO_STATE)
    return text.startswith(_NO_THREAD)
