"""Two synthetic neighbouring data sets that are as far apart as the neighbouring relation allows.

All records have the same row, as long as the bound on rows allows, in one column, or in all columns
alike where the noise goes by the largest entry of a row. Their labels alternate: what
they add to a gradient cancels at zero and pulls a model that noise has led astray back to where the
canary's residual saturates. The canary is the last record: there with one label in the first world
and with the opposite one in the second, or under add-remove only in the second.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from dpfit.data.rows import RowBlock
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.request import FitRequest
from dpfit.losses.names import OF_CLASSES
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.declared_facts import DeclaredFacts, Layout

SOURCE: Final = "synthetic records"
_MOST_COUNT: Final = 10.0


def linear_worlds(request: FitRequest, rows: int, features: int) -> tuple[LinearFit, LinearFit]:
    """A fit of each world, planned.

    Parameters
    ----------
    request : FitRequest
        The configuration; its loss is named. What it declares about data is replaced.
    rows, features : int
        Public size of both data sets.

    Raises
    ------
    PrivacyError, UsageError
        As the configuration's own run.
    """
    request = replace(request, declared=declared_facts(request, rows, features))
    low, high = 0.0, highest_target(request)
    target = np.where(np.arange(rows) % 2 == 0, low, high)
    target[-1] = low
    present = target.copy()
    present[-1] = high
    if request.adjacency is Adjacency.ADD_REMOVE:
        target = target[:-1]
    return _fit(request, target), _fit(request, present)


def highest_target(request: FitRequest) -> float:
    """The top of the target's range, which begins at 0; a class of two."""
    return _MOST_COUNT if request.loss == "poisson" else 1.0


def declared_facts(request: FitRequest, rows: int, features: int) -> DeclaredFacts:
    """Everything public about synthetic records."""
    facts = DeclaredFacts(n_rows=rows, n_features=features, index_base=0)
    if request.loss in OF_CLASSES:
        count = 2 if request.loss == "logistic" else 3
        return replace(facts, labels=tuple(float(label) for label in range(count)))
    return replace(facts, target_range=(0.0, highest_target(request)))


def _fit(request: FitRequest, target: np.ndarray) -> LinearFit:
    n = len(target)
    d = (request.declared.n_features or 1) if request.traits.by_entry else 1
    block = RowBlock(
        indptr=np.arange(0, n * d + 1, d, dtype=np.int64),
        indices=np.tile(np.arange(d, dtype=np.int32), n),
        values=np.full(n * d, request.row_norm / math.sqrt(d)),
        target=target,
    )
    return LinearFit.of(request, [block], layout=Layout, source=SOURCE)
