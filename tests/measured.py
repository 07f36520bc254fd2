"""``dpfit`` in a process that tells its own peak memory, as the operating system counts it.

usage: python tests/measured.py ARGUMENTS; the last line of stderr is VmHWM in KiB. Unlike the peak
of getrusage it does not include that of the process that forked this one.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ITSELF = (sys.executable, __file__)


@dataclass(frozen=True)
class Measured:
    """How a run ended, in MiB and seconds."""

    status: int
    peak: int
    seconds: float
    told: list[str]


def measured(*args: str, folder: Path) -> Measured:
    """Run ``dpfit`` in a folder and wait for it."""
    begun = time.perf_counter()
    ended = subprocess.run(
        [*ITSELF, *args],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    *told, peak = ended.stderr.splitlines()
    return Measured(ended.returncode, int(peak) >> 10, time.perf_counter() - begun, told)


if __name__ == "__main__":
    from dpfit.cli.app import main

    try:
        main()
    finally:
        peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        assert peak is not None
        sys.stderr.write(f"{peak[1]}\n")
