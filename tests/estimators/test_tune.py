"""A private search is one run: one charge, never above the budget, and it says what it found."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from dpfit import MedianRegressor, SparseClassifier, SparseRegressor, load_model
from dpfit.errors import DataError, PrivacyError
from labelled_rows import BUDGET, FACTS, labelled_rows, write_svm

X, Y = labelled_rows().X, labelled_rows().y
GRID: dict[str, Any] = {"sparsity": [2, 5], "step_size": np.array([0.1, 1.0])}
ON_THE_LINE = ("--tune", "sparsity=2,5", "--tune", "step-size=0.1,1", "--tune-runs", "3")
ON_THE_LINE += ("--eps", "4", "--delta", "0.001", "--n-rows", "80", "--n-features", "12")
ON_THE_LINE += ("--index-base", "1", "--labels=-1,1", "--algo", "dp-ight")


def unfitted(**others: Any) -> SparseClassifier:
    asked = {"algo": "dp-ight", "tune": GRID, "tune_runs": 3, "index_base": 1, "ledger": False}
    return SparseClassifier(**{**asked, **BUDGET, **FACTS, **others})


def without_origins(entry: Any) -> Any:
    """What a LIBSVM file has to be told of an array's columns is known."""
    for name in ("index_base", "features"):
        entry["public_facts"][name].pop("origin")
    return entry


@pytest.mark.filterwarnings("ignore::dpfit.PrivacyWarning")
def test_a_seeded_search_is_that_of_the_command_line(dpfit: Any) -> None:
    """Candidates, choice, score and model are the same to the bit."""
    write_svm("tiny.svm", X, Y)
    dpfit("fit", "tiny.svm", *ON_THE_LINE, "--seed", "7")
    wanted = json.loads(Path("tiny.model.json").read_text())
    fitted = unfitted(seed=7, dataset="tiny").fit(X, Y)
    found = json.loads(fitted.model_.to_bytes())
    without_origins(wanted["provenance"])
    without_origins(found["provenance"])
    assert found == wanted


def test_the_whole_search_is_one_charge_that_of_the_command_line(dpfit: Any) -> None:
    """Entry by entry; nothing that was chosen is said before the charge stands."""
    write_svm("tiny.svm", X, Y)
    dpfit("fit", "tiny.svm", *ON_THE_LINE)
    fitted = unfitted(ledger="tiny.ledger.json").fit(X, Y)
    entries = json.loads(Path("tiny.ledger.json").read_text())["entries"]
    assert [entry["kind"] for entry in entries] == ["reserved", "released"] * 2
    theirs, ours = entries[0], entries[2]
    assert ours["events"] == theirs["events"]
    assert len(ours["events"]) == 1
    assert ours["tuning"] == theirs["tuning"]
    assert "chosen" not in ours["tuning"]
    assert without_origins(ours)["public_facts"] == without_origins(theirs)["public_facts"]
    assert fitted.ledger_entry_["events"] == ours["events"]


@pytest.mark.filterwarnings("ignore::dpfit.PrivacyWarning")
def test_a_setting_has_two_spellings() -> None:
    """That of the command line is the same search."""
    wanted = unfitted(seed=7).fit(X, Y).search_
    as_there = {"sparsity": GRID["sparsity"], "step-size": GRID["step_size"]}
    assert unfitted(seed=7, tune=as_there).fit(X, Y).search_ == wanted


def test_what_it_found_and_cost_is_said() -> None:
    """The model is one of the candidates, and the charge of all runs is that of the fit."""
    fitted = unfitted().fit(X, Y)
    search = fitted.search_
    assert search.grid == {"sparsity": (2, 5), "step_size": (0.1, 1.0)}
    assert search.expected_runs == 3.0
    assert search.chosen["sparsity"] in (2, 5)
    assert search.chosen["step_size"] in (0.1, 1.0)
    assert np.count_nonzero(fitted.coef_) <= search.chosen["sparsity"]
    assert np.isfinite(search.chosen_score)
    assert 3.9 < search.epsilon == fitted.privacy_.epsilon <= 4.0
    assert search.delta == 1e-3
    assert "for the whole search" in str(search)
    assert "error rate" in str(search)
    assert unfitted(tune=None, tune_runs=None, sparsity=2).fit(X, Y).search_ is None


def test_a_run_has_more_noise_than_a_lone_fit() -> None:
    """What one may spend is less than the budget of all."""
    alone = unfitted(tune=None, tune_runs=None, sparsity=2).fit(X, Y)
    assert unfitted().fit(X, Y).search_.rho_of_run < 0.7 * alone.privacy_.rho


def test_copies_search_anew_and_saved_ones_tell(tmp_path: Path) -> None:
    """The grid is kept by clones; a fit from it draws its own noise; files carry the choice."""
    first = unfitted(tune={"step_size": [0.5, 1.0]}, algo="dp-gd")
    again = pickle.loads(pickle.dumps(clone(first)))
    one, two = first.fit(X, Y).coef_, again.fit(X, Y).coef_
    assert not np.any(one == two)
    first.save(tmp_path / "a.model.json")
    assert load_model(tmp_path / "a.model.json").search_ == first.search_
    assert pickle.loads(pickle.dumps(first)).search_ == first.search_


def test_it_works_in_a_pipeline() -> None:
    """Its fit is no search of scikit-learn."""
    assert make_pipeline(Normalizer(), unfitted()).fit(X, Y).score(X, Y) >= 0.0


def test_a_search_beyond_the_cap_costs_nothing(dpfit: Any) -> None:
    """The cap is that of the whole search."""
    dpfit("budget", "a.ledger.json", "--cap-eps", "3.5", "--cap-delta", "1e-3")
    with pytest.raises(PrivacyError):
        unfitted(ledger="a.ledger.json").fit(X, Y)
    entries = json.loads(Path("a.ledger.json").read_text())["entries"]
    assert not [entry for entry in entries if entry["kind"] == "reserved"]


@pytest.mark.parametrize(
    "estimator",
    [
        SparseRegressor(tune={"residual_clip": [0.1, 0.5]}),
        SparseRegressor(tune={"sparsity": [2, 4]}, algo="dp-iht"),
        MedianRegressor(tune={"ridge": [1.0, 4.0]}, algo="median-irls"),
        MedianRegressor(tune={"noise": ["l1", "gaussian"]}, algo="median-cd"),
    ],
    ids=["squared", "dp-iht", "median-irls", "median-cd"],
)
def test_regressors_search_too(estimator: Any) -> None:
    """Numbers and words, by the score of their loss."""
    facts = {"n_rows": 80, "n_features": 12, "target_range": (-1.0, 1.0)}
    fitted = estimator.set_params(ledger=False, **facts, **BUDGET).fit(X, Y.astype(float))
    (name, values), = estimator.tune.items()  # fmt: skip
    assert fitted.search_.chosen[name] in values
    assert 3.9 < fitted.privacy_.epsilon <= 4.0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("events", []),
        ("algorithm", []),
        ("record", {}),
        ("tuning", "all"),
        ("tuning", {"grid": {}}),
    ],
)
def test_a_file_that_is_not_ours_makes_no_promise(key: str, value: object, tmp_path: Path) -> None:
    """Neither an epsilon of nothing nor half a statement."""
    path = tmp_path / "a.model.json"
    unfitted(tune=GRID).fit(X, Y).save(path)
    document = json.loads(path.read_text())
    document["provenance"][key] = value
    path.write_text(json.dumps(document))
    with pytest.raises(DataError, match="provenance is not as this version writes it"):
        load_model(path)


def test_a_file_that_claims_more_than_its_events(tmp_path: Path) -> None:
    """Releases without noise are not private, whatever else is said."""
    path = tmp_path / "a.model.json"
    unfitted(tune=GRID).fit(X, Y).save(path)
    document = json.loads(path.read_text())
    document["provenance"]["events"] = [{"mechanism": "non-private", "label": "x", "count": 1}]
    path.write_text(json.dumps(document))
    loaded = load_model(path)
    assert not loaded.privacy_.private
    assert str(loaded.privacy_).startswith("not private")
    assert loaded.search_.epsilon is None
