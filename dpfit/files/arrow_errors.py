"""pyarrow's lack of memory, told apart from what it raises for content."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa


@contextmanager
def memory_apart() -> Iterator[None]:
    """Raise Python's own `MemoryError` for pyarrow's, which is a kind of its content errors too."""
    try:
        yield
    except pa.ArrowMemoryError as error:
        raise MemoryError from error
