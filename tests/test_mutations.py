"""Planted faults fit the source as it is, and the kept table says that each was caught."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dpfit
import mutations

FAULTS = mutations.FAULTS
ROOT = Path(dpfit.__file__).parent


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_can_be_planted(fault: mutations.Fault) -> None:
    """Its line stands exactly once, changes, leaves Python, and its tests exist."""
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    assert text.count(fault.old) == 1
    assert fault.new != fault.old
    compile(text.replace(fault.old, fault.new), fault.file, "exec")
    for name in fault.tests.split():
        if not name.startswith("-"):
            assert (mutations.ROOT / name.split("::")[0]).exists(), name


def test_faults_have_names_of_their_own() -> None:
    """The table goes by name."""
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_the_kept_table_is_of_these_faults() -> None:
    """Every fault is in it, in order, and none survived."""
    table = mutations.kept()
    assert list(table) == [fault.name for fault in FAULTS]
    assert mutations.SURVIVED not in table.values()


@pytest.mark.parametrize("program", ["mutations.py", "benchmarks/audits.py"])
def test_asked_for_help_it_starts_nothing(program: str) -> None:
    """What takes long shows its usage instead."""
    command = [sys.executable, str(Path(__file__).parent / program), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert f"usage: python tests/{program} [--" in done.stdout
    assert "|" not in done.stdout
