"""By which loss a search compares its runs."""

from __future__ import annotations

from dataclasses import dataclass

from dpfit.fitting.metric_choice import DEFAULT_CLIP
from dpfit.losses.absolute import Absolute
from dpfit.losses.base import Loss
from dpfit.losses.names import OF_CLASSES
from dpfit.privacy.record_metrics import (
    ClassMetrics,
    CountMetrics,
    QuantileMetrics,
    RecordMetrics,
    ValueMetrics,
)


@dataclass(frozen=True)
class SearchScore:
    """A bounded loss of each record, the lower the better.

    Attributes
    ----------
    name : str
        Of the loss.
    metrics : RecordMetrics
        What a record adds.
    which : int
        The place of the loss among it.
    """

    name: str
    metrics: RecordMetrics
    which: int


def search_score(loss: Loss, largest: float) -> SearchScore:
    """The score of a loss: what its users look at, where that is bounded.

    Parameters
    ----------
    loss : Loss
        Of the fit.
    largest : float
        Top of the target's range, for counts.
    """
    if loss.name in OF_CLASSES:
        n_classes = max(2, loss.n_scores)
        return SearchScore("error rate", ClassMetrics(n_classes, DEFAULT_CLIP), 0)
    if loss.name == "poisson":
        metrics = CountMetrics(largest, DEFAULT_CLIP)
        return SearchScore("bounded deviance, of its bound", metrics, 1)
    if isinstance(loss, Absolute) and loss.quantile != 0.5:
        metric = QuantileMetrics(loss.quantile)
        return SearchScore("pinball loss, of its largest value", metric, 1)
    if loss.name == "squared":
        return SearchScore("squared error, of the squared range", ValueMetrics(), 1)
    return SearchScore("absolute error, of the range", ValueMetrics(), 0)
