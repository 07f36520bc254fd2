"""Reading options of the command line as options of the readers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dpfit.data.features import FeatureMap
from dpfit.data.reader import ReadOptions
from dpfit.data.schema import Schema
from dpfit.errors import DataError
from dpfit.files.linear_model import LinearModel
from dpfit.privacy.records import DeclaredFacts

if TYPE_CHECKING:
    from dpfit.cli.fit import FitOptions
    from dpfit.cli.predict import PredictOptions


def read_options(options: FitOptions, schema: Schema, declared: DeclaredFacts) -> ReadOptions:
    """How ``dpfit fit`` reads its input."""
    labels = declared.labels
    return ReadOptions(
        format=str(options.format),
        label=options.label or schema.label,
        delimiter=options.delimiter,
        header=options.header,
        encoding=options.encoding,
        index_base=declared.index_base,
        n_features=declared.n_features,
        duplicates=str(options.duplicates),
        missing=str(options.missing),
        hash_bits=options.hash_bits,
        columns=schema.columns,
        textual_labels=None if labels is None else isinstance(labels[0], str),
        threads=options.threads or cpu_count(),
    )


def prediction_read_options(options: PredictOptions, model: LinearModel) -> ReadOptions:
    """How ``dpfit predict`` reads its input: by the model's columns and numbering."""
    try:
        columns = None if model.feature_map is None else FeatureMap.from_json(model.feature_map)
    except ValueError as error:
        raise DataError(f"its features.columns are {error}", path=options.model) from None
    textual = None if model.classes is None else isinstance(model.classes[0], str)
    return ReadOptions(
        format=str(options.format),
        label=options.label or model.label_column,
        delimiter=options.delimiter,
        header=options.header,
        encoding=options.encoding,
        index_base=model.index_base,
        n_features=None if model.hash_bits is not None else model.n_features,
        duplicates=str(options.duplicates),
        missing=str(options.missing),
        hash_bits=model.hash_bits,
        feature_map=columns,
        target_required=options.evaluate,
        ignore_new_features=options.ignore_new_features,
        textual_labels=textual,
        threads=options.threads or cpu_count(),
    )


def cpu_count() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
