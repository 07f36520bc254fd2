"""From a model file to the fitted estimator that would have written it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from dpfit.data.features import FeatureMap
from dpfit.errors import DataError
from dpfit.estimators.classifier import SparseClassifier
from dpfit.estimators.matrix_completer import MatrixCompleter
from dpfit.estimators.median_regressor import MedianRegressor
from dpfit.estimators.private_search import SearchStatement
from dpfit.estimators.python_words import in_python_words
from dpfit.estimators.regressor import SparseRegressor
from dpfit.files.factor_model import parse_factor_model
from dpfit.files.linear_model import LinearModel, parse_linear_model
from dpfit.files.model_file import is_of_factors, read_model_file
from dpfit.fitting.factor_file import factor_outcome


def load_model(
    path: str | os.PathLike[str],
) -> SparseClassifier | SparseRegressor | MedianRegressor | MatrixCompleter:
    """The fitted estimator of a model file, by the command line or by ``save``.

    Its parameters name algorithm and loss only; a new fit has to be told budget and ledger.

    Parameters
    ----------
    path : str or path
        A linear model, or one of ratings.

    Raises
    ------
    StorageError
        The file cannot be read.
    ValueError
        It is no model.

    Notes
    -----
    Columns of levels, ranges and hashes, and offsets of classes, are made by the command line only.
    Such a model can be looked at, and predicts with ``dpfit predict``. ``feature_names_in_`` then
    names the features, such as ``job=clerk``; hashed ones have no names.
    """
    name = os.fspath(path)
    with in_python_words():
        content = read_model_file(name)
        try:
            if is_of_factors(content):
                return _completer(content, name)
            return _linear(parse_linear_model(content, name))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError("its provenance is not as this version writes it", path=name) from None


def _completer(content: bytes, path: str) -> MatrixCompleter:
    model = parse_factor_model(content, path)
    factor_outcome(model)  # refuses numbers that nobody can compute with
    estimator = MatrixCompleter(rating_range=model.value_range)
    estimator._take(model, None)
    if model.items != tuple(str(number) for number in range(1, len(model.items) + 1)):
        estimator.feature_names_in_ = np.array(model.items, object)
    return estimator


def _linear(model: LinearModel) -> SparseClassifier | SparseRegressor | MedianRegressor:
    columns = None if model.feature_map is None else FeatureMap.from_json(model.feature_map)
    algo = model.provenance["algorithm"]
    if not isinstance(algo, str):
        raise TypeError("its algorithm is no text")
    base = model.index_base
    estimator: SparseClassifier | SparseRegressor | MedianRegressor
    if model.classes is not None:
        estimator = SparseClassifier(algo=algo, loss=model.loss, index_base=base)
    elif model.loss == "absolute":
        settings: Any = model.provenance["settings"]
        estimator = MedianRegressor(
            algo=algo,
            index_base=base,
            target_range=model.target_range,
            quantile=float(settings["quantile"]),
        )
    else:
        estimator = SparseRegressor(
            algo=algo, loss=model.loss, index_base=base, target_range=model.target_range
        )
    estimator._take(model, None)
    SearchStatement.of(model.provenance, estimator.privacy_)  # refuses what is none
    if columns is not None and columns.hash_bits is None:
        estimator.feature_names_in_ = np.array(columns.names, object)
    return estimator
