"""Metrics of predictions against labels, added up block by block. They are not private."""

from __future__ import annotations

import math
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.data.rows import RowBlock
from dpfit.errors import DataError
from dpfit.files.linear_model import LinearModel
from dpfit.fitting.evaluated_target import classes_of, values_of
from dpfit.fitting.prediction import LinearPredictor
from dpfit.losses.exponential import exponential

Floats: TypeAlias = NDArray[np.float64]


class Metrics(Protocol):
    """Running sums over blocks."""

    def add(self, block: RowBlock, margins: Floats) -> None: ...

    def values(self) -> dict[str, float]: ...


def metrics_for(model: LinearModel, source: str) -> Metrics:
    """The metrics that fit the model's kind of target."""
    if model.classes is not None:
        return _ClassMetrics(model, source)
    if model.loss == "poisson":
        return _CountMetrics(model, source)
    of_values = _QuantileMetrics if model.loss == "absolute" else _ValueMetrics
    return of_values(model, source)


class _ClassMetrics:
    def __init__(self, model: LinearModel, source: str) -> None:
        self._classes, self._source = model.classes or (), source
        self._rows = 0
        self._wrong = 0
        self._log_loss = 0.0

    def add(self, block: RowBlock, margins: Floats) -> None:
        codes = classes_of(block, self._classes, self._source).astype(np.intp)
        # Two classes have one score, which is the second's over the first's.
        scores = margins if margins.ndim == 2 else np.stack([0.0 * margins, margins], axis=1)
        own = scores[np.arange(len(codes)), codes]
        self._rows += len(codes)
        self._wrong += int(np.count_nonzero(scores.argmax(axis=1) != codes))
        self._log_loss += float((np.logaddexp.reduce(scores, axis=1) - own).sum())

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
        self._sum = 0.0
        self._sum_of_squares = 0.0

    def add(self, block: RowBlock, margins: Floats) -> None:
        y = values_of(block, self._source)
        gap = self._predictor.means(margins) - y
        self._rows += len(y)
        self._absolute += float(np.abs(gap).sum())
        self._squared += float((gap * gap).sum())
        centred = y - self._middle
        self._sum += float(centred.sum())
        self._sum_of_squares += float((centred * centred).sum())

    def values(self) -> dict[str, float]:
        mean = self._sum / self._rows
        spread = self._sum_of_squares / self._rows - mean * mean
        mse = self._squared / self._rows
        values = {"rows": self._rows, "RMSE": math.sqrt(mse), "MAE": self._absolute / self._rows}
        return values | ({"R2": 1.0 - mse / spread} if spread > 0.0 else {})


class _QuantileMetrics(_ValueMetrics):
    """Of a quantile what was fitted, and of a median the errors of a value as well."""

    def __init__(self, model: LinearModel, source: str) -> None:
        super().__init__(model, source)
        self._quantile = model.quantile
        self._below = 0
        self._pinball = 0.0

    def add(self, block: RowBlock, margins: Floats) -> None:
        super().add(block, margins)
        above = values_of(block, self._source) - self._predictor.means(margins)
        self._below += int(np.count_nonzero(above <= 0.0))
        q = self._quantile
        self._pinball += float(np.maximum(q * above, (q - 1.0) * above).sum())

    def values(self) -> dict[str, float]:
        values = {
            "rows": self._rows,
            "quantile": self._quantile,
            "at or below": self._below / self._rows,
            "pinball loss": self._pinball / self._rows,
        }
        return {**super().values(), **values} if self._quantile == 0.5 else values


class _CountMetrics:
    """Poisson deviance, and its share explained beyond one rate for all (D2)."""

    def __init__(self, model: LinearModel, source: str) -> None:
        self._predictor, self._source = LinearPredictor(model), source
        self._rows = 0
        self._deviance = 0.0
        self._counts = 0.0
        self._exposure = 0.0
        self._log_terms = 0.0  # sum of y log(y / e), which the deviance of one rate needs

    def add(self, block: RowBlock, margins: Floats) -> None:
        y = values_of(block, self._source)
        if np.any(y < 0.0):
            raise DataError("has a negative count", path=self._source)
        rates = self._predictor.means(margins)
        exposure = np.ones(len(y)) if block.offset is None else exponential(block.offset)
        counted = y > 0.0
        self._rows += len(y)
        self._deviance += 2.0 * float((rates - y).sum())
        self._deviance += 2.0 * float((y[counted] * np.log(y[counted] / rates[counted])).sum())
        self._counts += float(y.sum())
        self._exposure += float(exposure.sum())
        self._log_terms += float((y[counted] * np.log(y[counted] / exposure[counted])).sum())

    def values(self) -> dict[str, float]:
        values = {"rows": self._rows, "deviance": self._deviance / self._rows}
        if self._counts == 0.0:
            return values
        overall = self._counts / self._exposure
        null = 2.0 * (self._log_terms - self._counts * math.log(overall))
        return values | ({"D2": 1.0 - self._deviance / null} if null > 0.0 else {})
