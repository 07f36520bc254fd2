"""Small files that are made to fill a machine: read or refused within bounds of memory and time.

Each runs in a process of its own, whose peak of resident memory is what Linux says.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

MOST_MIB: Final = 500  # 110 of them are the program and its libraries
SECONDS: Final = 60  # of the processor, whatever else the machine does
READ: Final = """
import resource, sys
from pathlib import Path
from dpfit.errors import DpfitError
from fuzz.targets import TARGETS, refused
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[3]), int(sys.argv[3])))
was_refused = refused(TARGETS[sys.argv[1]].read, Path(sys.argv[2]).read_bytes())
status = Path("/proc/self/status").read_text()
print(int(was_refused), int(status.split("VmHWM:")[1].split()[0]) >> 10)
"""


def parquet(columns: dict[str, Any], **options: Any) -> bytes:
    sink = io.BytesIO()
    one_page = {"compression": "zstd", "data_page_size": 1 << 30, "store_schema": False}
    pq.write_table(pa.table(columns), sink, **{**one_page, **options})
    return sink.getvalue()


def repeated_text() -> bytes:
    """A text of a MiB in each of 4096 rows: 4 GiB if they were written out."""
    text = pa.DictionaryArray.from_arrays(np.zeros(4096, np.int32), pa.array(["x" * (1 << 20)]))
    return parquet({"u": text, "i": np.arange(4096), "v": np.zeros(4096)})


def long_list() -> bytes:
    """A single row of 2^24 entries."""
    entries = pa.StructArray.from_arrays(
        [pa.array(np.zeros(1 << 24, np.int32)), pa.array(np.zeros(1 << 24))], ["index", "value"]
    )
    rows = pa.ListArray.from_arrays(pa.array([0, 1 << 24], pa.int32()), entries)
    return parquet({"y": [1.0], "s": rows})


def packed_text() -> bytes:
    """A single text of 128 MiB that a codec made small."""
    return parquet({"u": ["x" * (1 << 27)], "i": [1], "v": [1.0]}, use_dictionary=False)


def many_rows() -> bytes:
    """2^22 equal rows in some thousand bytes: read by the batch."""
    zeros = np.zeros(1 << 22)
    return parquet({"y": zeros, "a": zeros}, row_group_size=1 << 22)


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


def line(size: int = 1 << 28) -> bytes:
    """A line without an end: what a reader of lines holds in memory."""
    return b"1" * size


BOMBS: Final[dict[str, tuple[str, Callable[[], bytes]]]] = {
    "gzip": ("compressed", lambda: gzip.compress(line())),
    "bzip2": ("compressed", lambda: bz2.compress(line())),
    "xz": ("compressed", lambda: lzma.compress(line(), preset=0)),
    "zstd": ("compressed", lambda: zstd(line())),
    "a bomb in each member": ("compressed", lambda: gzip.compress(line(1 << 24)) * 32),
    "a repeated text": ("rating-parquet", repeated_text),
    "a long list": ("parquet", long_list),
    "a packed text": ("rating-parquet", packed_text),
    "many rows": ("parquet", many_rows),
    "nested model": ("linear-model", lambda: b"[" * 10**6),
    "model with a long number": ("linear-model", lambda: b'{"schema":%b}' % (b"1" * 10**6)),
    "nested ledger": ("ledger", lambda: b'{"a":' * 10**6),
    "ledger with a long number": ("ledger", lambda: b'{"cap":%b}' % (b"1" * 10**6)),
    "nested schema": ("schema", lambda: b"a=" + b"[" * 10**6),
    "schema with a long number": ("schema", lambda: b"rows=" + b"1" * 10**6),
    "schema with a long name": ("schema", lambda: b".".join([b"a"] * 10**5) + b"=1"),
    "schema with long names": (
        "schema", lambda: b"\n".join(b"a." * 30 + b"x%d=1" % i for i in range(10**4)),
    ),
}  # fmt: skip
HARMLESS: Final = ("many rows", "a repeated text")
"""What is no attack when it is read with care."""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the proc file system")
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_fills_no_machine(tmp_path: Path, name: str) -> None:
    """Peak memory and time stay within bounds, and what expands beyond measure is refused."""
    target, make = BOMBS[name]
    path = tmp_path / "bomb"
    path.write_bytes(make())
    tests = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tests), *sys.path])}
    found = subprocess.run(
        [sys.executable, "-c", READ, target, str(path), str(SECONDS)],
        env=environment, check=True, capture_output=True, text=True, timeout=10 * SECONDS,
    )  # fmt: skip
    was_refused, peak = map(int, found.stdout.split())
    assert was_refused == (name not in HARMLESS)
    assert peak < MOST_MIB
