"""Which metrics an evaluation of a model releases, and what its noisy sums come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.errors import UsageError
from dpfit.files.linear_model import LinearModel
from dpfit.fitting.released_metrics import (
    NoisyMetric,
    SumNoise,
    auc_metric,
    mean_metric,
    root_metric,
)
from dpfit.privacy.record_metrics import (
    ClassMetrics,
    CountMetrics,
    QuantileMetrics,
    RecordMetrics,
    ValueMetrics,
)

Floats: TypeAlias = NDArray[np.float64]

DEFAULT_CLIP: Final = 4.0  # nats: a probability of 1.8 %
_CLIPS: Final = (1e-3, 1e3)


class MetricChoice(Protocol):
    """The metrics of one kind of target: what records add, and what the sums say."""

    @property
    def records(self) -> RecordMetrics: ...
    def metrics(self, sums: Floats, n_rows: int, noise: SumNoise) -> list[NoisyMetric]: ...


def metric_choice(model: LinearModel, loss_clip: float | None) -> MetricChoice:
    """The metrics that fit a model's target.

    Parameters
    ----------
    model : LinearModel
        Public.
    loss_clip : float or None
        Bound on a record's log loss or deviance; None: the default.

    Raises
    ------
    UsageError
        The clip is out of range, or these metrics have none.
    """
    if loss_clip is not None and not _CLIPS[0] <= loss_clip <= _CLIPS[1]:
        raise UsageError(f"--loss-clip must lie between {_CLIPS[0]:g} and {_CLIPS[1]:g}")
    clip = DEFAULT_CLIP if loss_clip is None else loss_clip
    if model.classes is not None:
        return _OfClasses(ClassMetrics(len(model.classes), clip))
    assert model.target_range is not None
    low, high = model.target_range
    if model.loss == "poisson":
        return _OfCounts(CountMetrics(high, clip))
    if loss_clip is not None:
        raise UsageError("--loss-clip belongs to models of classes or counts")
    if model.loss == "absolute" and model.quantile != 0.5:
        return _OfQuantile(QuantileMetrics(model.quantile), high - low)
    return _OfValues(ValueMetrics(), high - low)


@dataclass(frozen=True)
class _OfClasses:
    records: ClassMetrics

    def metrics(self, sums: Floats, n_rows: int, noise: SumNoise) -> list[NoisyMetric]:
        error, loss = sums[:2]
        found = [
            mean_metric("error rate", error, n_rows, noise),
            mean_metric("clipped log loss", loss, n_rows, noise, largest=self.records.clip),
        ]
        return [*found, auc_metric(sums[2:], noise)] if self.records.n_cells else found


@dataclass(frozen=True)
class _OfValues:
    records: ValueMetrics
    span: float

    def metrics(self, sums: Floats, n_rows: int, noise: SumNoise) -> list[NoisyMetric]:
        squared = mean_metric("MSE", sums[1], n_rows, noise, largest=self.span**2)
        absolute = mean_metric("MAE", sums[0], n_rows, noise, largest=self.span)
        return [root_metric("RMSE", squared), absolute]


@dataclass(frozen=True)
class _OfQuantile:
    records: QuantileMetrics
    span: float

    def metrics(self, sums: Floats, n_rows: int, noise: SumNoise) -> list[NoisyMetric]:
        largest = self.records.largest * self.span
        return [
            mean_metric("at or below", sums[0], n_rows, noise),
            mean_metric("pinball loss", sums[1], n_rows, noise, largest=largest),
        ]


@dataclass(frozen=True)
class _OfCounts:
    records: CountMetrics

    def metrics(self, sums: Floats, n_rows: int, noise: SumNoise) -> list[NoisyMetric]:
        largest = self.records.largest
        return [
            mean_metric("MAE", sums[0], n_rows, noise, largest=largest),
            mean_metric("clipped deviance", sums[1], n_rows, noise, largest=self.records.clip),
        ]
