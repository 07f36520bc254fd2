"""Every exit status has one cause each, and one line on stderr."""

from __future__ import annotations

import json
import os
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from dpfit.cli import app, budget
from dpfit.cli.exit_status import ExitStatus
from dpfit.errors import DpfitError, NotConvergedError
from dpfit.files.lock import locked


def error_line(outcome: Any, status: int) -> str:
    """The error, which must be one line and perhaps a hint, without a traceback."""
    assert outcome.status == status
    lines = outcome.err.splitlines()
    errors = [line for line in lines if line.startswith("dpfit: error: ")]
    assert len(errors) == 1
    assert all(re.match(r"dpfit: |hint: ", line) for line in lines)
    return errors[0]


def test_the_table() -> None:
    """The statuses are those of the manual, and each error has its own."""
    assert [int(status) for status in ExitStatus] == [0, 1, 2, 3, 4, 5, 6, 7, 129, 130, 141, 143]
    assert set(app._STATUS) == set(DpfitError.__subclasses__())
    assert len(set(app._STATUS.values())) == len(app._STATUS)


def test_0_done(dpfit: Any) -> None:
    """0: done."""
    assert dpfit("budget", "--eps", "1", "--delta", "1e-6").status == 0


def test_1_internal_fault(dpfit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """1: a fault of ours shows its type, neither text nor traceback, unless --debug."""

    def broken(options: Any) -> None:
        """Break."""
        raise ZeroDivisionError("secret 7421")

    monkeypatch.setattr(budget, "BODY", broken)
    outcome = dpfit.here("budget")
    assert "ZeroDivisionError" in error_line(outcome, 1)
    assert "7421" not in outcome.err
    assert "Traceback" in dpfit.here("budget", "--debug").err


@pytest.mark.parametrize(
    "args",
    [
        ["fot"],
        ["fit"],
        ["fit", "tiny.svm"],
        ["fit", "tiny.svm", "--sparsity", "3"],
        ["fit", "tiny.svm", "--sparsity", "3", "--eps", "1"],
        ["fit", "tiny.svm", "--sparsity", "0", "--mu", "1"],
        ["fit", "tiny.svm", "--sparsity", "3", "--mu", "1", "--eps", "1", "--delta", "0.1"],
        ["fit", "tiny.svm", "--sparsity", "3", "--mu", "nan"],
        ["fit", "tiny.svm", "--sparsity", "3", "--mu", "1", "--non-private", "--seed", "1"],
        ["fit", "tiny.svm", "--sparsity", "3", "--mu", "1", "--algo", "other"],
        ["fit", "tiny.svm", "--sparsity", "3", "--mu", "1", "--index-base", "2"],
        ["fit", "tiny.svm", "--sparsity", "3", "--mu", "1", "--iterations", "0"],
        ["fit", "tiny.svm", "--sparsity", "3", "--mu", "1", "--seed", "x"],
        ["fit", "tiny.svm", "--sparsity", "3", "--mu", "1", "--timeout", "-1"],
        ["fit", "tiny.svm", "--sparsity", "3", "--mu", "1", "--timeout", "nan"],
        ["fit", "tiny.svm", "--sparsity", "3", "--mu", "1", "--timeout", "1e300"],
        ["fit", "tiny.svm", "--sparsity", "3", "--mu", "1", "--lock-timeout", "nan"],
        ["fit", "tiny.svm", "--sparsity", "3", "--mu", "1", "--row-norm", "-1"],
        ["fit", "tiny.svm", "--sparsity", "3", "--mu", "1", "--labels", "1"],
        ["fit", "tiny.svm", "--sparsity", "3", "--mu", "1", "--labels", "1,1"],
        ["fit", "tiny.svm", "--sparsity", "3", "--mu", "1", "--target-range", "1", "0"],
        ["fit", "tiny.svm", "--sparsity", "3", "--mu", "1", "--threads", "-2"],
        ["fit", "tiny.svm", "-", "--sparsity", "3", "--mu", "1"],
        ["fit", "tiny.txt", "--sparsity", "3", "--mu", "1"],
        ["predict", "tiny.svm"],
        ["budget", "--eps", "1"],
        ["budget", "--cap-eps", "1", "--cap-delta", "1e-6"],
        ["budget", "new.json", "--cap-eps", "1"],
        ["budget", "new.json", "--cap-eps", "-1", "--cap-delta", "1e-6"],
        ["budget", "--mu", "1", "--iterations", "0", "--sensitivity", "1"],
        ["budget", "--mu", "1", "--iterations", "3"],
        ["budget", "--mu", "1", "--bogus"],
        ["budget", "--mu", "1", "--sensitivity", "-1"],
        ["budget", "--mu", "1", "--sensitivity", "inf"],
        ["budget", "--mu", "1", "--records", "9", "--row-norm", "-1", "--residual-clip", "-1"],
        ["budget", "--mu", "1", "--records", "9", "--residual-clip", "nan"],
        ["budget", "--mu", "1", "--records", "1" + 360 * "0"],
        ["budget", "--mu", "1", "--sensitivity", "1", "--iterations", "1" + 360 * "0"],
        ["budget", "new.json", "--delta", "2"],
        ["budget", "new.json", "--delta", "nan"],
        ["budget", "new.json", "--delta", "1e-320"],
    ],
)
def test_2_usage(dpfit: Any, args: list[str]) -> None:
    """2: a command that makes no sense, found before anything is read or written."""
    Path("tiny.txt").touch()
    dpfit.svm()
    error_line(dpfit.here(*args), 2)
    assert dpfit.names() == {"tiny.svm", "tiny.txt"}


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (["new.json", "--cap-eps", "1", "--cap-delta", "1e-6", "--eps", "4"], "--eps"),
        (["new.json", "--cap-eps", "1", "--cap-delta", "1e-6", "--delta", "1e-6"], "--delta"),
        (["new.json", "--cap-eps", "1", "--records", "9"], "--records"),
        (["tiny.ledger.json", "--mu", "1"], "--mu"),
        (["tiny.ledger.json", "--iterations", "3"], "--iterations"),
        (["tiny.ledger.json", "--residual-clip", "1"], "--residual-clip"),
        (["--mu", "1", "--cap-delta", "1e-6"], "--cap-delta"),
        (["--mu", "1", "--row-norm", "2"], "--row-norm"),
        (["--mu", "1", "--sensitivity", "1", "--residual-clip", "2"], "--residual-clip"),
    ],
)
def test_2_budget_ignores_no_option(dpfit: Any, args: list[str], named: str) -> None:
    """2: an option that the budget's task has no use for is named, not dropped."""
    dpfit.fit()
    before = dpfit.read("tiny.ledger.json")
    assert f"{named} " in error_line(dpfit.here("budget", *args), 2)
    assert dpfit.read("tiny.ledger.json") == before
    assert "new.json" not in dpfit.names()


def test_2_budget_of_another_relation_than_the_caps(dpfit: Any) -> None:
    """2: a capped ledger is added up under its own relation; asking for the other one is told."""
    dpfit.here("budget", "new.json", "--cap-eps", "1", "--cap-delta", "1e-6")
    asked = dpfit.here("budget", "new.json", "--adjacency", "add-remove")
    assert "replace-one" in error_line(asked, 2)
    assert dpfit.here("budget", "new.json").status == 0


def test_2_suggests_the_near_verb(dpfit: Any) -> None:
    """2: a wrong verb names the near one; no verb shows the help."""
    assert "'fit'" in error_line(dpfit.here("fot"), 2)
    assert dpfit.here().status == 2


def test_3_invalid_data(dpfit: Any) -> None:
    """3: a bad record, with its file and line; nothing is spent."""
    dpfit.svm()
    with open("tiny.svm", "a", encoding="utf-8") as stream:
        stream.write("+1 oops\n")
    assert "tiny.svm:61: " in error_line(dpfit.here("fit", "tiny.svm", *dpfit.budget), 3)
    assert dpfit.names() == {"tiny.svm"}


def test_4_privacy_refusal(dpfit: Any) -> None:
    """4: a charge beyond the cap, refused before the data are read, without a new entry."""
    dpfit.here("budget", "l.json", "--cap-eps", "3.9", "--cap-delta", "0.001")
    before = dpfit.read("l.json")
    Path("bad.svm").write_text("no record\n", encoding="utf-8")
    outcome = dpfit.here("fit", "bad.svm", *dpfit.budget, "--ledger", "l.json")
    line = error_line(outcome, 4)
    assert "the cap is 3.9" in line
    assert dpfit.read("l.json") == before


@pytest.mark.parametrize(
    "args",
    [
        ["fit", "absent.svm", "--sparsity", "3", "--mu", "1"],
        ["fit", "tiny.svm", "--sparsity", "3", "--mu", "1", "-o", "no/folder"],
        ["fit", "tiny.svm", "--sparsity", "3", "--mu", "1", "-o", "."],
        ["fit", "tiny.svm", "--sparsity", "3", "--mu", "1", "--ledger", "no/folder"],
        ["fit", "tiny.svm", "--sparsity", "3", "--mu", "1", "--schema", "absent.toml"],
        ["predict", "absent.json", "tiny.svm"],
        ["budget", "absent.json"],
        ["budget", "tiny.svm", "--cap-eps", "1", "--cap-delta", "1e-6"],
        ["budget", "no/folder", "--cap-eps", "1", "--cap-delta", "1e-6"],
    ],
)
def test_5_storage(dpfit: Any, args: list[str]) -> None:
    """5: a file that cannot be read or written, named."""
    dpfit.svm()
    before = dpfit.read("tiny.svm")
    error_line(dpfit.here(*args), 5)
    assert dpfit.names() == {"tiny.svm"}
    assert dpfit.read("tiny.svm") == before


def test_5_standard_output_full(dpfit: Any) -> None:
    """5: a full disk behind stdout, from whichever command, with one line."""
    dpfit.fit()
    for args in (["predict", "tiny.model.json", "tiny.svm"], ["budget", "tiny.ledger.json"]):
        with open("/dev/full", "wb") as full:
            process = dpfit.start(*args, stdout=full)
            err = process.communicate(timeout=300)[1].decode()
        assert process.returncode == 5
        assert err == "dpfit: error: input or output failed: no space left on device\n"


def test_6_lock_busy(dpfit: Any) -> None:
    """6: another process writes the ledger, named by pid and host; nothing is spent."""
    dpfit.fit()
    before = dpfit.read("tiny.ledger.json")
    with locked("tiny.ledger.json", timeout=0):
        args = ["fit", "tiny.svm", *dpfit.budget, *dpfit.facts, "--force", "--lock-timeout"]
        line = error_line(dpfit.here(*args, "0"), 6)
        assert json.loads(dpfit.here(*args, "0", "--json").err)["exit_status"] == 6
        assert dpfit.here("budget", "tiny.ledger.json").status == 0  # reading waits for nobody
    assert f"process {os.getpid()} on {socket.gethostname()}" in line
    assert dpfit.read("tiny.ledger.json") == before
    assert dpfit.here(*args, "0").status == 0


def test_7_not_converged(dpfit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """7: kept for solvers with a tolerance; the mapping stands."""

    def stuck(options: Any) -> None:
        """Get stuck."""
        raise NotConvergedError("not converged after 5 iterations")

    monkeypatch.setattr(budget, "BODY", stuck)
    assert "not converged" in error_line(dpfit.here("budget"), 7)
