"""The benchmarks say how they are run, and README lists them all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = [
    path
    for path in sorted((ROOT / "tests" / "benchmarks").glob("*.py"))
    if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
]


def test_readme_lists_every_benchmark() -> None:
    """By name, in the section of development."""
    _, _, text = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## Development\n")
    assert [path.name for path in SCRIPTS if f"`{path.name}`" not in text] == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_help_shows_the_usage(script: Path, tmp_path: Path) -> None:
    """And runs nothing."""
    command = [sys.executable, str(script), "--help"]
    ended = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "usage: " in ended.stdout.lower()
    assert list(tmp_path.iterdir()) == []
