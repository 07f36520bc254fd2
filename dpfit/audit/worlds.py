"""Two synthetic neighbouring data sets that are as far apart as the neighbouring relation allows.

The canary is the last record: its row fills the first column up to the norm bound, and it is there
with one label in the first world and with the opposite one in the second, or under add-remove only
in the second. Where units own several records it is all that one may own. At zero its residual is
at its bound. What the other records do is to keep it there: along the first column, to either side,
they bring back a model that noise has led astray, since their labels follow the second column and
so their own residuals are off the bound.

That also makes a model forget. To an attacker who sees no more than the model, all rows are like
the canary's and labels alternate: then they hardly move it. So they do where a minimiser is
released, which only the ridge shall hold; and where the noise goes by the largest entry of a row,
with rows that spread over all columns.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.data.encode import CodedText
from dpfit.data.rows import RowBlock
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.request import FitRequest
from dpfit.losses.names import OF_CLASSES
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.declared_facts import DeclaredFacts, Layout

Floats: TypeAlias = NDArray[np.float64]

SOURCE: Final = "synthetic records"
_MOST_COUNT: Final = 10.0
_ALONG: Final = math.sqrt(0.5)  # the canary, of a row's length
_FOLLOW: Final = (3, 5)  # that many records of so many have the label that the second column says


def linear_worlds(
    request: FitRequest, rows: int, features: int, *, black_box: bool = False
) -> tuple[LinearFit, LinearFit]:
    """A fit of each world, planned.

    Parameters
    ----------
    request : FitRequest
        The configuration; its loss is named. What it declares about data is replaced.
    rows, features : int
        Public size of both data sets.
    black_box : bool
        Whether the attacker sees the model alone.

    Raises
    ------
    PrivacyError, UsageError
        As the configuration's own run.
    """
    request = replace(request, declared=declared_facts(request, rows, features))
    if black_box or request.traits.by_entry or "ridge" in request.traits.settings:
        X, target = _alike(rows, features, filled=features if request.traits.by_entry else 1)
    else:
        X, target = _around_first_column(rows, features)
    target *= highest_target(request)
    copies = request.max_rows_per_unit or 1  # of the canary: all rows that a unit may have
    X = np.vstack([X[:-1], np.repeat(X[-1:], copies, axis=0)])
    without, present = (np.append(target[:-1], np.zeros(copies)) for _ in range(2))
    present[-copies:] = highest_target(request)
    if request.adjacency is Adjacency.ADD_REMOVE:
        others = X[:-copies], without[:-copies]
        return dense_fit(request, *others), dense_fit(request, X, present)
    return dense_fit(request, X, without), dense_fit(request, X, present)


def _around_first_column(rows: int, features: int) -> tuple[Floats, Floats]:
    """Rows of length one with targets 0 or 1; the last is the canary's."""
    place = np.arange(rows)
    side, second = 1.0 - 2.0 * (place % 2), 1.0 - 2.0 * (place // 2 % 2)
    X = np.zeros((rows, features))
    X[:, 0] = _ALONG * side
    X[:, 1] = math.sqrt(1.0 - _ALONG**2) * second
    X[-1] = 0.0
    X[-1, 0] = 1.0
    follow, of = _FOLLOW
    return X, np.where(place // 4 % of < follow, second > 0.0, second < 0.0).astype(float)


def _alike(rows: int, features: int, *, filled: int) -> tuple[Floats, Floats]:
    """Likewise, with the first columns filled."""
    X = np.zeros((rows, features))
    X[:, :filled] = 1.0 / math.sqrt(filled)
    return X, (np.arange(rows) % 2).astype(float)


def highest_target(request: FitRequest) -> float:
    """The top of the target's range, which begins at 0; a class of two."""
    return _MOST_COUNT if request.loss == "poisson" else 1.0


def declared_facts(request: FitRequest, rows: int, features: int) -> DeclaredFacts:
    """Everything public about synthetic records."""
    facts = DeclaredFacts(n_rows=rows, n_features=features, index_base=0)
    if request.unit is not None:
        facts = replace(facts, n_owners=rows)
    if request.loss in OF_CLASSES:
        count = 2 if request.loss == "logistic" else 3
        return replace(facts, labels=tuple(float(label) for label in range(count)))
    return replace(facts, target_range=(0.0, highest_target(request)))


def _owners(request: FitRequest, rows: int) -> CodedText | None:
    """Each row is a unit of its own, but for the canary's, which come last."""
    units = request.declared.n_owners
    if units is None:
        return None
    texts = [str(number) for number in range(units)]
    return CodedText(np.minimum(np.arange(rows), units - 1), texts)


def dense_fit(request: FitRequest, X: Floats, target: Floats) -> LinearFit:
    """A planned fit of rows, whose length one stands for the bound on rows."""
    n, d = X.shape
    block = RowBlock(
        indptr=np.arange(0, n * d + 1, d, dtype=np.int64),
        indices=np.tile(np.arange(d, dtype=np.int32), n),
        values=(X * request.row_norm).ravel(),
        target=target,
        owner=_owners(request, n),
    )
    return LinearFit.of(request, [block], layout=Layout, source=SOURCE)
