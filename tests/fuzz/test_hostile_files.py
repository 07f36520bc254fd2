"""Files changed at random: every reader ends with rows or with a documented error, and soon.

Each example takes a seed of a target and changes it by a few edits: bytes flipped, cut, repeated or
put in, among them what formats choke on. ``DPFIT_FUZZ`` sets the examples of each test (default
150) and makes them new ones; the inputs tried are printed with ``-s``. `coverage_guided.py` goes
deeper; what either found is kept under ``findings/``, by target, and read again here.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.targets import TARGETS, TOKENS, refused

EXAMPLES: Final = int(os.environ.get("DPFIT_FUZZ", "150"))
SECONDS: Final = 10.0  # of the processor, whatever else the machine does
FINDINGS: Final = sorted(Path(__file__).with_name("findings").glob("*/*"))
TRIED: Final = Counter[str]()

EDITS = st.lists(
    st.tuples(
        st.integers(0, 1 << 16), st.integers(0, 30), st.sampled_from(TOKENS) | st.binary(max_size=4)
    ),
    max_size=4,
)


def edited(data: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    for at, removed, added in edits:
        at %= len(data) + 1
        data = data[:at] + added + data[at + removed :]
    return data


@pytest.mark.parametrize("name", TARGETS)
def test_only_documented_errors(name: str) -> None:
    """A changed file is read, or refused with an error of one line."""
    target = TARGETS[name]
    seeds = target.seeds()
    refused(target.read, seeds[0])  # what it makes once is no part of an example's time

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
    @given(st.sampled_from(seeds), EDITS)
    def tried(data: bytes, edits: list[tuple[int, int, bytes]]) -> None:
        begun = time.process_time()
        TRIED[name] += 1
        TRIED[f"{name}, refused"] += refused(target.read, edited(data, edits))
        assert time.process_time() - begun < SECONDS

    tried()
    print(f"{name}: {TRIED[name]} inputs, {TRIED[f'{name}, refused']} refused")


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_of_their_format(name: str) -> None:
    """At least one seed of each target is accepted, so that fuzzing starts inside the format."""
    target = TARGETS[name]
    assert not all(refused(target.read, seed) for seed in target.seeds())


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_findings_stay_fixed(path: Path) -> None:
    """What once broke a reader is read or refused."""
    refused(TARGETS[path.parent.name].read, path.read_bytes())
