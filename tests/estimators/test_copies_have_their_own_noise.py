"""However an estimator is copied, every fit has noise of its own and is charged."""

from __future__ import annotations

import copy
import json
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from dpfit import MatrixCompleter, SparseClassifier
from labelled_rows import BUDGET, FACTS, fitted_coefficients, labelled_rows

X, Y = labelled_rows().X, labelled_rows().y


def unfitted(**others: Any) -> SparseClassifier:
    # dp-gd adds noise to every coefficient, so equal models would mean equal noise.
    return SparseClassifier(algo="dp-gd", **{"ledger": False, **BUDGET, **FACTS, **others})


COPIES: dict[str, Callable[[Any], Any]] = {
    "the same": lambda estimator: estimator,
    "clone": clone,
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "pickle": lambda estimator: pickle.loads(pickle.dumps(estimator)),
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("before", ["unfitted", "fitted"])
def test_a_copy_draws_anew(how: str, before: str) -> None:
    """No two of the coefficients of two fits are equal: with the same key all would be."""
    first = unfitted()
    if before == "fitted":
        first.fit(X, Y)
    second = COPIES[how](first)
    one = first.fit(X, Y).coef_.copy()
    two = second.fit(X, Y).coef_
    assert not np.any(one == two)


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_processes_draw_anew(method: str) -> None:
    """One pickled estimator, fitted here and in two processes, forked after a fit here or not."""
    here = unfitted().fit(X, Y).coef_.tobytes()
    pickled = pickle.dumps(unfitted())
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        found = list(pool.map(fitted_coefficients, [pickled] * 4))
    assert len({here, *found}) == 5


def test_threads_draw_anew() -> None:
    """So do fits that run at a time."""
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(fitted_coefficients, [pickle.dumps(unfitted())] * 8))
    assert len(set(found)) == 8


def test_joblib_charges_every_fit(tmp_path: Path) -> None:
    """Workers share the ledger: as many charges as fits, and no noise twice."""
    joblib = pytest.importorskip("joblib")
    path = tmp_path / "shared.ledger.json"
    pickled = pickle.dumps(unfitted(ledger=str(path)))
    jobs = (joblib.delayed(fitted_coefficients)(pickled) for _ in range(4))
    found = joblib.Parallel(n_jobs=2)(jobs)
    assert len(set(found)) == 4
    kinds = [entry["kind"] for entry in json.loads(path.read_text())["entries"]]
    assert kinds.count("reserved") == kinds.count("released") == 4


def test_a_pickle_holds_what_was_released() -> None:
    """It predicts the same, and neither key nor records are in it."""
    fitted = unfitted().fit(X, Y)
    pickled = pickle.dumps(fitted)
    again = pickle.loads(pickled)
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert again.privacy_ == fitted.privacy_
    assert b"RunKey" not in pickled
    assert b"Curator" not in pickled
    assert set(vars(fitted)) - set(fitted.get_params()) == {
        *("model_", "n_features_in_", "privacy_", "classes_", "ledger_entry_")
    }


def test_the_same_seed_is_the_same_noise() -> None:
    """On purpose, and only then: such a run is marked and warned of."""
    with pytest.warns(UserWarning, match="not private"):
        one = unfitted(seed=3).fit(X, Y)
    with pytest.warns(UserWarning, match="not private"):
        two = clone(one).fit(X, Y)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert not one.privacy_.private
    assert one.privacy_.epsilon_at(1e-3) == float("inf")


def test_completions_draw_anew() -> None:
    """Copies of a completer too: with the same key all biases would be equal.

    Their noise is so coarse that one in a hundred million may be.
    """
    first = MatrixCompleter(
        rating_range=(-1, 1), rank=0, ledger=False, n_users=80, n_items=12, **BUDGET
    )
    one, two = first.fit(X).model_, clone(first).fit(X).model_
    assert np.count_nonzero(one.bias == two.bias) <= 1
