"""Which steps of a pipeline learn from the data, and so are outside the guarantee."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures
from sklearn.utils import get_tags


def learning_steps(name: str, step: Any) -> Iterator[str]:
    """The name of a step if it learns, or of the steps inside it that do.

    Parameters
    ----------
    name : str
        Of the step; those inside it follow after two underscores.
    step : estimator or text
        A step of which nothing is known learns if it has to be fitted.
    """
    inside = _inside(step)
    if inside is None:
        if _learns(step):
            yield name
        return
    for inner, one in inside:
        yield from learning_steps(f"{name}__{inner}", one)


def _inside(step: Any) -> Iterable[tuple[str, Any]] | None:
    """What a step consists of; None of one that stands alone. Subclasses may do anything."""
    if type(step) is Pipeline:
        return list(step.steps)
    if type(step) is FeatureUnion:
        return list(step.transformer_list)
    if type(step) is not ColumnTransformer or any(_chooses(one) for *_, one in step.transformers):
        return None
    return [*((name, one) for name, one, _ in step.transformers), ("remainder", step.remainder)]


def _chooses(columns: Any) -> bool:
    """Whether columns are chosen by looking at their cells; their types are as public as names."""
    return callable(columns) and type(columns) is not make_column_selector


def _learns(step: Any) -> bool:
    if step is None or (isinstance(step, str) and step in ("passthrough", "drop")):
        return False
    return bool(get_tags(step).requires_fit) and not _is_told(step)


def _is_told(step: Any) -> bool:
    """Whether all that the step is fitted to is given by its parameters, or is the width."""
    if type(step) is OneHotEncoder or type(step) is OrdinalEncoder:
        counts = step.min_frequency is not None or step.max_categories is not None
        return not (isinstance(step.categories, str) or counts)
    if type(step) is SimpleImputer:
        kept = step.keep_empty_features and not step.add_indicator
        return bool(step.strategy == "constant" and step.fill_value is not None and kept)
    return type(step) is PolynomialFeatures
