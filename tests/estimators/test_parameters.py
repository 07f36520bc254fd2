"""Parameters are the command line's options; errors name them as such, and cost nothing."""

from __future__ import annotations

import inspect
import json
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import dpfit
from dpfit import (
    AssumedFactWarning,
    MatrixCompleter,
    MedianRegressor,
    PrivacyWarning,
    SparseClassifier,
    SparseRegressor,
)
from dpfit.algorithms.dp_gd import DpGd
from dpfit.cli.complete_matrix import CompleteMatrixOptions
from dpfit.cli.fit import FitOptions
from dpfit.errors import PrivacyError, StorageError, UsageError
from labelled_rows import BUDGET, FACTS, labelled_rows

X, Y = labelled_rows().X, labelled_rows().y
RANGE = {"target_range": (-1.0, 1.0)}

OF_FILES = {"inputs", "output", "force", "dry_run", "config", "print_config", "timeout", "memory"}
OF_FILES |= {"cache", "cluster", "insecure_cluster", "format", "schema", "hash_bits", "label"}
OF_FILES |= {"delimiter", "header", "encoding", "duplicates", "missing", "weight", "offset"}
OF_FILES |= {"exposure", "positive_label", "user", "item", "value", "items", "unit"}
OF_FILES |= {"budget_report", "keep_cache"}
OF_TALK = {"json", "quiet", "verbose", "progress", "color", "debug"}


def options_of(kind: Any) -> set[str]:
    return set(kind.__dataclass_fields__) - OF_FILES - OF_TALK


def test_every_option_is_a_parameter() -> None:
    """But those of files and talk; columns of rows are arguments of ``fit``.

    Names, and defaults where there are any, are the same.
    """
    linear: set[str] = set()
    for kind in (SparseClassifier, SparseRegressor, MedianRegressor):
        linear |= set(kind().get_params())
    assert linear == options_of(FitOptions)
    matrix = set(MatrixCompleter().get_params()) - {"rating_range", "n_items"}
    assert matrix == options_of(CompleteMatrixOptions) - {"range", "threads"}
    defaults = SparseClassifier().get_params()
    assert (defaults["algo"], defaults["adjacency"], defaults["intercept"]) == (
        FitOptions.algo,
        FitOptions.adjacency,
        FitOptions.intercept,
    )


WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (SparseClassifier, {"ledger": None}, "no ledger was given; ledger='NAME.ledger.json'"),
    (SparseClassifier, {"eps": None, "delta": None}, "no privacy budget was given; give one of"),
    (SparseClassifier, {"ledger": True}, "no ledger was given"),
    (SparseClassifier, {"ledger": 0}, "^ledger must be the path of a file, or False"),
    (SparseClassifier, {"ledger": ""}, "^ledger must be the path of a file, or False"),
    (SparseClassifier, {"ledger": b"a.json"}, "^ledger must be the path of a file, or False"),
    (MatrixCompleter, {"ledger": "a\0"}, "^ledger must be the path of a file, or False"),
    (SparseClassifier, {"eps": -1.0}, "^eps must"),
    (SparseClassifier, {"eps": "1"}, "^eps must be a number"),
    (SparseClassifier, {"delta": None}, "delta"),
    (SparseClassifier, {"sparsity": 0}, "^sparsity must be at least 1"),
    (SparseClassifier, {"sparsity": 2.5}, "^sparsity must be a whole number"),
    (SparseClassifier, {"sparsity": True}, "^sparsity must be a whole number"),
    (SparseClassifier, {"intercept": "no"}, "^intercept must be True or False"),
    (SparseClassifier, {"algo": "dp-ight"}, "^algo='dp-ight' needs sparsity"),
    (SparseClassifier, {"algo": "magic"}, "^algo 'magic' is not known"),
    (SparseClassifier, {"algo": "dp-gd", "l1_radius": 1.0}, "^l1_radius is no setting of algo="),
    (SparseClassifier, {"loss": "squared"}, "^loss 'squared' is not known"),
    (SparseClassifier, {"adjacency": "near"}, "^adjacency 'near' is not known"),
    (SparseClassifier, {"labels": [1]}, "label set must be two or more"),
    (SparseClassifier, {"labels": [1, 1]}, "label set must be two or more"),
    (SparseClassifier, {"labels": [1, 2]}, "label that is not among the declared ones"),
    (SparseClassifier, {"n_rows": 79}, "correct n_rows, or use adjacency='add-remove'"),
    (SparseClassifier, {"n_features": 11}, "12 features, not the declared number"),
    (SparseClassifier, {"index_base": 2}, "^index_base must be 0 or 1"),
    (SparseClassifier, {"dense": True, "sparsity": 3}, "^dense and sparsity exclude each other"),
    (SparseClassifier, {"lock_timeout": -1.0}, "^lock_timeout must lie between"),
    (SparseClassifier, {"tune": ["sparsity=1,2"]}, "^tune must be a dict of lists; such as tune="),
    (SparseClassifier, {"tune": {"sparsity": "1,2"}}, "^tune must be a dict of lists"),
    (SparseClassifier, {"tune": {"sparsity": 1}}, "^tune must be a dict of lists"),
    (SparseClassifier, {"tune": {}}, "^tune needs 2 to 200 combinations"),
    (SparseClassifier, {"tune": {"sparsity": [1, 2.5]}}, "^tune sparsity has a value that is not"),
    (SparseClassifier, {"tune": {"sparsity": [1, True]}}, "^tune sparsity has a value that is not"),
    (SparseClassifier, {"tune": {"eps": [1, 2]}}, "known are sparsity, iterations, residual_clip$"),
    (
        SparseClassifier,
        {"tune": {"eps": [1, 2]}, "algo": "dp-gd"},
        "^tune eps: cannot .* known are sparsity, iterations, step_size, residual_clip$",
    ),
    (
        SparseClassifier,
        {"tune": {"max_iter": [1, 2]}, "algo": "magic"},
        "^tune max_iter: cannot .* known are .*ridge",
    ),
    (MedianRegressor, {"tune": {"eps": [1, 2]}}, "known are sparsity, smoothing, ridge, noise$"),
    (
        SparseClassifier,
        {"tune": {"step-size": [1, 2], "step_size": [3, 4]}, "algo": "dp-gd"},
        "^tune names step_size twice",
    ),
    (SparseClassifier, {"tune": {"step_size": [1, 2]}}, "^step_size is no setting of algo="),
    (SparseClassifier, {"tune": {"sparsity": [1, 2]}, "sparsity": 3}, "and sparsity exclude each"),
    (SparseClassifier, {"tune": {"sparsity": [1, 2]}, "dense": True}, "^dense and sparsity excl"),
    (SparseClassifier, {"tune": {"sparsity": [1, 2]}, "tune_runs": 1.0}, "^tune_runs must lie"),
    (SparseClassifier, {"tune": {"sparsity": [1, 2]}, "non_private": True}, "^tune needs noise"),
    (SparseClassifier, {"tune_runs": 4.0}, "^tune_runs belongs to tune"),
    (MedianRegressor, {"tune": {"smoothing": [1, 2]}}, "choose algo='median-irls' or median-cd"),
    (SparseClassifier, {"max_rows_per_unit": 2}, "^max_rows_per_unit needs unit, an argument of"),
    (SparseClassifier, {"n_units": 2}, "^n_units needs unit, an argument of fit"),
    (SparseRegressor, {"max_exposure": 2.0}, "^max_exposure needs offset or exposure"),
    (SparseRegressor, {"target_range": 3}, "^target_range must be a pair of numbers"),
    (SparseRegressor, {"target_range": (2, 1)}, "^target_range needs two finite numbers"),
    (SparseRegressor, {"huber_threshold": 1.0}, "^huber_threshold belongs to loss='huber'"),
    (MedianRegressor, {"quantile": 50.0}, "^quantile must lie strictly.*did you mean 0.5"),
    (MedianRegressor, {"algo": "dp-gd"}, "^algo='dp-gd' does not fit loss='absolute'"),
    (MedianRegressor, {"eps": None, "mu": 1.0, "delta": None}, "takes no budget in mu"),
    (MatrixCompleter, {"rating_range": None}, "such as rating_range="),
    (MatrixCompleter, {"rating_range": (5, 1)}, "^rating_range needs two finite numbers"),
    (MatrixCompleter, {"noise": "pink"}, "^noise 'pink' is not known"),
    (MatrixCompleter, {"n_items": 11}, "does not have n_items columns"),
    (MatrixCompleter, {"n_users": 79}, "more users than declared by n_users"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::dpfit.PrivacyWarning")
@pytest.mark.parametrize(("kind", "wrong", "said"), WRONG)
def test_what_is_wrong_is_said_in_parameters(
    kind: Any, wrong: dict[str, Any], said: str, tmp_path: Path
) -> None:
    """One line, a ValueError, no option of the command line, and nothing charged."""
    ledger = tmp_path / "a.ledger.json"
    right = {**BUDGET, "ledger": str(ledger)}
    if kind is MatrixCompleter:
        right["rating_range"] = (-1, 1)
    with pytest.raises(ValueError, match=said) as caught:
        kind(**{**right, **wrong}).fit(X, Y)
    text = str(caught.value)
    assert "--" not in text
    assert "\n" not in text
    assert not ledger.exists()


def test_assumed_facts_are_warned_of(tmp_path: Path) -> None:
    """With their values, where the fit is called; declared ones are not."""
    said = r"n_rows=80, n_features=12, loss='logistic', labels=\[-1.0, 1.0\]; declare"
    with pytest.warns(AssumedFactWarning, match=said) as caught:
        fitted = SparseClassifier(ledger=False, **BUDGET).fit(X, Y)
    assert [warning.filename for warning in caught] == [__file__]
    assert set(fitted.privacy_.assumed) == {"rows", "features", "loss", "labels"}
    assert "assumed to be public: rows" in str(fitted.privacy_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparseClassifier(ledger=False, **BUDGET, **FACTS).fit(X, Y)
        # A table's width is that of every record, so it needs no declaration.
        facts = {name: value for name, value in FACTS.items() if name != "n_features"}
        SparseClassifier(ledger=False, **BUDGET, **facts).fit(X.toarray(), Y)


def test_a_run_that_makes_a_ledger_unbounded_says_so(tmp_path: Path) -> None:
    """As the command line does; without a ledger nothing is lost."""
    path = tmp_path / "a.ledger.json"
    for others in ({"seed": 1}, {"non_private": True}, {"algo": "gd"}):
        one = SparseClassifier(**BUDGET, **FACTS, **others)
        with pytest.warns(PrivacyWarning, match=f"private, and {path} counts as unbounded from"):
            one.set_params(ledger=path).fit(X, Y)
        with pytest.warns(PrivacyWarning, match="the model is not private$"):
            one.set_params(ledger=False).fit(X, Y)
    completer = MatrixCompleter(ledger=path, rating_range=(-1, 1), seed=1, **BUDGET)
    with pytest.warns(PrivacyWarning, match=f"{path} counts as unbounded"):
        completer.fit(X)


def test_a_warning_that_is_an_error_costs_nothing(tmp_path: Path) -> None:
    """It comes before the charge."""
    ledger = tmp_path / "a.ledger.json"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(AssumedFactWarning):
            SparseClassifier(ledger=str(ledger), **BUDGET).fit(X, Y)
    assert not ledger.exists()


@pytest.mark.parametrize(
    ("estimator", "missing"),
    [
        (SparseClassifier(), "n_rows, n_features, labels"),
        (SparseRegressor(n_rows=80), "n_features, target_range"),
        (MedianRegressor(n_features=12), "n_rows, target_range"),
        (MatrixCompleter(rating_range=(-1, 1)), "n_users, n_items"),
    ],
)
def test_strict_refuses_assumptions(estimator: Any, missing: str, tmp_path: Path) -> None:
    """All of them at once, before anything is charged."""
    ledger = tmp_path / "a.ledger.json"
    estimator.set_params(strict=True, ledger=ledger, **BUDGET)
    with pytest.raises(PrivacyError, match=f"strict: not declared: {missing}$"):
        estimator.fit(X, Y)
    assert not ledger.exists()


def test_a_large_delta_is_warned_of() -> None:
    """One above 1/rows promises nothing to some row."""
    with pytest.warns(PrivacyWarning, match="above 1/rows"):
        SparseClassifier(ledger=False, eps=1.0, delta=0.1, **FACTS).fit(X, Y)


def test_what_was_promised(tmp_path: Path) -> None:
    """The statement says what was asked for, and holds at other deltas too."""
    ledger = tmp_path / "a.ledger.json"
    said = SparseClassifier(ledger=ledger, **BUDGET, **FACTS).fit(X, Y).privacy_
    assert said.private
    assert 3.99 < said.epsilon <= 4.0
    assert said.delta == 1e-3
    assert said.epsilon_at(1e-3) == said.epsilon < said.epsilon_at(1e-6)
    assert (said.adjacency, said.record, said.assumed) == ("replace-one", "row", {})
    assert said.declared["labels"] == [-1.0, 1.0]
    assert str(ledger) in str(said)
    pure = MedianRegressor(ledger=False, eps=2.0, n_rows=80, n_features=12, **RANGE)
    assert pure.fit(X, Y).privacy_.epsilon_at(0.0) <= 2.0
    nowhere = SparseClassifier(ledger=False, **BUDGET, **FACTS).fit(X, Y)
    assert nowhere.ledger_entry_ is None
    assert "no ledger" in str(nowhere.privacy_)


def test_a_ledger_that_cannot_be_written_is_found_first(tmp_path: Path) -> None:
    """Before the rows are looked at."""
    with pytest.raises(StorageError):
        SparseClassifier(ledger=tmp_path / "none" / "a.json", **BUDGET, **FACTS).fit(None, None)


def test_a_run_that_fails_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its charge stays, and the ledger says that it was aborted."""

    def broken(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(DpGd, "run", broken)
    ledger = tmp_path / "a.ledger.json"
    with pytest.raises(MemoryError):
        SparseClassifier(algo="dp-gd", ledger=ledger, **BUDGET, **FACTS).fit(X, Y)
    entries = json.loads(ledger.read_text())["entries"]
    assert [entry["kind"] for entry in entries] == ["reserved", "aborted"]


@pytest.mark.filterwarnings("ignore::dpfit.AssumedFactWarning")
@pytest.mark.parametrize("kind", [SparseClassifier, SparseRegressor, MatrixCompleter])
def test_a_fit_that_fails_changes_nothing(kind: Any) -> None:
    """An estimator is that of its last fit, whole, not its numbers with the shape of another."""
    needed = {"rating_range": (0, 1)} if kind is MatrixCompleter else {}
    if kind is SparseRegressor:
        needed = {"target_range": (0, 1)}
    fitted = kind(ledger=False, **BUDGET, **needed).fit(X.toarray(), Y)
    before = vars(fitted).copy()
    fitted.set_params(n_users=3) if kind is MatrixCompleter else fitted.set_params(n_rows=79)
    with pytest.raises(ValueError, match="declared"):
        fitted.fit(X.toarray()[:, :5], Y)
    after = vars(fitted)
    assert {name for name in before if after[name] is not before[name]} <= {"n_rows", "n_users"}
    assert after.keys() == before.keys()


def test_errors_can_be_sent_from_workers() -> None:
    """They are pickled there."""
    with pytest.raises(UsageError) as caught:
        SparseClassifier().fit(X, Y)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


def test_nothing_is_known_before_a_fit() -> None:
    """Neither coefficients nor predictions."""
    for kind in (SparseClassifier, SparseRegressor, MedianRegressor):
        assert not hasattr(kind(), "coef_")
        assert not hasattr(kind(), "intercept_")
        with pytest.raises(NotFittedError):
            kind().predict(X)
        with pytest.raises(NotFittedError):
            kind().save("nowhere")


def test_coefficients_are_those_of_mapped_rows() -> None:
    """With ``dp-gd``, which has no centring, the score is their product with rows of length one."""
    fitted = SparseClassifier(algo="dp-gd", ledger=False, **BUDGET, **FACTS).fit(X, Y)
    rows = X.toarray() / np.linalg.norm(X.toarray(), axis=1, keepdims=True)
    wanted = (rows @ fitted.coef_.T + fitted.intercept_).ravel()
    np.testing.assert_allclose(fitted.decision_function(X), wanted, rtol=1e-12, atol=1e-12)
    assert fitted.coef_.shape == (1, 12)
    assert fitted.intercept_.shape == (1,)


def test_names_come_late() -> None:
    """``import dpfit`` needs neither numpy nor scikit-learn; its public names are all there."""
    code = (
        "import sys, dpfit; dir(dpfit); dpfit.__version__\n"
        "assert not {'numpy', 'sklearn', 'scipy'} & set(sys.modules)\n"
        "dpfit.SparseClassifier; assert 'sklearn' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    for name in dpfit.__all__:
        assert getattr(dpfit, name) is not None
        assert name in dir(dpfit)
    with pytest.raises(AttributeError):
        _ = dpfit.nothing


def test_without_scikit_learn() -> None:
    """The names say what to install."""
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import dpfit\n"
        "try: dpfit.SparseClassifier\n"
        "except ImportError as error: assert 'dpfit[sklearn]' in str(error)\n"
        "else: raise AssertionError"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_parameter_is_documented() -> None:
    """In the class that has it, or in the one that it refers to."""
    text = str(inspect.getdoc(SparseClassifier))
    for name in SparseClassifier().get_params():
        assert name in text
    for kind in (SparseRegressor, MedianRegressor, MatrixCompleter):
        for name in set(kind().get_params()) - set(SparseClassifier().get_params()):
            assert name in str(inspect.getdoc(kind)), name
