"""Map over an iterator on a few threads, results in order and a bounded number in flight."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

from dpfit.memory import require_memory

T = TypeVar("T")
R = TypeVar("R")

# A thread that finds no memory for its first step dies, and who started it waits for it for ever.
_THREAD: Final = 10 << 20  # its stack, and a little to begin with


def cpu_count() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def started_pool(threads: int) -> ThreadPoolExecutor:
    """A pool whose threads all run when this returns, so that later there is none to start."""
    require_memory(threads * _THREAD)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="dpfit")
    together = threading.Barrier(threads + 1)
    try:
        for _ in range(threads):
            pool.submit(together.wait)
        together.wait()
    except BaseException:
        together.abort()
        raise
    return pool


def ordered_map(function: Callable[[T], R], items: Iterator[T], threads: int) -> Iterator[R]:
    """Yield ``function(item)`` in order; at most ``threads + 1`` items are held at a time.

    An exception of ``items`` is raised after the results of the items before it.
    """
    if threads <= 1:
        yield from map(function, items)
        return
    waiting: deque[Future[R]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="dpfit-read")
    try:
        yield from _run(function, items, pool, waiting, threads)
    finally:
        # Not waited for: an interruption may have left a lock held that a thread wants.
        pool.shutdown(wait=False, cancel_futures=True)


def _run(
    function: Callable[[T], R],
    items: Iterator[T],
    pool: ThreadPoolExecutor,
    waiting: deque[Future[R]],
    threads: int,
) -> Iterator[R]:
    late: Exception | None = None
    while late is None:
        try:
            item = next(items)
            require_memory(_THREAD)  # a submission may start a thread
            waiting.append(pool.submit(function, item))
        except StopIteration:
            break
        except Exception as error:
            late = error
        if len(waiting) > threads:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
    if late is not None:
        raise late
