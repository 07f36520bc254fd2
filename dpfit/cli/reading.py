"""Reading options of the command line as options of the readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpfit.data.features import FeatureMap
from dpfit.data.pipeline import cpu_count
from dpfit.data.reader import ReadOptions
from dpfit.data.schema import ColumnRole, Schema
from dpfit.errors import DataError
from dpfit.files.linear_model import LinearModel

if TYPE_CHECKING:
    from dpfit.cli.evaluate import EvaluateOptions
    from dpfit.cli.predict import PredictOptions
    from dpfit.cli.row_options import RowOptions
    from dpfit.privacy.declared_facts import DeclaredFacts
    from dpfit.privacy.summary import Label


def read_options(options: RowOptions, schema: Schema, declared: DeclaredFacts) -> ReadOptions:
    """How an input of rows with targets is read."""
    columns = dict(schema.columns)
    if schema.label is not None and schema.label == (options.label or schema.label):
        columns[schema.label] = ColumnRole("label")
    return ReadOptions(
        format=str(options.format),
        label=options.label or schema.label,
        weight=options.weight,
        offset=options.offset,
        exposure=options.exposure,
        unit=options.unit,
        delimiter=options.delimiter,
        header=options.header,
        encoding=options.encoding,
        index_base=declared.index_base,
        n_features=declared.n_features,
        duplicates=str(options.duplicates),
        missing=str(options.missing),
        hash_bits=options.hash_bits,
        columns=columns,
        na=schema.na,
        labels=_of_one_kind(declared.labels),
        threads=cpu_count() if options.threads is None else options.threads,
    )


def prediction_read_options(
    options: PredictOptions | EvaluateOptions, model: LinearModel
) -> ReadOptions:
    """How input is read that a model is applied to: by the model's columns and numbering."""
    try:
        columns = None if model.feature_map is None else FeatureMap.from_json(model.feature_map)
    except ValueError as error:
        raise DataError(f"its features.columns are {error}", path=options.model) from None
    # Stored, not asked for: a model of a table also reads what has no label column.
    named = {
        "label": model.label_column,
        "weight": model.weight_column,
        "offset": model.offset_column,
        "exposure": model.exposure_column,
    }
    stored = {name: ColumnRole(role) for role, name in named.items() if name is not None}
    textual = model.classes is not None and isinstance(model.classes[0], str)
    return ReadOptions(
        format=str(options.format),
        label=options.label,
        delimiter=options.delimiter,
        header=options.header,
        encoding=options.encoding,
        index_base=model.index_base,
        n_features=None if model.hash_bits is not None else model.n_features,
        duplicates=str(options.duplicates),
        missing=str(options.missing),
        hash_bits=model.hash_bits,
        columns=stored,
        feature_map=columns,
        predicting=True,
        target_required=options.evaluate,
        ignore_new_features=options.ignore_new_features,
        labels=_of_one_kind(model.classes) if options.evaluate else None,
        textual_labels=textual,
        threads=cpu_count() if options.threads is None else options.threads,
    )


def _of_one_kind(
    labels: tuple[Label, ...] | None,
) -> tuple[float, ...] | tuple[str, ...] | None:
    if labels is None:
        return None
    if all(isinstance(label, str) for label in labels):
        return tuple(map(str, labels))
    return tuple(map(float, labels))
