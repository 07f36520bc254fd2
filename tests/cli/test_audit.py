"""``dpfit audit`` from the shell."""

from __future__ import annotations

import json
from typing import Any

import pytest

FAST = ("audit", "--iterations", "1", "--trials", "40", "--rows", "20")
BUDGET = ("--eps", "4", "--delta", "1e-5")


def test_claim_and_audit_stand_side_by_side(dpfit: Any) -> None:
    """On stdout the table; on stderr how many runs and how long, first."""
    outcome = dpfit.here(*FAST, *BUDGET, "--algo", "dp-gd")
    assert outcome.status == 0
    assert "claimed epsilon at delta 1e-05  " in outcome.out
    assert outcome.out.count("audited, at least") == 2
    assert outcome.err.startswith("dpfit: white-box attack, 40 runs in each of two worlds, about ")


def test_a_seed_repeats_an_audit(dpfit: Any) -> None:
    """To the bit; without one, keys are fresh."""
    asked = (*FAST, *BUDGET, "--algo", "dp-gd", "--json")
    one, two, other = (dpfit.here(*asked, *seed) for seed in (("--seed", "5"),) * 2 + ((),))
    assert one.out == two.out
    first, third = json.loads(one.out), json.loads(other.out)
    assert first["holds"] is True
    assert first["claimed"]["epsilon"] <= 4.0
    assert first["mu_estimate"] != third["mu_estimate"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("--attack", "guess"), "--attack 'guess' is not known"),
        (("--trials", "3"), "--trials must be at least"),
        (("--confidence", "1"), "--confidence must lie"),
        (("--rows", "1"), "--rows must lie"),
        (("--rank", "2"), "--rank belongs to --algo complete-matrix"),
        (("--algo", "complete-matrix", "--step-size", "1"), "--step-size is no setting of"),
        (("--algo", "gd"), "the original without noise"),
    ],
)
def test_what_makes_no_sense_is_refused(dpfit: Any, asked: tuple[str, ...], message: str) -> None:
    """Before the first run."""
    outcome = dpfit.here("audit", *BUDGET, *asked)
    assert outcome.status == 2
    assert message in outcome.err
