"""Scores, probabilities, labels and values of a linear model, block by block."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.data.rows import RowBlock
from dpfit.design.fixed_point import row_scaled
from dpfit.design.grid import Grid, RowMap
from dpfit.files.linear_model import LinearModel
from dpfit.losses.logistic import Logistic
from dpfit.losses.squared import Squared

Floats: TypeAlias = NDArray[np.float64]


class LinearPredictor:
    """Predicts with a model; memory is that of one block, whatever d is.

    Parameters
    ----------
    model : LinearModel
        Gives the row map, the coefficients and the meaning of a score.
    """

    def __init__(self, model: LinearModel) -> None:
        self._model = model
        kind, norm = model.row_map
        self._grid = Grid(norm, RowMap(kind), bits=0, intercept=False)

    def margins(self, block: RowBlock) -> Floats:
        """The score of each row, shape (n_rows,)."""
        model = self._model
        rows = np.repeat(np.arange(block.n_rows), np.diff(block.indptr))
        values = row_scaled(block, self._grid, rows)
        if model.entry_clip < 1.0:
            bound = model.entry_clip * model.row_map[1]
            values = np.clip(values, -bound, bound)
        columns = block.indices.astype(np.int64) - model.index_base
        if not len(model.indices):
            return self._scores(np.zeros(block.n_rows), np.zeros(block.n_rows))
        place = np.minimum(np.searchsorted(model.indices, columns), len(model.indices) - 1)
        known = model.indices[place] == columns
        place, rows, values = place[known], rows[known], values[known]
        sums = _by_row(rows, values * model.values[place], block.n_rows)
        if model.centring is None:
            return self._scores(sums, np.zeros(block.n_rows))
        # |z|^2 without the centre's own square, which every row shares.
        shares = values / model.row_map[1]
        squares = shares * (shares - 2.0 * model.centring[0][place])
        return self._scores(sums / model.row_map[1], _by_row(rows, squares, block.n_rows))

    def _scores(self, sums: Floats, squares: Floats) -> Floats:
        model = self._model
        if model.centring is None:
            return np.asarray(model.offset + model.intercept + sums)
        centre, constant = model.centring
        numerator = model.intercept + sums - float(model.values @ centre)
        length = np.sqrt(np.maximum(squares + float(centre @ centre), 0.0) + constant**2)
        return np.asarray(model.offset + numerator / length)

    def probabilities(self, margins: Floats) -> Floats:
        """Probability of the positive class."""
        return Logistic().mean(margins)

    def answers(self, margins: Floats) -> NDArray[np.float64] | NDArray[np.object_]:
        """Predicted label of each row, or its predicted value inside the target range."""
        model = self._model
        if model.classes is not None:
            return np.array(model.classes, object)[(margins > 0.0).astype(np.intp)]
        assert model.target_range is not None
        low, high = model.target_range
        return np.asarray(low + (high - low) * np.clip(Squared().mean(margins), 0.0, 1.0))


def _by_row(rows: NDArray[np.int64], weights: Floats, n_rows: int) -> Floats:
    return np.asarray(np.bincount(rows, weights=weights, minlength=n_rows), np.float64)
