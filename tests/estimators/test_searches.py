"""Searches and cross-validation on private data are refused; pipelines work, and warn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, StackingClassifier
from sklearn.feature_selection import RFE, RFECV
from sklearn.impute import SimpleImputer
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from dpfit import PrivacyWarning, SparseClassifier
from dpfit.errors import PrivacyError
from labelled_rows import BUDGET, FACTS, labelled_rows

X, Y = labelled_rows().X, labelled_rows().y
GRID = {"iterations": [1, 2]}


def unfitted(**others: Any) -> SparseClassifier:
    return SparseClassifier(algo="dp-gd", **{"ledger": False, **BUDGET, **FACTS, **others})


class Whole(ClassifierMixin, BaseEstimator):
    """Is fitted as it stands, without a clone of what is inside."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def __sklearn_clone__(self) -> Any:
        return self

    def fit(self, X: Any, y: Any) -> Any:
        self.estimator.fit(X, y)
        return self


SEARCHES = {
    "GridSearchCV": lambda one: GridSearchCV(one, {}, cv=2).fit(X, Y),
    "GridSearchCV of settings": lambda one: GridSearchCV(one, GRID, cv=2).fit(X, Y),
    "RandomizedSearchCV": lambda one: RandomizedSearchCV(one, GRID, n_iter=1, cv=2).fit(X, Y),
    "in workers": lambda one: GridSearchCV(one, {}, cv=2, n_jobs=2).fit(X, Y),
    "cross_val_score": lambda one: cross_val_score(one, X, Y, cv=2),
    "cross_validate": lambda one: cross_validate(one, X, Y, cv=2),
    "cross_val_predict": lambda one: cross_val_predict(one, X, Y, cv=2),
    "learning_curve": lambda one: learning_curve(one, X, Y, cv=2),
    "a pipeline's": lambda one: cross_val_score(make_pipeline(Normalizer(), one), X, Y, cv=2),
    "stacking": lambda one: StackingClassifier([("a", one)]).fit(X, Y),
    "calibration": lambda one: CalibratedClassifierCV(one, cv=2).fit(X, Y),
    "elimination": lambda one: RFECV(one, cv=2).fit(X.toarray(), Y),
    "a chain with folds": lambda one: ClassifierChain(one, cv=2).fit(X, np.stack([Y, Y], 1)),
}


@pytest.mark.parametrize("how", SEARCHES)
def test_a_search_is_refused(how: str, tmp_path: Path) -> None:
    """At once, with what to do instead, and nothing is charged."""
    ledger = tmp_path / "a.ledger.json"
    with pytest.raises(PrivacyError, match=r"tune=\{.* searches privately"):
        SEARCHES[how](unfitted(ledger=str(ledger)))
    assert not ledger.exists()


def test_a_search_that_does_not_clone_is_refused() -> None:
    """The fit itself looks at its callers as well."""
    with pytest.raises(PrivacyError, match="refused"):
        cross_val_score(Whole(unfitted()), X, Y, cv=2, error_score="raise")


@pytest.mark.filterwarnings("ignore::dpfit.PrivacyWarning")
@pytest.mark.parametrize("others", [{"non_private": True}, {"seed": 1}, {"algo": "gd"}])
def test_without_privacy_there_is_nothing_to_refuse(others: dict[str, Any]) -> None:
    """Whoever says that the data need no protection may search."""
    one = SparseClassifier(**{"ledger": False, "algo": "dp-gd", **BUDGET, **others})
    found = GridSearchCV(one, GRID, cv=2).fit(X, Y)
    assert found.best_score_ > 0.9


def test_fits_that_are_not_refused_are_charged(tmp_path: Path) -> None:
    """Each of an ensemble, until the cap refuses: the ledger is the net under the message."""
    path = tmp_path / "a.ledger.json"
    one = unfitted(ledger=str(path), labels=(0, 1), max_weight=10.0)
    # Drawn anew, a row may be in a sample more often than the weights allow.
    BaggingClassifier(one, n_estimators=3, random_state=1).fit(X, Y)
    kinds = [entry["kind"] for entry in json.loads(path.read_text())["entries"]]
    assert kinds.count("reserved") == 3


def test_boosting_is_refused(tmp_path: Path) -> None:
    """One record changes the weights of all."""
    ledger = tmp_path / "a.ledger.json"
    with pytest.raises(PrivacyError, match="boosting"):
        AdaBoostClassifier(unfitted(ledger=str(ledger))).fit(X, Y)
    assert not ledger.exists()


@pytest.mark.filterwarnings("ignore::dpfit.AssumedFactWarning")
def test_what_has_no_folds_is_not_refused(tmp_path: Path) -> None:
    """Neighbours of what is refused: every fit of theirs is charged, and no score is looked at."""
    path = tmp_path / "a.ledger.json"
    one = unfitted(ledger=str(path), n_features=None)
    RFE(one, n_features_to_select=11).fit(X.toarray(), Y)
    ClassifierChain(one).fit(X, np.stack([Y, Y], 1))
    StackingClassifier([("a", one.fit(X, Y))], cv="prefit").fit(X, Y)
    kinds = [entry["kind"] for entry in json.loads(path.read_text())["entries"]]
    assert kinds.count("reserved") == 2 + 2 + 1


def test_a_pipeline_works() -> None:
    """Steps that learn nothing are no reason to warn."""
    pipeline = make_pipeline(Normalizer(), unfitted()).fit(X, Y)
    assert pipeline.predict(X).shape == (80,)
    assert pipeline.predict_proba(X).shape == (80, 2)
    assert pipeline[-1].privacy_.epsilon == pytest.approx(4.0, rel=1e-3)


def test_a_step_that_learns_is_warned_of() -> None:
    """Means and scales are outside the guarantee, wherever in the pipeline they are learnt."""
    pipeline = make_pipeline(Normalizer(), StandardScaler(with_mean=False), unfitted())
    with pytest.warns(PrivacyWarning, match="learns in standardscaler is outside"):
        pipeline.fit(X, Y)
    np.testing.assert_array_equal(
        pipeline.predict(X), pipeline[-1].predict(pipeline[:-1].transform(X))
    )


def test_a_step_around_is_warned_of() -> None:
    """Of a pipeline in a pipeline both are looked at, each once."""
    inside = make_pipeline(MaxAbsScaler(), unfitted())
    with pytest.warns(PrivacyWarning, match="in maxabsscaler, standardscaler is outside"):
        make_pipeline(StandardScaler(with_mean=False), inside).fit(X, Y)


class Plain(TransformerMixin, BaseEstimator):
    """A step by a user, of which nothing is known: it may learn."""

    def fit(self, X: Any, y: Any = None) -> Plain:
        return self

    def transform(self, X: Any) -> Any:
        return X


def test_a_step_of_which_nothing_is_known_is_warned_of() -> None:
    """It says nothing of being stateless."""
    with pytest.warns(PrivacyWarning, match="plain"):
        make_pipeline(Plain(), "passthrough", unfitted()).fit(X, Y)


def by_column(*steps: Any, **others: Any) -> ColumnTransformer:
    return ColumnTransformer([(f"s{k}", one, [k]) for k, one in enumerate(steps)], **others)


LEVELS = [[-0.75, 0.75]]
FIXED = SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)
TOLD = {
    "given categories": by_column(OneHotEncoder(categories=LEVELS), FunctionTransformer()),
    "given orders": by_column(OrdinalEncoder(categories=LEVELS), remainder="passthrough"),
    "a constant": FIXED,
    "a union": FeatureUnion([("a", Normalizer()), ("b", "drop"), ("c", "passthrough")]),
    "inside": make_pipeline(by_column(make_pipeline(Normalizer(), FIXED)), PolynomialFeatures()),
    "types": ColumnTransformer([("a", Normalizer(), make_column_selector())]),
}


@pytest.mark.parametrize("step", TOLD)
def test_steps_that_are_told_all_are_no_reason_to_warn(step: str) -> None:
    """Their parameters are what they would learn; any warning would be an error here."""
    frame = pytest.importorskip("pandas").DataFrame(X.toarray()) if step == "types" else X.toarray()
    make_pipeline(TOLD[step], unfitted(n_features=None)).fit(frame, Y)


LEARN = {
    "s1": by_column(OneHotEncoder(categories=LEVELS), StandardScaler()),
    "s0": by_column(OneHotEncoder()),
    "s0, x__remainder": by_column(OrdinalEncoder(), remainder=StandardScaler()),
    "s0__b": by_column(FeatureUnion([("a", Normalizer()), ("b", MaxAbsScaler())])),
    "s0__maxabsscaler": by_column(make_pipeline(Normalizer(), MaxAbsScaler())),
    "s0, x__s1": by_column(
        OneHotEncoder(categories=LEVELS, max_categories=2),
        OrdinalEncoder(categories="auto"),
    ),
    "s0, x__s1, x__s2": by_column(
        SimpleImputer(),
        SimpleImputer(strategy="constant", fill_value=0.0),
        SimpleImputer(strategy="constant", keep_empty_features=True),
    ),
}


@pytest.mark.parametrize("names", LEARN)
def test_steps_inside_that_learn_are_named(names: str) -> None:
    """Each, and no other, by the path to it."""
    pipeline = Pipeline([("x", LEARN[names]), ("y", unfitted(n_features=None))])
    with pytest.warns(PrivacyWarning, match=f"learns in x__{names} is outside"):
        pipeline.fit(X.toarray(), Y)


def test_columns_that_are_chosen_by_their_cells_are_learnt() -> None:
    """By a function of the user, which may look at anything."""
    step = ColumnTransformer([("a", Normalizer(), lambda rows: [int(rows[0, 0] > 0)])])
    with pytest.warns(PrivacyWarning, match="learns in columntransformer is outside"):
        make_pipeline(step, unfitted(n_features=None)).fit(X.toarray(), Y)
