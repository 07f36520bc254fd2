"""The clock of the benchmarks that time calls inside one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median


def median_seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """Median time of one call after a warm-up."""
    call()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return median(seconds)


def paired_seconds(
    call: Callable[[], object], other: Callable[[], object], repeats: int
) -> list[tuple[float, float]]:
    """Times of two calls in turn, after a warm-up of both."""
    pairs = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        call()
        between = time.perf_counter()
        other()
        pairs.append((between - start, time.perf_counter() - between))
    return pairs[1:]
