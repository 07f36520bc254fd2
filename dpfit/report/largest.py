"""The largest coefficients of a model, by the names its columns have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dpfit.data.features import FeatureMap
from dpfit.errors import DataError
from dpfit.files.factor_model import FactorModel
from dpfit.files.linear_model import LinearModel
from dpfit.report.released_run import plain

SHOWN: Final = 20


@dataclass(frozen=True)
class Largest:
    """A ranking.

    Attributes
    ----------
    title, note : str
    head : tuple of str
        Over the name and the value.
    rows : tuple of (str, float)
        Names with values, the largest in size first.
    """

    title: str
    note: str
    head: tuple[str, str]
    rows: tuple[tuple[str, float], ...]


def largest_coefficients(model: LinearModel, path: str) -> Largest:
    """Of a linear model.

    Raises
    ------
    DataError
        Its columns are not as dpfit writes them; ``path`` names the model.
    """
    values = model.values.reshape(len(model.indices), -1)
    order = np.argsort(-np.abs(values), axis=None, kind="stable")[:SHOWN]
    rows = []
    for place in order:
        row, score = divmod(int(place), values.shape[1])
        rows.append((row, score, float(values[row, score])))
    name_of = _Names(model, path)
    several = values.shape[1] > 1
    classes = [plain(label) for label in model.classes or ()]
    ranked = tuple(
        (name_of(int(model.indices[row])) + (f", {classes[score]}" if several else ""), value)
        for row, score, value in rows
        if value
    )
    size = f"{len(model.indices):,} of {model.n_features:,} columns have a coefficient"
    shown = f"; the {len(ranked)} largest in size are here" if values.size > SHOWN else ""
    return Largest(
        title="Largest coefficients",
        note=f"{size}{shown}. They belong to rows as the model maps them. {_meaning(model)}",
        head=("column, class" if several else "column", "coefficient"),
        rows=ranked,
    )


def largest_biases(model: FactorModel) -> Largest:
    """Of the items of a matrix completion: how far their released means are from that of all."""
    order = np.argsort(-np.abs(model.bias), kind="stable")[:SHOWN]
    return Largest(
        title="Items furthest from the mean",
        note=f"{len(model.items):,} items, {model.rank} factors. The mean of all ratings was "
        f"released as {model.global_mean:.4g}; an item's bias is what its own mean adds to that. "
        "An item with few ratings may stand here by its noise alone.",
        head=("item", "bias"),
        rows=tuple((plain(model.items[place]), float(model.bias[place])) for place in order),
    )


def _meaning(model: LinearModel) -> str:
    if model.classes is not None and len(model.classes) == 2:
        return f"A positive one speaks for the class {plain(model.classes[1])}."
    return "" if model.classes is not None else "A positive one raises the prediction."


class _Names:
    """Names of features, counted from 0."""

    def __init__(self, model: LinearModel, path: str) -> None:
        self._base = model.index_base
        self._named: list[str] | None = None
        if model.feature_map is not None:
            try:
                self._named = FeatureMap.from_json(model.feature_map).names
            except ValueError as error:
                raise DataError(f"its features.columns are {error}", path=path) from None

    def __call__(self, feature: int) -> str:
        if self._named is None:
            return f"column {feature + self._base}"
        if feature < len(self._named):
            return plain(self._named[feature])
        return f"hashed column {feature - len(self._named)}"
