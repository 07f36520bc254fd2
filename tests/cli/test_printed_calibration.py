"""``--calibration``: what is told, charged and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

COMMON = ("fit", "tiny.svm", "--n-rows", "60", "--n-features", "10", "--index-base", "1")
ASKED = (*COMMON, "--labels=-1,1", "--eps", "4", "--delta", "0.01")
IGHT = (*ASKED, "--algo", "dp-ight", "--sparsity", "3", "--calibration", "paper")
TOLD = (
    "dpfit: warning: calibration as printed: really epsilon 4.299 at delta 0.01 under "
    "replace-one, not 4\n"
)


def test_a_printed_run_says_what_it_really_costs(dpfit: Any) -> None:
    """One line on stderr; the ledger has the request, the calibration and the real events."""
    dpfit.svm()
    outcome = dpfit.here(*IGHT, "--json")
    assert (outcome.status, outcome.err) == (0, TOLD)
    shown = json.loads(outcome.out)
    assert shown["calibration"] == "paper"
    assert shown["budget"] == {"epsilon": 4.0, "delta": 0.01}
    assert shown["charge"]["epsilon"] == pytest.approx(4.30, abs=0.005)
    entry = dpfit.json("tiny.ledger.json")["entries"][0]
    assert (entry["calibration"], entry["events"]) == ("paper", shown["events"])
    report = dpfit.here("budget", "tiny.ledger.json", "--delta", "0.01", "--json")
    spent = json.loads(report.out)["total"]["epsilon"]
    assert spent == [{"delta": 0.01, "epsilon": shown["charge"]["epsilon"]}]


def test_a_dry_run_shows_the_calibration(dpfit: Any) -> None:
    """Printed or exact; only the printed one warns."""
    dpfit.svm()
    for more, name in (((), "paper"), (("--calibration", "exact"), "exact")):
        outcome = dpfit.here(*IGHT, *more, "--dry-run")
        assert outcome.err == (TOLD if name == "paper" else "")
        assert f"calibration  {name}\n" in outcome.out


@pytest.mark.parametrize(
    "of",
    [
        ("dp-ight", "--sparsity", "3", "--calibration", "paper-corollary"),
        ("dp-gd", "--calibration", "paper"),
        ("dp-iht", "--sparsity", "3", "--calibration", "paper"),
        ("dp-fw", "--calibration", "paper"),
    ],
)
@pytest.mark.parametrize("more", [(), ("--seed", "1")])
def test_every_printed_noise_fits(dpfit: Any, of: tuple[str, ...], more: tuple[str, ...]) -> None:
    """A model comes out, and the warning goes to a seeded run too."""
    dpfit.svm()
    outcome = dpfit.here(*ASKED, "--algo", *of, "--iterations", "3", *more)
    assert outcome.status == 0
    assert outcome.err.count("calibration as printed: really epsilon ") == 1
    assert dpfit.json("tiny.model.json")["private"] is not bool(more)


def test_the_cap_reckons_with_the_real_cost(dpfit: Any) -> None:
    """4: refused before the data are read where T is known or no matter, else before the charge."""
    dpfit.here("budget", "l.json", "--cap-eps", "4.2", "--cap-delta", "0.01")
    before = dpfit.read("l.json")
    Path("tiny.svm").write_text("no record\n", encoding="utf-8")
    to_cap = ("--ledger", "l.json")
    frank_wolfe = (*ASKED, "--algo", "dp-fw", "--calibration", "paper", *to_cap)
    for args in ((*IGHT, *to_cap), (*frank_wolfe, "--iterations", "9")):
        assert dpfit.here(*args).status == 4
    assert dpfit.here(*frank_wolfe).status == 3  # the data are read first
    dpfit.svm()
    outcome = dpfit.here(*frank_wolfe)
    assert outcome.status == 4
    assert "the cap is 4.2" in outcome.err
    assert dpfit.read("l.json") == before


@pytest.mark.parametrize(
    "args",
    [
        (*ASKED, "--calibration", "paper"),  # auto: dp-screen
        (*ASKED, "--algo", "dp-gd", "--calibration", "paper-corollary"),
        (*ASKED, "--algo", "dp-gd", "--calibration", "printed"),
        (*ASKED, "--algo", "dp-gd", "--calibration", "paper", "--non-private"),
        (*COMMON, "--labels=-1,1", "--algo", "dp-gd", "--calibration", "paper", "--rho", "1"),
        (*IGHT, "--algo", "dp-iht", "--selection", "one-shot"),
    ],
)
def test_what_no_paper_prints_is_a_usage_error(dpfit: Any, args: tuple[str, ...]) -> None:
    """2: before anything is read or written."""
    dpfit.svm()
    outcome = dpfit.here(*args)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("dpfit: error: ")
    assert dpfit.names() == {"tiny.svm"}
