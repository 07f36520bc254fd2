"""Map over an iterator on a few threads, results in order and a bounded number in flight."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


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
            waiting.append(pool.submit(function, next(items)))
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
