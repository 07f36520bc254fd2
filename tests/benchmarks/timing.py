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
