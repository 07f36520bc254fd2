"""The algorithms as scikit-learn estimators."""

from __future__ import annotations

from dpfit.estimators.classifier import SparseClassifier
from dpfit.estimators.matrix_completer import MatrixCompleter
from dpfit.estimators.median_regressor import MedianRegressor
from dpfit.estimators.model_loading import load_model
from dpfit.estimators.privacy_statement import PrivacyStatement
from dpfit.estimators.privacy_warnings import AssumedFactWarning, PrivacyWarning
from dpfit.estimators.private_search import SearchStatement
from dpfit.estimators.regressor import SparseRegressor

__all__ = [
    "AssumedFactWarning",
    "MatrixCompleter",
    "MedianRegressor",
    "PrivacyStatement",
    "PrivacyWarning",
    "SearchStatement",
    "SparseClassifier",
    "SparseRegressor",
    "load_model",
]
