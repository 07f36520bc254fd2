"""``dpfit fit --tune`` from the shell: one charge, one model, and refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

ASKED = ("--eps", "2", "--delta", "1e-4", "--algo", "dp-ight")
TUNE = ("--tune", "sparsity=2,5", "--tune", "step-size=0.1,1")


def test_a_search_is_one_charge_and_one_model(dpfit: Any) -> None:
    """In a process of its own; the ledger adds up to no more than was asked."""
    dpfit.svm()
    ended = dpfit("fit", "tiny.svm", *ASKED, *TUNE, *dpfit.facts, "--strict", "--json")
    assert (ended.status, ended.err) == (0, "")
    said = json.loads(ended.out)
    assert dpfit.kinds() == ["reserved", "released"]
    entry = dpfit.json("tiny.ledger.json")["entries"][0]
    (event,) = entry["events"]
    assert event["mechanism"] == "random-stopping"
    assert entry["settings"] == {}
    assert entry["tuning"]["grid"] == {"sparsity": [2, 5], "step_size": [0.1, 1.0]}
    assert "chosen" not in entry["tuning"]
    report = json.loads(dpfit("budget", "tiny.ledger.json", "--delta", "1e-4", "--json").out)
    (spent,) = report["total"]["epsilon"] if "total" in report else report["spent"]["epsilon"]
    assert 1.95 < spent["epsilon"] <= 2.0
    model = dpfit.json("tiny.model.json")
    chosen = said["tuning"]["chosen"]
    assert model["provenance"]["tuning"] == said["tuning"]
    assert model["provenance"]["events"] == entry["events"]
    assert model["provenance"]["settings"]["sparsity"] == chosen["sparsity"]
    assert len(model["coefficients"]["indices"]) <= chosen["sparsity"]
    assert dpfit("predict", "tiny.model.json", "tiny.svm").status == 0


def test_a_dry_run_shows_what_one_run_may_cost(dpfit: Any) -> None:
    """And spends nothing."""
    dpfit.svm()
    ended = dpfit("fit", "tiny.svm", *ASKED, *TUNE, *dpfit.facts, "--dry-run", "--tune-runs", "3")
    assert ended.status == 0
    assert "4 candidates" in ended.out
    assert "3 expected" in ended.out
    assert "one run" in ended.out
    assert "chosen" not in ended.out
    assert dpfit.names() == {"tiny.svm"}


def test_a_seeded_search_repeats_and_is_not_private(dpfit: Any) -> None:
    """The same bytes whatever the threads; unbounded in the ledger."""
    dpfit.svm()
    args = ("fit", "tiny.svm", *ASKED, *TUNE, *dpfit.facts, "--seed", "4", "-q")
    assert dpfit(*args, "-o", "a.model.json", "--threads", "1").status == 0
    assert dpfit(*args, "-o", "b.model.json", "--threads", "2").status == 0
    assert dpfit.read("a.model.json") == dpfit.read("b.model.json")
    assert dpfit.json("a.model.json")["private"] is False
    assert "NOT PRIVATE" in dpfit("budget", "tiny.ledger.json").out


def test_a_cap_holds_for_a_search(dpfit: Any) -> None:
    """The second search does not fit, and leaves no key and no entry."""
    dpfit.svm()
    cap = ("budget", "tiny.ledger.json", "--cap-eps", "2.5", "--cap-delta", "1e-4")
    assert dpfit.here(*cap).status == 0
    args = ("fit", "tiny.svm", *ASKED, *TUNE, *dpfit.facts, "--force", "-q")
    assert dpfit(*args).status == 0
    again = dpfit(*args)
    assert again.status == 4
    assert "the cap is 2.5" in again.err
    assert dpfit.kinds() == ["reserved", "released"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--tune", "sparsity"), "NAME=V,V"),
        (("--tune", "sparsity=2"), "2 to 200 combinations"),
        (("--tune", "sparsity=2,two"), "not a number"),
        (("--tune", "sparsity=2,2"), "twice"),
        (("--tune", "loss=squared,huber"), "cannot be searched"),
        (("--tune", "ridge=1,2"), "no setting of --algo dp-ight"),
        (("--tune", "sparsity=2,3", "--sparsity", "2"), "exclude each other"),
        (("--tune", "sparsity=2,3", "--tune", "sparsity=4,5"), "given twice"),
        (("--tune", "sparsity=0,3"), "--sparsity must be at least 1"),
        (("--tune", "sparsity=2,3", "--non-private"), "--tune needs noise"),
        (("--tune", "sparsity=2,3", "--tune-runs", "1"), "--tune-runs"),
        (("--sparsity", "2", "--tune-runs", "3"), "belongs to --tune"),
    ],
    ids=str,
)
def test_refusals_say_what_is_wrong(dpfit: Any, args: tuple[str, ...], said: str) -> None:
    """One line each, before anything is read or charged."""
    dpfit.svm()
    ended = dpfit.here("fit", "tiny.svm", *ASKED, *args)
    assert ended.status == 2
    assert said in ended.err
    assert dpfit.names() == {"tiny.svm"}


def test_a_budget_in_rho_is_refused(dpfit: Any) -> None:
    """The best of a random number of runs has none."""
    dpfit.svm()
    ended = dpfit.here("fit", "tiny.svm", "--algo", "dp-ight", "--rho", "0.1", *TUNE)
    assert ended.status == 2
    assert "--tune needs --eps and --delta" in ended.err
