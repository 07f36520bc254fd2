"""Where a run may write, and what it says about runs that are not private."""

from __future__ import annotations

from pathlib import Path

import pytest


def outputs_of(kind: str, folder: Path) -> str:
    """A file that must not be lost, made in ``folder``."""
    name = {"input": "train.svm", "schema": "facts.toml", "foreign": "notes.txt"}[kind]
    path = folder / name
    if kind == "schema":
        path.write_text("rows = 60\n")
    elif kind == "foreign":
        path.write_text("keep me\n")
    return name


@pytest.mark.parametrize("kind", ["input", "schema", "foreign"])
def test_force_never_replaces_what_is_not_a_model(dpfit, kind: str) -> None:
    """Inputs, schema files and other people's files survive -o with --force."""
    dpfit.svm("train.svm")
    target = outputs_of(kind, dpfit.folder)
    before = (dpfit.folder / target).read_bytes()
    schema = ["--schema", target] if kind == "schema" else []
    run = dpfit.here("fit", *dpfit.budget, *schema, "--force", "-o", target, "train.svm")
    assert run.status in (2, 5)
    assert (dpfit.folder / target).read_bytes() == before
    assert not (dpfit.folder / "train.ledger.json").exists()


def test_force_never_replaces_a_ledger(dpfit) -> None:
    """Neither the run's own ledger nor any other becomes a model or a prediction."""
    dpfit.svm("train.svm")
    dpfit.here("budget", "year.json", "--cap-eps", "8", "--cap-delta", "1e-6")
    before = (dpfit.folder / "year.json").read_bytes()
    for ledger in ("year.json", "other.json"):
        run = dpfit.here(
            "fit", *dpfit.budget, "--force", "-o", "year.json", "--ledger", ledger, "train.svm"
        )
        assert run.status in (2, 5)
    dpfit.here("fit", *dpfit.budget, "train.svm")
    run = dpfit.here("predict", "train.model.json", "train.svm", "-o", "year.json", "--force")
    assert run.status == 5
    assert (dpfit.folder / "year.json").read_bytes() == before


@pytest.mark.parametrize("target", ["train.svm", "train.model.json"])
def test_predictions_never_replace_what_they_read(dpfit, target: str) -> None:
    """-o on the input or the model is a usage error, with --force too."""
    dpfit.svm("train.svm")
    dpfit.here("fit", *dpfit.budget, "train.svm")
    before = (dpfit.folder / target).read_bytes()
    run = dpfit.here("predict", "train.model.json", "train.svm", "-o", target, "--force")
    assert run.status == 2
    assert (dpfit.folder / target).read_bytes() == before


def test_named_and_numbered_columns_are_not_interchangeable(dpfit) -> None:
    """A model of numbered columns refuses a table, instead of predicting from nothing."""
    dpfit.svm("train.svm")
    dpfit.here("fit", *dpfit.budget, "train.svm")
    (dpfit.folder / "table.csv").write_text("a,b\n1,2\n")
    run = dpfit.here("predict", "train.model.json", "table.csv")
    assert run.status == 3
    assert "numbered columns" in run.err


def test_a_model_of_a_table_with_text_labels_refuses_numbered_columns(dpfit) -> None:
    """For that reason, not for labels that prediction has no option for."""
    rows = "".join(f"{label},{i}\n" for i, label in enumerate(["no", "yes"] * 20))
    (dpfit.folder / "table.csv").write_text("answer,a\n" + rows)
    dpfit.here("fit", "--eps", "1", "--delta", "1e-6", "--label", "answer", "table.csv")
    dpfit.svm("test.svm")
    run = dpfit.here("predict", "table.model.json", "test.svm")
    assert run.status == 3
    assert "columns with names" in run.err


@pytest.mark.parametrize("option", [["--seed", "1"], ["--non-private"]], ids=lambda o: o[0])
def test_a_run_that_is_not_private_says_what_it_does_to_the_ledger(dpfit, option: list) -> None:
    """It warns that the ledger counts as unbounded, and a capped ledger refuses it by name."""
    dpfit.svm("train.svm")
    budget = ["--sparsity", "3"] if option == ["--non-private"] else list(dpfit.budget)
    run = dpfit.here("fit", *budget, *option, "train.svm")
    assert "not private" in run.err
    assert "train.ledger.json" in run.err
    dpfit.here("budget", "year.json", "--cap-eps", "8", "--cap-delta", "1e-6")
    run = dpfit.here("fit", *budget, *option, "--force", "--ledger", "year.json", "train.svm")
    assert run.status == 4
    assert "not private" in run.err


def test_a_new_ledger_that_was_named_is_mentioned(dpfit) -> None:
    """A mistyped --ledger would escape the cap; the first run on a new file says that it is new."""
    dpfit.svm("train.svm")
    first = dpfit.here("fit", *dpfit.budget, *dpfit.facts, "--ledger", "y.json", "train.svm")
    assert "y.json: a new ledger, without a cap" in first.err
    again = dpfit.here(
        "fit", *dpfit.budget, *dpfit.facts, "--ledger", "y.json", "--force", "train.svm"
    )
    assert again.err == ""


def test_strict_names_every_missing_fact_before_reading(dpfit) -> None:
    """All options at once, with exit status 4, although the file does not even parse."""
    (dpfit.folder / "bad.svm").write_text("not a record\n")
    run = dpfit.here("fit", *dpfit.budget, "--strict", "bad.svm")
    assert run.status == 4
    for option in ("--n-rows", "--n-features", "--index-base", "--labels"):
        assert option in run.err


def test_the_evaluation_that_was_asked_for_is_shown_however_quiet(dpfit) -> None:
    """-q silences notes, not results; --json makes it one JSON object."""
    import json

    dpfit.svm("train.svm")
    dpfit.here("fit", *dpfit.budget, "train.svm")
    quiet = dpfit.here("predict", "-q", "--evaluate", "train.model.json", "train.svm")
    assert "not private" in quiet.err
    machine = dpfit.here("predict", "--json", "--evaluate", "train.model.json", "train.svm")
    assert json.loads(machine.err)["evaluation"]["rows"] == 60
