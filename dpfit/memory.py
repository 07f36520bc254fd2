"""Running out of memory where Python can tell.

OpenBLAS waits for ever when it is loaded without room for its buffers, and pyarrow's CSV parser
ends the whole process. Both are asked only after as much memory was to be had a moment before.
"""

from __future__ import annotations

import errno
import mmap

LIBRARIES = 288 << 20  # of addresses; below it OpenBLAS, in scipy, may wait for ever
SECOND_BLAS = 128 << 20  # scipy brings an OpenBLAS of its own, which waits too
BLAS_BUFFER = 64 << 20  # twice what OpenBLAS asks for on one thread
PARSER_SHARE = 4  # of the text; what pyarrow's CSV parser sets aside for it at most


def require_memory(n_bytes: int) -> None:
    """Raise `MemoryError` unless there is room; nothing is touched, so asking takes no time."""
    # Private, as what malloc asks for is: shared memory counts against no limit of the process.
    try:
        mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        raise MemoryError from None


def is_lack_of_memory(error: BaseException) -> bool:
    """Also by its other names: a thread without a stack, a library that cannot be mapped."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, RuntimeError):
        return "can't start new thread" in str(error)
    if isinstance(error, ImportError):
        causes = ("failed to map segment", "cannot allocate memory", "cannot apply additional")
        return any(cause in str(error).lower() for cause in causes)
    return isinstance(error, MemoryError)
