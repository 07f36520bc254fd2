"""The command line, in the folder of a test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def dpfit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the command line in the test's folder, which is the working directory; its stdout."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("DPFIT_")]:
        monkeypatch.delenv(name)
    code = "from dpfit.cli.app import main; main()"

    def run(*args: str) -> str:
        command = [sys.executable, "-c", code, *args]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    return run
