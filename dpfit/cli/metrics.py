"""Metrics of predictions against labels, added up block by block. They are not private."""

from __future__ import annotations

import math
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.errors import DataError
from dpfit.files.linear_model import LinearModel
from dpfit.fitting.prediction import LinearPredictor

Floats: TypeAlias = NDArray[np.float64]
Target: TypeAlias = NDArray[np.float64] | NDArray[np.object_] | None


class Metrics(Protocol):
    """Running sums over blocks."""

    def add(self, target: Target, margins: Floats) -> None: ...

    def values(self) -> dict[str, float]: ...


def metrics_for(model: LinearModel, source: str) -> Metrics:
    """The metrics that fit the model's kind of target."""
    if model.classes is not None:
        return _ClassMetrics(model, source)
    return _ValueMetrics(model, source)


class _ClassMetrics:
    def __init__(self, model: LinearModel, source: str) -> None:
        self._model, self._source = model, source
        self._rows = 0
        self._wrong = 0
        self._log_loss = 0.0

    def add(self, target: Target, margins: Floats) -> None:
        assert self._model.classes is not None
        labels = _present(target, self._source)
        negative, positive = self._model.classes
        is_positive = np.asarray(labels == positive)
        if not np.all(is_positive | (labels == negative)):
            raise DataError("has a label that the model does not know", path=self._source)
        signed = np.where(is_positive, margins, -margins)
        self._rows += len(margins)
        self._wrong += int(np.count_nonzero((margins > 0.0) != is_positive))
        self._log_loss += float(np.logaddexp(0.0, -signed).sum())

    def values(self) -> dict[str, float]:
        return {
            "rows": self._rows,
            "error rate": self._wrong / self._rows,
            "log loss": self._log_loss / self._rows,
        }


class _ValueMetrics:
    def __init__(self, model: LinearModel, source: str) -> None:
        assert model.target_range is not None
        low, high = model.target_range
        self._predictor, self._source = LinearPredictor(model), source
        # Moments about a public value near the targets: about 0, those of 1e9 +- 1 cancel.
        self._middle = low + (high - low) / 2
        self._rows = 0
        self._absolute = 0.0
        self._squared = 0.0
        self._moments = np.zeros(2)

    def add(self, target: Target, margins: Floats) -> None:
        y = _present(target, self._source)
        if y.dtype == object:
            raise DataError("has text where the model predicts a number", path=self._source)
        y = y.astype(np.float64)
        gap = self._predictor.answers(margins).astype(np.float64) - y
        self._rows += len(y)
        self._absolute += float(np.abs(gap).sum())
        self._squared += float((gap * gap).sum())
        centred = y - self._middle
        self._moments += (float(centred.sum()), float((centred * centred).sum()))

    def values(self) -> dict[str, float]:
        mean = self._moments[0] / self._rows
        spread = self._moments[1] / self._rows - mean * mean
        mse = self._squared / self._rows
        values = {"rows": self._rows, "RMSE": math.sqrt(mse), "MAE": self._absolute / self._rows}
        return values | ({"R2": 1.0 - mse / spread} if spread > 0.0 else {})


def _present(target: Target, source: str) -> NDArray[np.float64] | NDArray[np.object_]:
    if target is None:
        raise DataError("has no labels to evaluate against", path=source)
    return target
