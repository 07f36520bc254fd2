"""What a newcomer to the estimators gets wrong: each error says what to do, none shows a value."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.model_selection import GridSearchCV

from dpfit import MatrixCompleter, MedianRegressor, SparseClassifier, SparseRegressor

X = np.random.default_rng(0).random((60, 3))
Y = np.arange(60) % 2
TEXTS = np.array(["Meier", "7421x"])[Y]


class Lazy:
    """As a frame of polars whose query was not run."""

    def collect(self) -> object:
        return X


def made(kind: Any, **others: Any) -> Any:
    return kind(**{"eps": 4, "delta": 1e-3, "ledger": False, **others})


MISTAKES: list[tuple[Callable[[], object], str]] = [
    (lambda: made(SparseRegressor).fit(X, TEXTS), "encode categories as numbers first"),
    (lambda: made(SparseClassifier).fit(TEXTS[:, None], Y), "encode categories as numbers first"),
    (lambda: made(MatrixCompleter).fit(TEXTS[:, None]), "rating_range"),
    (
        lambda: made(MatrixCompleter, rating_range=(1, 5)).fit(TEXTS[:, None]),
        r"make coo_array\(\(ratings, \(users, items\)\)\)",
    ),
    (lambda: made(SparseClassifier).fit(X, Y * 0), "is it the right column"),
    (
        lambda: made(SparseClassifier).fit(np.where(X > 0.9, np.nan, X), Y),
        "X contains NaN; fill with a constant .* an imputer learns is outside the guarantee$",
    ),
    (
        lambda: made(MatrixCompleter, rating_range=(0, 1)).fit(csr_array(X * np.nan)),
        "X contains NaN; leave out of the matrix what is no rating$",
    ),
    (lambda: made(SparseClassifier).fit(X, Y, unit="who"), r"such as unit=frame\['NAME'\], with"),
    (
        lambda: made(SparseRegressor).fit(X, Y, sample_weight="w"),
        r"^sample_weight must be .* such as sample_weight=frame\['NAME'\], with",
    ),
    (lambda: made(SparseClassifier).fit(X, "who"), r"^y must be an array .* y=frame\['NAME'\]"),
    (lambda: made(SparseClassifier).fit(Lazy(), Y), r"^X is lazy.* give X.collect\(\)"),
    (lambda: made(SparseClassifier).fit(X, Lazy()), r"^y is lazy.* give y.collect\(\)"),
    (
        lambda: made(SparseClassifier, max_rows_per_unit=2).fit(X, Y, unit=X[:, 0]),
        r"make texts of them: unit=frame\['NAME'\].astype\(str\)",
    ),
    (
        lambda: made(SparseClassifier, max_rows_per_unit=2).fit(X, Y, unit=[None, *TEXTS[1:]]),
        "leave out those without",
    ),
    (
        lambda: made(SparseClassifier, max_rows_per_unit=2).fit(X, Y),
        r"give fit\(..., unit=...\), or leave max_rows_per_unit out$",
    ),
    (
        lambda: made(MedianRegressor, max_rows_per_unit=2).fit(X, Y, unit=Y),
        "SparseRegressor with loss='huber' .*; without unit single rows",
    ),
    (
        lambda: made(SparseClassifier, n_features=9).fit(csr_array(X), Y),
        "it has 3 features, not the declared number; correct n_features, or leave it out$",
    ),
    (lambda: made(SparseClassifier).predict(X), "Call 'fit'"),
    (lambda: made(SparseClassifier, eps=None).fit(X, Y), "give one of eps with delta"),
    (lambda: made(SparseClassifier, eps=0).fit(X, Y), "a usual compromise"),
    (lambda: made(SparseClassifier, delta=None).fit(X, Y), "well below 1/number of rows"),
    (lambda: made(SparseClassifier, algo="dp-igth").fit(X, Y), "did you mean dp-ight"),
    (lambda: SparseClassifier(eps=4, delta=1e-3).fit(X, Y), "ledger='NAME.ledger.json'"),
    (lambda: GridSearchCV(made(SparseClassifier), {"eps": [1, 2]}).fit(X, Y), r"tune=\{"),
]


@pytest.mark.filterwarnings("ignore::dpfit.AssumedFactWarning")
@pytest.mark.parametrize(("call", "hint"), MISTAKES, ids=[hint for _, hint in MISTAKES])
def test_every_mistake(call: Callable[[], object], hint: str) -> None:
    """The error, with whatever caused it, holds the way out and no cell of the data."""
    with pytest.raises(Exception, match=hint) as caught:
        call()
    shown = "".join(traceback.format_exception(caught.value))
    assert "Meier" not in shown
    assert "7421" not in shown
