"""Two worlds made of a real file: its records, but for the last, whose place the canary takes.

What such an audit tells depends on the records, and is not private.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpfit.audit.matrix_worlds import canary_ratings
from dpfit.data.ratings_by_user import RatingsByUser
from dpfit.data.rows import RowBlock
from dpfit.errors import DataError
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.matrix_fit import MatrixFit
from dpfit.fitting.matrix_request import MatrixRequest
from dpfit.fitting.request import FitRequest
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.declared_facts import Layout


def data_worlds(
    request: FitRequest, blocks: Sequence[RowBlock], layout: Layout, *, source: str
) -> tuple[LinearFit, LinearFit]:
    """A fit of each world, planned.

    The canary's row fills the first column to the norm bound; its label is the first or the last
    class, or an end of the range of targets. It has all the weight and exposure that one can have.

    Parameters
    ----------
    request : FitRequest
        The configuration. What it does not declare is taken from the whole file in both worlds.
    blocks : sequence of RowBlock
        All rows of the file, which have targets.
    layout : Layout
        What its format fixes.
    source : str
        What to call it in messages.

    Raises
    ------
    DataError, PrivacyError, UsageError
        There are too few records for two worlds, or as the configuration's own run.
    """
    whole = LinearFit.of(request, blocks, layout=lambda: layout, source=source)
    facts = whole.plan.facts
    weights = [one.weight for one in blocks if one.weight is not None]
    weight = request.declared.max_weight or max((float(one.max()) for one in weights), default=1.0)
    counts = whole.plan.loss.name == "poisson"
    declared = replace(
        request.declared,
        n_rows=facts.integer("rows"),
        n_features=facts.integer("features"),
        index_base=whole.index_base,
        labels=whole.classes,
        target_range=whole.target_range,
        max_weight=weight if weights else None,
        max_exposure=whole.max_exposure if request.exposed and counts else None,
    )
    request = replace(request, loss=whole.plan.loss.name, declared=declared, positive_label=None)
    rest = _without_last(blocks)
    if not rest:
        raise DataError("holds too little for an audit: two records at least", path=source)
    kind, targets = rest[0], rest[0].target
    assert targets is not None

    def world(label: object) -> LinearFit:
        target: Any = np.array([label], targets.dtype)
        canary = RowBlock(
            indptr=np.array([0, 1]),
            indices=np.array([whole.index_base], np.int32),
            values=np.array([request.row_norm]),
            target=target,
            offset=None if kind.offset is None else np.array([math.log(whole.max_exposure)]),
            weight=None if kind.weight is None else np.array([weight]),
        )
        return LinearFit.of(request, [*rest, canary], layout=lambda: layout, source=source)

    ends = whole.classes or whole.target_range
    assert ends is not None
    if request.adjacency is Adjacency.ADD_REMOVE:
        return LinearFit.of(request, rest, layout=lambda: layout, source=source), world(ends[-1])
    return world(ends[0]), world(ends[-1])


def _without_last(blocks: Sequence[RowBlock]) -> list[RowBlock]:
    filled = [one for one in blocks if one.n_rows]
    last, end = filled[-1], int(filled[-1].indptr[-2])
    assert last.target is not None
    shortened = RowBlock(
        last.indptr[:-1],
        last.indices[:end],
        last.values[:end],
        last.target[:-1],
        None if last.offset is None else last.offset[:-1],
        None if last.weight is None else last.weight[:-1],
    )
    return [*filled[:-1], shortened] if shortened.n_rows else filled[:-1]


def rating_worlds(
    request: MatrixRequest, ratings: RatingsByUser, *, n_items: int, source: str
) -> tuple[MatrixFit, MatrixFit]:
    """A completion of each world, planned; the canary rates all items, as the synthetic one does.

    Parameters
    ----------
    request : MatrixRequest
        The configuration. What it does not declare is taken from the whole file in both worlds.
    ratings : RatingsByUser
        Of all users.
    n_items : int
        How many items there are.
    source : str
        What to call the file in messages.

    Raises
    ------
    DataError, PrivacyError
        There are too few users for two worlds, or as the configuration's own run.
    """
    users = ratings.n_users
    if users < 2:
        raise DataError("holds too little for an audit: two users at least", path=source)
    request = replace(request, n_users=request.n_users or users, n_items=n_items)
    rest = ratings.part(0, users - 1)
    canary = canary_ratings(request.value_range, n_items)

    def world(values: np.ndarray | None) -> MatrixFit:
        held = rest
        if values is not None:
            held = RatingsByUser(
                first_user=0,
                indptr=np.append(rest.indptr, rest.indptr[-1] + n_items),
                items=np.append(rest.items, np.arange(n_items, dtype=np.int32)),
                values=np.append(rest.values, values),
            )
        return MatrixFit(request, held, n_items=n_items, source=source)

    opposite = None if request.adjacency is Adjacency.ADD_REMOVE else sum(request.value_range)
    return world(None if opposite is None else opposite - canary), world(canary)
