"""A dry run refuses what the run would refuse, and its table speaks to people."""

from __future__ import annotations

import json
from typing import Any

import pytest

UNITS = ("--unit", "qid", "--max-rows-per-unit", "4")


def units(dpfit: Any) -> str:
    """A LIBSVM file of twelve people with five rows each."""
    dpfit.svm()
    lines = dpfit.read("tiny.svm").decode().splitlines()
    owned = [line.replace(" ", f" qid:{row % 12} ", 1) for row, line in enumerate(lines)]
    (dpfit.folder / "owned.svm").write_text("\n".join(owned) + "\n", encoding="utf-8")
    return "owned.svm"


@pytest.mark.parametrize(
    "wish",
    [
        ("--ledger", "nowhere/l.json"),
        ("-o", "nowhere/m.json"),
        ("-o", "."),
        ("--ledger", "."),
        ("-o", "tiny.svm", "--force"),
        ("-o", "other.txt", "--force"),
        ("--json", "-o", "-"),
    ],
)
def test_a_dry_run_is_refused_as_the_run_is(dpfit: Any, wish: tuple[str, ...]) -> None:
    """Same status and same words, for a folder that is not there and for every wrong target."""
    (dpfit.folder / "other.txt").write_text("no model", encoding="utf-8")
    fit = ("fit", dpfit.svm(), *dpfit.budget, *dpfit.facts, *wish)
    run, dry = dpfit.here(*fit), dpfit.here(*fit, "--dry-run")
    assert run.status != 0
    assert (dry.status, dry.err) == (run.status, run.err)
    assert dpfit.names() == {"tiny.svm", "other.txt"}


@pytest.mark.parametrize("wish", [("--ledger", "nowhere/l.json"), ("-o", "nowhere/m.parquet")])
def test_so_is_one_of_a_completion(dpfit: Any, wish: tuple[str, ...]) -> None:
    """Both commands share the check."""
    text = "user,item,value\n" + "".join(f"u{i},i{i % 3},{i % 5}\n" for i in range(30))
    (dpfit.folder / "r.csv").write_text(text, encoding="utf-8")
    columns = ("--user", "user", "--item", "item", "--value", "value", "--range", "0", "4")
    ask = ("complete-matrix", *columns, "--eps", "2", "--delta", "1e-3", "r.csv", "--dry-run")
    assert dpfit.here(*ask, *wish).status == 5
    assert "protects " in dpfit.here(*ask).out


def test_a_model_that_is_there_is_told(dpfit: Any) -> None:
    """It ends no dry run, as plans are compared beside a model, but the run would want --force."""
    dpfit.fit()
    fit = ("fit", "tiny.svm", *dpfit.budget, *dpfit.facts, "--dry-run")
    told = dpfit.here(*fit)
    assert told.status == 0
    assert told.err == "dpfit: tiny.model.json: exists; the run needs --force to replace it\n"
    assert dpfit.here(*fit, "--force").err == ""
    assert dpfit.here(*fit, "-q").err == ""


def test_the_table_names_whom_it_protects(dpfit: Any) -> None:
    """A row; all rows of a unit, with their numbers; nobody, where nothing is private."""
    facts = ("--n-rows", "60", "--index-base", "1", "--labels=-1,1", "--n-features", "10")
    fit = ("fit", units(dpfit), "--eps", "4", "--delta", "0.001", *facts, "--dry-run")
    of_units = dpfit.here(*fit, *UNITS, "--n-units", "12").out
    assert "protects     all rows of one qid: 12 units, 4 rows of each at most" in of_units
    assert "share of a unit" in of_units
    assert "protects     every single row" in dpfit.here(*fit).out
    assert "share of a record" in dpfit.here(*fit).out
    assert "protects     nobody" in dpfit.here(*fit, "--seed", "1").out


@pytest.mark.parametrize("loss", ["logistic", "squared", "poisson"])
def test_the_table_shows_no_programmers_values(dpfit: Any, loss: str) -> None:
    """What is not set is left out, names are those of options, and groups have no quotes."""
    target = ("--labels", "0,1") if loss == "logistic" else ("--target-range", "0", "4")
    text = "y,a,b\n" + "".join(f"{i % 2},0.5,0.{i}\n" for i in range(60))
    (dpfit.folder / "t.csv").write_text(text, encoding="utf-8")
    budget = ("--eps", "4", "--delta", "1e-3", "--label", "y", "--loss", loss, *target)
    table = dpfit.here("fit", "t.csv", *budget, "--dry-run").out
    (settings,) = [line for line in table.splitlines() if line.startswith("  settings")]
    assert "residual-clip" in settings
    assert "budget-parts (column means 0.1" in settings
    for internal in ("None", "True", "False", "{", "'", "_"):
        assert internal not in settings


@pytest.mark.parametrize(
    ("top", "clip"), [("4", 0.25), ("5", 0.2), ("20", "max(0.05, min(2 p, 0.2))")]
)
def test_the_clip_of_counts_is_a_number_where_it_is_one(dpfit: Any, top: str, clip: object) -> None:
    """Up to five counts a clip of one count is above a fifth of the range: no mean decides."""
    text = "y,a\n" + "".join(f"{i % 3},0.{i}\n" for i in range(60))
    (dpfit.folder / "t.csv").write_text(text, encoding="utf-8")
    counts = ("--label", "y", "--loss", "poisson", "--target-range", "0", top)
    ended = dpfit.here(
        "fit", "t.csv", *counts, "--eps", "4", "--delta", "1e-3", "--dry-run", "--json"
    )
    plan = json.loads(ended.out)
    found = plan["settings"]["residual_clip"]
    assert found == clip or str(found).startswith(f"{clip},")


def test_a_search_and_units_exclude_each_other(dpfit: Any) -> None:
    """Said with what to do, before anything is read."""
    fit = ("fit", units(dpfit), "--eps", "4", "--delta", "0.001", *UNITS)
    refused = dpfit.here(*fit, "--algo", "dp-ight", "--tune", "sparsity=2,3")
    assert refused.status == 2
    assert "--tune scores rows, and so does not go with --unit" in refused.err
    assert "hint: leave --tune out" in refused.err
