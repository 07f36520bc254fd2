"""One fit, two faces: the same bits, ledger and files from Python and from the command line."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpfit import MedianRegressor, SparseClassifier, SparseRegressor, load_model
from dpfit.errors import PrivacyError, StorageError
from labelled_rows import BUDGET, FACTS, labelled_rows, write_svm

X, Y = labelled_rows().X, labelled_rows().y
BUDGETED = ("--eps", "4", "--delta", "0.001", "--n-rows", "80", "--n-features", "12")
ON_THE_LINE = (*BUDGETED, "--index-base", "1", "--labels=-1,1")


def numbers(text: str) -> np.ndarray:
    return np.array([float(word) for word in text.split()])


@pytest.mark.filterwarnings("ignore::dpfit.PrivacyWarning")
@pytest.mark.parametrize("algo", ["dp-screen", "dp-gd", "dp-ight", "dp-iht", "two-stage"])
def test_a_seeded_fit_is_the_same_to_the_bit(dpfit: Any, algo: str) -> None:
    """Model, charge and settings depend neither on the face nor on the form of the matrix."""
    write_svm("tiny.svm", X, Y)
    told = ("--algo", algo, "--sparsity", "4", "--seed", "7")
    dpfit("fit", "tiny.svm", *ON_THE_LINE, *told)
    wanted = json.loads(Path("tiny.model.json").read_text())
    # What a LIBSVM file has to be told of an array's columns is known.
    for name in ("index_base", "features"):
        wanted["provenance"]["public_facts"][name].pop("origin")
    for rows in (X, X.toarray()):
        fitted = SparseClassifier(
            algo=algo,
            sparsity=4,
            seed=7,
            index_base=1,
            ledger="tiny.ledger.json",
            **BUDGET,
            **FACTS,
        ).fit(rows, Y)
        found = json.loads(fitted.model_.to_bytes())
        for name in ("index_base", "features"):
            found["provenance"]["public_facts"][name].pop("origin")
        assert found == wanted


def test_what_the_command_line_wrote_loads(dpfit: Any) -> None:
    """Its predictions, probabilities and scores are those of ``dpfit predict``, to the bit."""
    write_svm("tiny.svm", X, Y)
    backward = "--labels=1,-1"  # the second is the positive class there
    dpfit("fit", "tiny.svm", *BUDGETED, "--index-base", "1", backward, "--sparsity", "4")
    loaded = load_model("tiny.model.json")
    assert isinstance(loaded, SparseClassifier)
    np.testing.assert_array_equal(loaded.classes_, [-1, 1])
    said = numbers(dpfit("predict", "tiny.model.json", "tiny.svm"))
    np.testing.assert_array_equal(loaded.predict(X), said)
    margin = numbers(dpfit("predict", "--margin", "tiny.model.json", "tiny.svm"))
    np.testing.assert_array_equal(loaded.decision_function(X), -margin)
    chance = numbers(dpfit("predict", "--proba", "tiny.model.json", "tiny.svm"))
    np.testing.assert_array_equal(loaded.predict_proba(X)[:, 0], chance)
    np.testing.assert_array_equal(
        np.argmax(loaded.predict_proba(X), axis=1), (loaded.predict(X) > 0)
    )
    loaded.save("again.model.json")
    assert Path("again.model.json").read_bytes() == Path("tiny.model.json").read_bytes()


def test_what_python_saved_predicts_on_the_command_line(dpfit: Any) -> None:
    """Labels and probabilities are those of the estimator, to the bit."""
    write_svm("tiny.svm", X, Y)
    fitted = SparseClassifier(ledger=False, index_base=1, **BUDGET, **FACTS).fit(X, Y)
    fitted.save("python.model.json")
    said = numbers(dpfit("predict", "python.model.json", "tiny.svm"))
    np.testing.assert_array_equal(fitted.predict(X), said)
    chance = numbers(dpfit("predict", "--proba", "python.model.json", "tiny.svm"))
    np.testing.assert_array_equal(fitted.predict_proba(X)[:, 1], chance)
    again = load_model("python.model.json")
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert again.privacy_ == replace(fitted.privacy_, ledger=None)
    with pytest.raises(StorageError, match="force"):
        fitted.save("python.model.json")


@pytest.mark.parametrize("n_classes", [3, 5])
def test_several_classes(dpfit: Any, n_classes: int) -> None:
    """Columns of probabilities go by sorted labels on both faces."""
    labels = np.arange(80) % n_classes
    write_svm("tiny.svm", X, labels)
    facts = {"n_rows": 80, "n_features": 12, "labels": range(n_classes)}
    fitted = SparseClassifier(ledger=False, index_base=1, **BUDGET, **facts).fit(X, labels)
    assert fitted.coef_.shape == (n_classes, 12)
    assert fitted.intercept_.shape == (n_classes,)
    fitted.save("python.model.json")
    table = dpfit("predict", "--proba", "python.model.json", "tiny.svm").splitlines()
    said = np.array([[float(word) for word in line.split()] for line in table])
    np.testing.assert_array_equal(fitted.predict_proba(X), said)
    np.testing.assert_array_equal(fitted.predict(X), fitted.decision_function(X).argmax(axis=1))


@pytest.mark.parametrize(
    "estimator",
    [
        SparseRegressor(target_range=(0.0, 2.0)),
        SparseRegressor(target_range=(0.0, 2.0), loss="huber", sparsity=3),
        SparseRegressor(target_range=(0.0, 2.0), loss="poisson"),
        MedianRegressor(target_range=(0.0, 2.0), quantile=0.25),
    ],
    ids=["squared", "huber", "poisson", "quantile"],
)
def test_values(dpfit: Any, estimator: Any) -> None:
    """Values are the same on both faces, and a loaded estimator is of the same kind."""
    target = (Y + 1.0).astype(float)
    write_svm("tiny.svm", X, target)
    estimator.set_params(ledger=False, index_base=1, n_rows=80, n_features=12, **BUDGET)
    fitted = estimator.fit(X, target)
    fitted.save("python.model.json")
    said = numbers(dpfit("predict", "python.model.json", "tiny.svm"))
    np.testing.assert_array_equal(fitted.predict(X), said)
    again = load_model("python.model.json")
    assert type(again) is type(fitted)
    np.testing.assert_array_equal(again.predict(X), said)
    assert again.coef_.shape == (12,)
    if isinstance(again, MedianRegressor):
        assert again.quantile == 0.25


def test_one_ledger_for_both_faces(dpfit: Any) -> None:
    """Runs of both stand in it, and its cap, which the command line set, refuses the third."""
    write_svm("tiny.svm", X, Y)
    dpfit("budget", "tiny.ledger.json", "--cap-eps", "9", "--cap-delta", "1e-3")
    dpfit("fit", "tiny.svm", *ON_THE_LINE)
    estimator = SparseClassifier(ledger="tiny.ledger.json", **BUDGET, **FACTS)
    fitted = estimator.fit(X, Y)
    entries = json.loads(Path("tiny.ledger.json").read_text())["entries"]
    runs = [entry for entry in entries if entry["kind"] == "reserved"]
    assert len(runs) == 2
    assert fitted.ledger_entry_["run"] == runs[1]["run"]
    assert fitted.ledger_entry_["events"] == runs[1]["events"]
    assert runs[1]["dataset"] == "tiny"
    assert entries[-1]["kind"] == "released"
    before = Path("tiny.ledger.json").read_bytes()
    with pytest.raises(PrivacyError, match="budget does not allow"):
        SparseClassifier(ledger="tiny.ledger.json", eps=8.5, delta=1e-3, **FACTS).fit(X, Y)
    assert Path("tiny.ledger.json").read_bytes() == before
    report = json.loads(dpfit("budget", "tiny.ledger.json", "--json"))
    assert [entry["outcome"] for entry in report["entries"]] == ["released", "released"]


def test_the_ledger_names_the_model_that_is_saved(dpfit: Any) -> None:
    """By its hash."""
    fitted = SparseClassifier(ledger="a.ledger.json", **BUDGET, **FACTS).fit(X, Y)
    fitted.save("a.model.json")
    entry = json.loads(Path("a.ledger.json").read_text())["entries"][-1]
    assert entry["model_sha256"] == hashlib.sha256(Path("a.model.json").read_bytes()).hexdigest()


def test_columns_with_names_are_found_by_them(dpfit: Any) -> None:
    """A model of a data frame predicts from a CSV file with these columns, in any order."""
    pandas = pytest.importorskip("pandas")
    names = [f"x{j}" for j in range(12)]
    frame = pandas.DataFrame(X.toarray(), columns=names)
    target = pandas.Series(Y, name="answer")
    fitted = SparseClassifier(ledger=False, **BUDGET, **FACTS).fit(frame, target)
    fitted.save("frame.model.json")
    frame.assign(answer=target)[["answer", *reversed(names)]].to_csv("frame.csv", index=False)
    said = numbers(dpfit("predict", "frame.model.json", "frame.csv"))
    np.testing.assert_array_equal(fitted.predict(frame), said)
    again = load_model("frame.model.json")
    np.testing.assert_array_equal(again.feature_names_in_, names)
    np.testing.assert_array_equal(again.predict(frame), said)


@pytest.mark.parametrize("first", [0, 5])
def test_columns_with_numbers_are_found_by_them(dpfit: Any, first: int) -> None:
    """As by names: a header of digits is what pandas writes; a label or exposure may have one."""
    pandas = pytest.importorskip("pandas")
    whole = pandas.DataFrame(np.column_stack([X.toarray(), Y, np.ones(80)]))
    whole.columns = range(first, first + 14)
    frame, target = whole[range(first, first + 12)], whole[first + 12]
    one = SparseClassifier(ledger=False, **BUDGET, **FACTS, max_weight=1.0)
    fitted = one.fit(frame, target, sample_weight=whole[first + 13])
    assert fitted.model_.label_column == str(first + 12)
    fitted.save("frame.model.json")
    whole[whole.columns[::-1]].to_csv("frame.csv", index=False)
    said = numbers(dpfit("predict", "frame.model.json", "frame.csv"))
    np.testing.assert_array_equal(fitted.predict(frame), said)
    np.testing.assert_array_equal(load_model("frame.model.json").predict(frame), said)
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame[frame.columns[::-1]])
    assert list(frame.columns) == list(range(first, first + 12))


def told_by_a_file(fit: str) -> tuple[str, ...]:
    """Files and words of a fit whose columns the command line makes."""
    cells = "1,a,0,0.5\n2,b,1,0.5\n" * 20
    Path("t.csv").write_text("n,c,y,o\n" + cells)
    Path("t.toml").write_text('label = "y"\n[columns]\nc = { levels = ["a", "b"] }\n')
    Path("h.toml").write_text('label = "y"\n[columns]\nc = { role = "categorical" }\n')
    Path("r.toml").write_text(
        'label = "y"\n[columns]\nc = { role = "ignore" }\nn = { range = [0, 4] }\n'
    )
    Path("o.toml").write_text('label = "y"\n[columns]\nc = { role = "ignore" }\n')
    return {
        "levels": ("--schema", "t.toml"),
        "hashes": ("--schema", "h.toml", "--hash-bits", "3"),
        "ranges": ("--schema", "r.toml"),
        "offsets": ("--schema", "o.toml", "--offset", "o"),
    }[fit]


NAMES = {
    "levels": ["n", "c=a", "c=b", "o"],
    "hashes": None,
    "ranges": ["n", "o"],
    "offsets": ["n"],
}


@pytest.mark.parametrize("fit", NAMES)
def test_a_model_of_columns_of_files_can_be_looked_at(dpfit: Any, fit: str) -> None:
    """Its coefficients and promise are told; where it predicts is said when it is asked to."""
    words = told_by_a_file(fit)
    dpfit("fit", "t.csv", *words, "--eps", "4", "--delta", "1e-3", "-o", "t.model.json")
    loaded = load_model("t.model.json")
    assert loaded.coef_.shape == (1, loaded.n_features_in_)
    assert 3.9 < loaded.privacy_.epsilon <= 4.0
    names = getattr(loaded, "feature_names_in_", None)
    assert NAMES[fit] == (None if names is None else names.tolist())
    rows = np.zeros((2, loaded.n_features_in_))
    for predict in (loaded.predict, loaded.predict_proba, loaded.decision_function):
        with pytest.raises(ValueError, match="predict with `dpfit predict`"):
            predict(rows)
    with pytest.raises(ValueError, match="predict with `dpfit predict`"):
        loaded.score(rows, [0, 1])
    loaded.save("again.model.json")
    assert Path("again.model.json").read_bytes() == Path("t.model.json").read_bytes()


def test_a_file_that_is_no_model(dpfit: Any) -> None:
    """Is named."""
    Path("bad.json").write_text("{}")
    with pytest.raises(ValueError, match=r"bad\.json"):
        load_model("bad.json")


def test_a_loaded_model_does_not_know_its_ledger(dpfit: Any) -> None:
    """A model file names none; that the run was charged to none is another thing."""
    nowhere = SparseClassifier(ledger=False, **BUDGET, **FACTS).fit(X, Y)
    charged = SparseClassifier(ledger="a.ledger.json", **BUDGET, **FACTS).fit(X, Y)
    assert nowhere.privacy_.ledger is False
    assert str(nowhere.privacy_).endswith("charged to no ledger")
    assert str(charged.privacy_).endswith("charged to a.ledger.json")
    charged.save("a.model.json")
    loaded = load_model("a.model.json")
    assert loaded.privacy_.ledger is None
    assert loaded.ledger_entry_ is None
    assert "charged to" not in str(loaded.privacy_)
    assert str(loaded.privacy_).endswith("does not tell the ledger that was charged")


def test_what_is_shown_is_short() -> None:
    """The events of a charge are for computing with, and the provenance for files."""
    fitted = SparseClassifier(algo="dp-iht", sparsity=4, ledger=False, **BUDGET, **FACTS).fit(X, Y)
    assert "epsilon=" in repr(fitted.privacy_)
    assert len(repr(fitted.privacy_)) < 600
    assert len(repr(fitted.model_)) < 1200
