"""What a newcomer to the estimators gets wrong: each error says what to do, none shows a value."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from dpfit import MatrixCompleter, SparseClassifier, SparseRegressor

X = np.random.default_rng(0).random((60, 3))
Y = np.arange(60) % 2
TEXTS = np.array(["Meier", "7421x"])[Y]


def made(kind: Any, **others: Any) -> Any:
    return kind(**{"eps": 4, "delta": 1e-3, "ledger": False, **others})


MISTAKES: list[tuple[Callable[[], object], str]] = [
    (lambda: made(SparseRegressor).fit(X, TEXTS), "encode categories as numbers first"),
    (lambda: made(SparseClassifier).fit(TEXTS[:, None], Y), "encode categories as numbers first"),
    (lambda: made(MatrixCompleter).fit(TEXTS[:, None]), "encode categories|rating_range"),
    (lambda: made(SparseClassifier).fit(X, Y * 0), "is it the right column"),
    (lambda: made(SparseClassifier).fit(np.where(X > 0.9, np.nan, X), Y), "contains NaN"),
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
