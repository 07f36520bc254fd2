"""Two worlds made of a real file: its records, but for the last, whose place the canary takes.

What such an audit tells depends on the records, and is not private.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from dpfit.data.rows import RowBlock
from dpfit.errors import DataError, UsageError
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.request import FitRequest
from dpfit.losses.names import OF_CLASSES
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.declared_facts import DeclaredFacts, Layout

_TWO: Final = 2


def data_worlds(
    request: FitRequest, blocks: Sequence[RowBlock], layout: Layout, *, source: str
) -> tuple[LinearFit, LinearFit]:
    """A fit of each world, planned.

    The canary's row fills the first column to the norm bound; its label is the first or the last
    of the file's labels, or an end of the range of its targets.

    Parameters
    ----------
    request : FitRequest
        The configuration. Everything public about the data is taken from them.
    blocks : sequence of RowBlock
        All rows of the file, which have targets.
    layout : Layout
        What its format fixes.
    source : str
        What to call it in messages.

    Raises
    ------
    DataError, UsageError
        There are too few records or labels for two worlds, or the loss is not clear.
    """
    targets = np.concatenate([one.target for one in blocks if one.target is not None])
    values = np.unique(targets)
    if len(targets) < _TWO or len(values) < _TWO:
        raise DataError("holds too little for an audit: two labels at least", path=source)
    loss = request.loss
    if loss is None:
        if len(values) > _TWO:
            raise UsageError("the target has more than two values: name the --loss")
        loss = "logistic"
    used = [int(one.indices.min()) for one in blocks if len(one.indices)]
    base = layout.index_base
    if base is None:
        base = 0 if min(used, default=1) == 0 else 1
    facts = DeclaredFacts(n_rows=len(targets), index_base=base)
    if loss in OF_CLASSES:
        facts = replace(facts, labels=tuple(values.tolist()))
    else:
        low = 0.0 if loss == "poisson" else float(values[0])
        facts = replace(facts, target_range=(low, float(values[-1])))
    if layout.n_features is None:
        last = max(int(one.indices.max()) for one in blocks if len(one.indices))
        facts = replace(facts, n_features=last + 1 - base)
    request = replace(request, loss=loss, declared=facts)
    rest = _without_last(blocks)

    def world(label: object) -> LinearFit:
        canary = RowBlock(
            indptr=np.array([0, 1]),
            indices=np.array([base], np.int32),
            values=np.array([request.row_norm]),
            target=np.array([label], targets.dtype),
        )
        return LinearFit.of(request, [*rest, canary], layout=lambda: layout, source=source)

    if request.adjacency is Adjacency.ADD_REMOVE:
        return LinearFit.of(request, rest, layout=lambda: layout, source=source), world(values[-1])
    return world(values[0]), world(values[-1])


def _without_last(blocks: Sequence[RowBlock]) -> list[RowBlock]:
    filled = [one for one in blocks if one.n_rows]
    last = filled[-1]
    assert last.target is not None
    end = int(last.indptr[-2])
    shortened = RowBlock(last.indptr[:-1], last.indices[:end], last.values[:end], last.target[:-1])
    return [*filled[:-1], shortened] if shortened.n_rows else filled[:-1]
