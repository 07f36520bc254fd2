"""Scores, probabilities, labels and values of a linear model, block by block."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.data.rows import RowBlock
from dpfit.design.fixed_point import row_scaled
from dpfit.design.grid import Grid, RowMap
from dpfit.files.linear_model import LINKS, LinearModel
from dpfit.losses.logistic import Logistic
from dpfit.losses.multinomial import Multinomial
from dpfit.losses.poisson import Poisson
from dpfit.losses.squared import Squared

Floats: TypeAlias = NDArray[np.float64]

_LARGEST: Final = float(np.finfo(np.float64).max)


class LinearPredictor:
    """Predicts with a model; memory is that of one block, whatever d is.

    Parameters
    ----------
    model : LinearModel
        Gives the row map, the coefficients and the meaning of a score.
    """

    def __init__(self, model: LinearModel) -> None:
        self._model = model
        self._link = LINKS[model.loss]
        kind, norm = model.row_map
        self._grid = Grid(norm, RowMap(kind), bits=0, intercept=False)

    def margins(self, block: RowBlock) -> Floats:
        """The score of each row, shape (n_rows,), or (n_rows, k) of k classes."""
        scores = self._without_offsets(block)
        if block.offset is None:
            return scores
        with np.errstate(over="ignore"):
            return np.clip(scores + block.offset, -_LARGEST, _LARGEST)

    def _without_offsets(self, block: RowBlock) -> Floats:
        model = self._model
        rows = np.repeat(np.arange(block.n_rows), np.diff(block.indptr))
        values = row_scaled(block, self._grid, rows)
        if model.entry_clip < 1.0:
            bound = model.entry_clip * model.row_map[1]
            values = np.clip(values, -bound, bound)
        columns = block.indices.astype(np.int64) - model.index_base
        if not len(model.indices):
            nothing = np.zeros((block.n_rows, *model.values.shape[1:]))
            return self._scores(nothing, np.zeros(block.n_rows))
        place = np.minimum(np.searchsorted(model.indices, columns), len(model.indices) - 1)
        known = model.indices[place] == columns
        place, rows, values = place[known], rows[known], values[known]
        sums = _summed(rows, values, model.values[place], block.n_rows)
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
        numerator = model.intercept + sums - centre @ model.values
        length = np.sqrt(np.maximum(squares + float(centre @ centre), 0.0) + constant**2)
        return np.asarray(model.offset + (numerator.T / length).T)

    def means(self, margins: Floats) -> Floats:
        """The expected target: probability of the positive class, or of each, or the value.

        Values lie inside the target's range, but for rates under an exposure, which may be any.
        """
        if self._link == "logit":
            return Logistic().mean(margins)
        if self._link == "softmax":
            return Multinomial(margins.shape[1]).mean(margins)
        assert self._model.target_range is not None
        low, high = self._model.target_range
        if self._link == "log":
            with np.errstate(over="ignore"):
                return np.fmin(high * Poisson().mean(margins), _LARGEST)
        return np.asarray(low + (high - low) * np.clip(Squared().mean(margins), 0.0, 1.0))

    def answers(self, margins: Floats) -> NDArray[np.float64] | NDArray[np.object_]:
        """Predicted label of each row, or its predicted value."""
        classes = self._model.classes
        if classes is None:
            return self.means(margins)
        labels: NDArray[np.object_] = np.array(classes, object)[self.codes(margins)]
        return labels

    def codes(self, margins: Floats) -> NDArray[np.intp]:
        """The number of each row's class, in the model's order."""
        return margins.argmax(axis=1) if margins.ndim == 2 else (margins > 0.0).astype(np.intp)


def _summed(rows: NDArray[np.int64], values: Floats, weights: Floats, n_rows: int) -> Floats:
    """Sums of ``value weight`` over each row, for each column of the weights."""
    if weights.ndim == 1:
        return _by_row(rows, values * weights, n_rows)
    return np.stack([_by_row(rows, values * column, n_rows) for column in weights.T], axis=1)


def _by_row(rows: NDArray[np.int64], weights: Floats, n_rows: int) -> Floats:
    return np.asarray(np.bincount(rows, weights=weights, minlength=n_rows), np.float64)
