"""The model file of a sparse linear model: one JSON document that any program can read.

``coefficients.indices`` counts columns as the input did (from ``features.index_base``). A row is
first mapped by ``row_map``; then its score is ``offset + intercept + sum_j values_j x_j``, one for
each class when there are more than two. A model
with a ``centring`` looks at its own columns only: with ``z_j = x_j / norm - centre_j`` the score is
``offset + (intercept + sum_j values_j z_j) / sqrt(constant^2 + sum_j z_j^2)``. A document holds no
clock and no statistic that was not released, and reading one runs no code. The mean of a row is the
inverse ``link`` of its score; of a target with a range it is a share of that range.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.errors import DataError
from dpfit.files.json_checks import (
    NAME_A_MODEL,
    Json,
    as_column,
    as_mapping,
    as_number,
    as_whole,
    no_constant,
    not_a_document,
)
from dpfit.files.model_file import read_model_file

SCHEMA: Final = "dpfit-model/1"
LARGEST_FEATURE_COUNT: Final = 2**31 - 2  # what the readers can number

_LARGEST_CENTRE: Final = 1e100  # its square, times any number of columns, stays finite
Label: TypeAlias = float | str
Scores: TypeAlias = float | NDArray[np.float64]

LINKS: Final = {
    "logistic": "logit",
    "multinomial": "softmax",
    "squared": "identity",
    "huber": "identity",
    "absolute": "identity",
    "poisson": "log",
}
"""The link of each loss."""
WITH_OFFSET: Final = ("logistic", "poisson")
"""Losses whose scores have a scale that users know, so that offsets make sense."""


@dataclass(frozen=True)
class LinearModel:
    """A fitted sparse linear model.

    Attributes
    ----------
    provenance : mapping
        Program version, algorithm, settings, public facts and charge, as JSON values.
    private : bool
        False for a run without noise or with a seed.
    loss : str
        One of ``LINKS``.
    classes : tuple of labels, or None
        Of two the negative one first.
    target_range : (float, float) or None
        Bounds of a real target.
    n_features : int
        d.
    index_base : int
        Number of the first column in LIBSVM input.
    feature_map : mapping or None
        How named columns become features; None for plain sparse input.
    label_column : str or None
        Name of the target's column, for input that names its columns.
    weight_column, offset_column, exposure_column : str or None
        Columns of row weights, which prediction does not read, and of what is added to the score
        of each row, the last by its logarithm.
    hash_bits : int or None
        Sparse input had its indices folded into ``2**hash_bits`` columns.
    row_map : (str, float)
        Kind and norm of the row map.
    entry_clip : float
        Bound on a mapped row's entries, as a share of the norm; 1 bounds nothing.
    intercept : float or float64 array, shape (k,)
        On the scale of the mapped rows; of each of k classes when there are more than two.
    offset : float or float64 array, shape (k,)
        Added to every score.
    centring : (float64 array of shape (nnz,), float) or None
        Centre of each coefficient's column, and the constant column's value.
    indices : int64 array, shape (nnz,)
        Sorted columns of the non-zero coefficients, counted from 0.
    values : float64 array, shape (nnz,) or (nnz, k)
        Their coefficients.
    """

    provenance: Json = field(repr=False)
    private: bool
    loss: str
    classes: tuple[Label, ...] | None
    target_range: tuple[float, float] | None
    n_features: int
    index_base: int
    feature_map: Json | None = field(repr=False)
    label_column: str | None
    weight_column: str | None
    offset_column: str | None
    exposure_column: str | None
    hash_bits: int | None
    row_map: tuple[str, float]
    entry_clip: float
    intercept: Scores
    offset: Scores
    centring: tuple[NDArray[np.float64], float] | None
    indices: NDArray[np.int64]
    values: NDArray[np.float64]

    @property
    def quantile(self) -> float:
        """Which one a model of the absolute loss is of; a half where it does not say."""
        settings = self.provenance.get("settings")
        found = settings.get("quantile") if isinstance(settings, dict) else None
        return float(found) if isinstance(found, int | float) and 0 < found < 1 else 0.5

    def to_bytes(self) -> bytes:
        """The document; the same model gives the same bytes."""
        document = {
            "schema": SCHEMA,
            "kind": "linear",
            "private": self.private,
            "loss": self.loss,
            "link": LINKS[self.loss],
            "classes": self.classes,
            "target_range": self.target_range,
            "features": {
                "count": self.n_features,
                "index_base": self.index_base,
                "columns": self.feature_map,
                "label": self.label_column,
                "weight": self.weight_column,
                "offset": self.offset_column,
                "exposure": self.exposure_column,
                "hash_bits": self.hash_bits,
            },
            "row_map": {
                "kind": self.row_map[0],
                "norm": self.row_map[1],
                "entry_clip": self.entry_clip,
            },
            "offset": _plain(self.offset),
            "centring": self._centring_json(),
            "intercept": _plain(self.intercept),
            "coefficients": {
                "indices": (self.indices + self.index_base).tolist(),
                "values": self.values.tolist(),
            },
            "provenance": self.provenance,
        }
        lines = (
            f"{json.dumps(key)}: {json.dumps(part, allow_nan=False)}"
            for key, part in document.items()
        )
        return ("{\n" + ",\n".join(lines) + "\n}\n").encode()

    def _centring_json(self) -> Json | None:
        if self.centring is None:
            return None
        return {"centre": self.centring[0].tolist(), "constant": self.centring[1]}


def _plain(scores: Scores) -> float | list[float]:
    """As JSON knows it."""
    return scores.tolist() if isinstance(scores, np.ndarray) else float(scores)


def read_linear_model(path: str) -> LinearModel:
    """Read a model file.

    Raises
    ------
    StorageError
        The file cannot be read.
    DataError
        It is not a linear model as this version writes them.
    """
    return parse_linear_model(read_model_file(path), path)


def parse_linear_model(content: bytes, path: str) -> LinearModel:
    """The model of a file with that content; ``path`` is for errors.

    Raises
    ------
    DataError
        It is not a linear model as this version writes them.
    """
    try:
        document = json.loads(content, parse_constant=no_constant)
    except (ValueError, RecursionError):
        raise DataError("is not a model file: not JSON", path=path, hint=NAME_A_MODEL) from None
    try:
        return _model(document)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise not_a_document(SCHEMA, error, path) from None


def _model(document: object) -> LinearModel:
    root = as_mapping(document, "the document")
    if root["schema"] != SCHEMA or root["kind"] != "linear":
        raise ValueError("its schema or kind is another")
    features = as_mapping(root["features"], "features")
    n_features = as_whole(features["count"], "features.count", 1, LARGEST_FEATURE_COUNT)
    index_base = as_whole(features["index_base"], "features.index_base", 0, 1)
    columns, bits = features["columns"], features["hash_bits"]
    loss = root["loss"]
    if loss not in LINKS:
        raise ValueError("its loss is not known")
    classes = _classes(root["classes"], loss) if LINKS[loss] in ("logit", "softmax") else None
    shifted = features["offset"] is not None or features["exposure"] is not None
    if shifted and loss not in WITH_OFFSET:
        raise ValueError("its loss has no offset or exposure")
    n_scores = len(classes) if loss == "multinomial" and classes is not None else None
    indices, values = _coefficients(root["coefficients"], n_features, index_base, n_scores)
    kind, norm, entry_clip = _row_map(root["row_map"])
    intercept = _scores(root["intercept"], "intercept", n_scores)
    offset = _scores(root["offset"], "offset", n_scores)
    centring = _centring(root["centring"], len(indices))
    # A mapped row has entries within the norm, so this bounds every score and every partial sum.
    with np.errstate(over="ignore"):
        reach, shortest = norm, 1.0
        if centring is not None:
            centre, constant = centring
            reach, shortest = norm + np.abs(centre).sum() + 1.0, min(constant, 1.0)
        largest = reach * np.abs(values).sum(axis=0) + np.abs(intercept) + np.abs(offset)
        largest = largest / shortest
    if not np.all(np.isfinite(largest)):
        raise ValueError("its coefficients are too large to compute with")
    return LinearModel(
        provenance=as_mapping(root["provenance"], "provenance"),
        private=root["private"] is True,
        loss=str(loss),
        classes=classes,
        target_range=_range(root["target_range"], loss) if classes is None else None,
        n_features=n_features,
        index_base=index_base,
        feature_map=None if columns is None else as_mapping(columns, "features.columns"),
        label_column=as_column(features, "label", "features"),
        weight_column=as_column(features, "weight", "features"),
        offset_column=as_column(features, "offset", "features"),
        exposure_column=as_column(features, "exposure", "features"),
        hash_bits=None if bits is None else as_whole(bits, "features.hash_bits", 1, 30),
        row_map=(kind, norm),
        entry_clip=entry_clip,
        intercept=intercept,
        offset=offset,
        centring=centring,
        indices=indices,
        values=values,
    )


def _coefficients(
    value: object, n_features: int, index_base: int, n_scores: int | None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    parts = as_mapping(value, "coefficients")
    raw, numbers = parts["indices"], parts["values"]
    if not isinstance(raw, list) or not isinstance(numbers, list) or len(raw) != len(numbers):
        raise ValueError("coefficients need indices and values of one length")
    last = n_features - 1 + index_base
    indices = np.array(
        [as_whole(i, "a coefficient's index", index_base, last) for i in raw], np.int64
    )
    if np.any(np.diff(indices) <= 0):
        raise ValueError("coefficient indices must increase")
    if n_scores is None:
        values = np.array([as_number(v, "a coefficient") for v in numbers], np.float64)
    else:
        rows = [_scores(row, "a row of coefficients", n_scores) for row in numbers]
        values = np.array(rows, np.float64).reshape(len(rows), n_scores)
    return indices - index_base, values


def _scores(value: object, name: str, n_scores: int | None) -> Scores:
    """A number, or one for each class."""
    if n_scores is None:
        return as_number(value, name)
    if not isinstance(value, list) or len(value) != n_scores:
        raise ValueError(f"{name} needs one number for each class")
    return np.array([as_number(part, name) for part in value], np.float64)


def _centring(value: object, count: int) -> tuple[NDArray[np.float64], float] | None:
    if value is None:
        return None
    parts = as_mapping(value, "centring")
    centre, constant = parts["centre"], as_number(parts["constant"], "centring.constant")
    if not isinstance(centre, list) or len(centre) != count or constant <= 0.0:
        raise ValueError("centring needs a centre for each coefficient and a positive constant")
    numbers = [as_number(v, "a centre") for v in centre]
    if any(abs(v) > _LARGEST_CENTRE for v in (*numbers, constant)):
        raise ValueError("its centring is too large to compute with")
    return np.array(numbers, np.float64), constant


def _classes(value: object, loss: str) -> tuple[Label, ...]:
    if not isinstance(value, list) or len(value) < 2 or (loss == "logistic" and len(value) != 2):
        raise ValueError("its classes are not as many as its loss needs")
    classes = tuple(v if isinstance(v, str) else as_number(v, "a class") for v in value)
    if len({isinstance(label, str) for label in classes}) != 1:
        raise ValueError("classes must be all texts or all numbers")
    if len(set(classes)) != len(classes):
        raise ValueError("classes must differ")
    return classes


def _range(value: object, loss: str) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("target_range must be two numbers")
    low, high = (as_number(v, "target_range") for v in value)
    if not (low < high and math.isfinite(high - low)):
        raise ValueError("target_range must increase, by a finite step")
    if loss == "poisson" and low != 0.0:
        raise ValueError("target_range of counts must begin at 0")
    return low, high


def _row_map(value: object) -> tuple[str, float, float]:
    parts = as_mapping(value, "row_map")
    kind, norm = parts["kind"], as_number(parts["norm"], "row_map.norm")
    entry_clip = as_number(parts["entry_clip"], "row_map.entry_clip")
    if kind not in ("normalize", "clip") or norm <= 0 or not 0 < entry_clip <= 1:
        raise ValueError("its row_map is not known")
    return str(kind), norm, entry_clip
