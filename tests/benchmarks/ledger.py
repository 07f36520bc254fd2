"""Time of what a run does with its ledger, and of a report, by the number of entries.

usage: python tests/benchmarks/ledger.py [ENTRIES ...]

CPU time, which other programs disturb less than the clock. ``check`` is a run's first look, before
it reads data; ``reserve`` and ``close`` follow in the same process, under the lock. These three
read no entry, where ``budget`` verifies all. ``alike``: runs of the same settings, as a cron job
makes them. ``each its own``: every run has other noise and another name. ``bytes only`` reads the
last part, hashes it and writes it anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from usage import answer_help

from dpfit.cli.app import run
from dpfit.files.atomic import write_atomically
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.canonical_json import Json
from dpfit.privacy.events import Event, GaussianEvent
from dpfit.privacy.ledger import LARGEST_PART, Ledger
from dpfit.privacy.ledger_document import LedgerDocument
from dpfit.privacy.ledger_frame import Cap

COLUMNS = ("check", "reserve", "close", "budget", "--json", "bytes only")
REPEATS = 5
DESCRIPTION = {
    "dpfit": "0.1.0",
    "dataset": "text",
    "algorithm": "dp-screen",
    "private": True,
    "reproducible": False,
    "adjacency": "replace-one",
    "budget": {"epsilon": 1e-3, "delta": 1e-6},
    "calibration": "exact",
    "settings": {f"setting_{i}": i / 7 for i in range(12)},
    "row_map": {"kind": "normalize", "norm": 1.0},
    "public_facts": {
        name: {"value": 10000, "origin": "declared"}
        for name in ("rows", "features", "labels", "index_base", "loss", "intercept")
    },
}


def events(number: int) -> list[Event]:
    """Two releases at a small budget, as a run has them."""
    sensitivity = PerAdjacency(replace_one=4 * (1000 + number) ** 2, add_remove=10**6)
    return [
        GaussianEvent(label=label, count=20, squared_sensitivity=sensitivity, scale=1 << 34)
        for label in ("column screen", "gradient")
    ]


def write_ledger(path: str, entries: int, *, alike: bool) -> int:
    """Write a ledger of released runs under a cap that leaves room, in its parts; their bytes."""
    document, size = LedgerDocument.start(Cap(8.0, 1e-6, Adjacency.REPLACE_ONE)), 0
    for number in range(entries // 2):
        if len(document.data) > LARGEST_PART:
            Path(document.as_earlier().path(path)).write_bytes(document.data)
            size += len(document.data)
            document = document.next_part()
        document = document.append(*one_run(number, alike))
    Path(path).write_bytes(document.data)
    return size + len(document.data)


def one_run(number: int, alike: bool) -> list[Json]:
    """Its two entries."""
    about = DESCRIPTION if alike else {**DESCRIPTION, "dataset": f"text {number}"}
    name = f"{number:032x}"
    time = {"run": name, "time": "2026-01-01T00:00:00Z"}
    listed = [event.to_json() for event in events(0 if alike else number)]
    digest = hashlib.sha256(name.encode()).hexdigest()
    return [
        {"kind": "reserved", "events": listed, **time, **about},
        {"kind": "released", "model_sha256": digest, **time},
    ]


def budget(path: str, *more: str) -> None:
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        assert run(["budget", path, *more]) == 0


def measure(path: str, alike: bool) -> list[float]:
    """Median CPU seconds of each operation on this ledger."""
    charge, whole = events(0 if alike else 5), Path(path).read_bytes()
    seconds: list[list[float]] = [[] for _ in COLUMNS]
    for _ in range(REPEATS):
        Path(path).write_bytes(whole)
        for measured, call in zip(seconds, operations(path, charge), strict=True):
            start = time.process_time()
            call()
            measured.append(time.process_time() - start)
    return [median(measured) for measured in seconds]


def operations(path: str, charge: list[Event]) -> list[Callable[[], object]]:
    """The operations in their order, as columns."""
    owned = Ledger(path, lock_timeout=0)
    runs: list[str] = []
    return [
        lambda: owned.check(charge),
        lambda: runs.append(owned.reserve(charge, DESCRIPTION)),
        lambda: owned.close(runs[0], "released", model_sha256="0" * 64),
        lambda: budget(path),
        lambda: budget(path, "--json"),
        lambda: read_hash_write(path),
    ]


def read_hash_write(path: str) -> None:
    data = Path(path).read_bytes()
    hashlib.sha256(data).hexdigest()
    write_atomically(path, data, overwrite=True)


def main(counts: list[int]) -> None:
    print(f"{'runs':<14}{'entries':>8}{'MB':>7}" + "".join(f"{name:>12}" for name in COLUMNS))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "l.json")
        for alike in (True, False):
            for entries in counts:
                size = write_ledger(path, entries, alike=alike)
                seconds = measure(path, alike)
                kind = "alike" if alike else "each its own"
                cells = "".join(f"{1000 * value:>9.1f} ms" for value in seconds)
                print(f"{kind:<14}{entries:>8}{size / 1e6:>7.2f}{cells}", flush=True)


if __name__ == "__main__":
    answer_help(__doc__)
    main([int(text) for text in sys.argv[1:]] or [10, 1000, 10000, 20000])
