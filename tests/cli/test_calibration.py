"""What the manual says of probabilities and totals of counts, which the clip makes."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

ROWS = 4000
FACTS = ("--n-rows", str(ROWS), "--non-private", "--label", "y", "--force", "-q")


def poisson(chance: random.Random, rate: float) -> int:
    """A count by Knuth's multiplication of uniform numbers."""
    count, product = 0, chance.random()
    while product > math.exp(-rate):
        count, product = count + 1, product * chance.random()
    return count


@pytest.fixture
def table(dpfit: Any) -> Any:
    """Classes with known chances and counts with known rates, by group: a column of ones each."""
    chance = random.Random(3)
    groups = ("1,0,0,0", "0,1,0,0", "0,0,1,0", "0,0,0,1")
    classes, counts = ["y,a,b,c,d"], ["y,a,b,c,d"]
    for row in range(ROWS):
        group = row % 4
        positive = chance.random() < (0.1, 0.3, 0.5, 0.8)[group]
        classes.append(f"{int(positive)},{groups[group]}")
        count = min(poisson(chance, (0.05, 0.1, 0.2, 0.4)[group]), 4)
        counts.append(f"{count},{groups[group]}")
    for name, lines in (("classes", classes), ("counts", counts)):
        Path(f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return dpfit


def predicted(dpfit: Any, name: str, *options: str) -> tuple[list[float], list[int]]:
    """What a fit without noise predicts for its own rows, and their targets."""
    fit = dpfit.here("fit", f"{name}.csv", *FACTS, "-o", "m.json", *options)
    assert fit.status == 0, fit.err
    proba = ("--proba",) if name == "classes" else ()
    printed = dpfit.here("predict", *proba, "m.json", f"{name}.csv").out
    rows = Path(f"{name}.csv").read_text(encoding="utf-8").splitlines()[1:]
    return [float(line) for line in printed.split()], [int(row[0]) for row in rows]


@pytest.mark.parametrize("algorithm", ["dp-screen", "dp-gd"])
def test_probabilities_are_frequencies_with_a_clip_of_one(table: Any, algorithm: str) -> None:
    """By default they are more extreme: the rarest class is said to be rarer than it is."""
    options = ("--labels", "0,1", "--algo", algorithm)
    ratios = []
    for clip in ((), ("--residual-clip", "1")):
        found, truth = predicted(table, "classes", *options, *clip)
        least = range(0, ROWS, 4)
        ratios.append(sum(found[i] for i in least) / sum(truth[i] for i in least))
    assert ratios[0] < 0.5
    assert 0.85 < ratios[1] < 1.15


@pytest.mark.parametrize("algorithm", ["dp-screen", "dp-gd"])
def test_totals_of_counts_are_right_with_a_clip_of_two(table: Any, algorithm: str) -> None:
    """By default the counts above one are cut, and so the total is too low."""
    options = ("--loss", "poisson", "--target-range", "0", "4", "--algo", algorithm)
    ratios = []
    for clip in ((), ("--residual-clip", "0.5")):
        found, truth = predicted(table, "counts", *options, *clip)
        ratios.append(sum(found) / sum(truth))
    assert ratios[0] < 0.96
    assert 0.98 < ratios[1] < 1.02


def test_the_evaluation_shows_the_price(table: Any) -> None:
    """The log loss of ``predict --evaluate`` is lower with the clip of one."""
    losses = []
    for clip in ((), ("--residual-clip", "1")):
        predicted(table, "classes", "--labels", "0,1", *clip)
        told = table.here("predict", "m.json", "classes.csv", "--evaluate", "--json").err
        losses.append(json.loads(told)["evaluation"]["log_loss"])
    assert losses[1] < losses[0] - 0.01
