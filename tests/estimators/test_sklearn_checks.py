"""The estimators keep scikit-learn's contracts, but for those listed with their reasons.

``tests/benchmarks/sklearn_releases.py`` runs the same on several releases.
"""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("sklearn")
from sklearn.utils.estimator_checks import check_estimator

from dpfit import MatrixCompleter, MedianRegressor, SparseClassifier, SparseRegressor

pytestmark = pytest.mark.filterwarnings("ignore")

WEIGHTS = (
    "a weight is a share of a public bound and the number of rows a public divisor, so a record of "
    "weight zero still counts in it and one of weight two is not two records"
)
NOISE = "two fits on the same data have different noise, on purpose"
WEIGHTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}
NOISY = {
    "check_fit_idempotent": NOISE,
    "check_supervised_y_2d": NOISE,
    "check_regressors_int": NOISE,
    "check_regressor_data_not_an_array": NOISE,
    "check_classifier_data_not_an_array": NOISE,
}

# With a budget for hardly any noise the checks of quality cannot fail by chance.
PRIVATE = {"eps": 1e5, "delta": 1e-3, "ledger": False}
WITHOUT = {
    "without noise": {"non_private": True, "ledger": False},
    "with a seed": {**PRIVATE, "seed": 1},
}
ESTIMATORS = (
    (SparseClassifier, {}),
    (SparseRegressor, {}),
    (MedianRegressor, {}),
    (MatrixCompleter, {"rating_range": (-5.0, 5.0)}),
)


def expected_failures(estimator: Any) -> dict[str, str]:
    """The checks that cannot hold, and why."""
    weighted = {} if isinstance(estimator, MatrixCompleter) else WEIGHTED
    private = not estimator.non_private and estimator.seed is None
    return {**weighted, **(NOISY if private else {})}


@pytest.mark.parametrize("how", WITHOUT)
@pytest.mark.parametrize(("kind", "needed"), ESTIMATORS)
def test_checks_of_repeatable_fits(kind: Any, needed: dict[str, Any], how: str) -> None:
    """Every check passes but those of weights, which all fail, so none is listed in vain."""
    estimator = kind(**needed, **WITHOUT[how])
    results = check_estimator(
        estimator, expected_failed_checks=expected_failures(estimator), on_skip=None
    )
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(expected_failures(estimator))


@pytest.mark.parametrize(("kind", "needed"), ESTIMATORS)
def test_checks_of_private_fits(kind: Any, needed: dict[str, Any]) -> None:
    """Every check passes but those that compare two fits."""
    estimator = kind(**needed, **PRIVATE)
    check_estimator(estimator, expected_failed_checks=expected_failures(estimator), on_skip=None)
