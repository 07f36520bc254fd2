"""The estimators whose contracts are checked, and which checks cannot hold, with the reasons."""

from __future__ import annotations

from typing import Any

from dpfit import MatrixCompleter, MedianRegressor, SparseClassifier, SparseRegressor

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
_BUDGET = {"eps": 1e5, "delta": 1e-3, "ledger": False}
FITS: dict[str, dict[str, Any]] = {
    "private": _BUDGET,
    "with a seed": {**_BUDGET, "seed": 1},
    "without noise": {"non_private": True, "ledger": False},
}
REPEATABLE = ("with a seed", "without noise")
KINDS = (SparseClassifier, SparseRegressor, MedianRegressor, MatrixCompleter)


def estimator(kind: Any, fit: str) -> Any:
    """One of the kinds, whose fits are private, or repeatable in one of two ways."""
    needed = {"rating_range": (-5.0, 5.0)} if kind is MatrixCompleter else {}
    return kind(**needed, **FITS[fit])


def expected_failures(kind: Any, fit: str) -> dict[str, str]:
    """The checks that cannot hold, and why."""
    weighted = {} if kind is MatrixCompleter else WEIGHTED
    return {**weighted, **({} if fit in REPEATABLE else NOISY)}
