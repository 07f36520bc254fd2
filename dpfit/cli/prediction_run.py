"""Reading, predicting and writing in blocks: memory does not grow with the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.cli.metrics import metrics_for
from dpfit.cli.prediction_output import (
    Columns,
    check_output,
    prediction_writer,
    show_evaluation,
    text_of,
)
from dpfit.cli.reading import prediction_read_options
from dpfit.data.open import expand_inputs, format_of
from dpfit.data.reader import Reader
from dpfit.errors import DataError, UsageError
from dpfit.files.linear_model import LinearModel, parse_linear_model
from dpfit.fitting.prediction import LinearPredictor

if TYPE_CHECKING:
    from dpfit.cli.predict import PredictOptions

Floats: TypeAlias = NDArray[np.float64]

_OF_RATINGS = ("user", "item", "value", "pairs", "top", "grouped", "ignore_new_items")


def predict_rows(options: PredictOptions, content: bytes) -> None:
    """Run ``dpfit predict`` with a linear model, the content of the model file."""
    model = parse_linear_model(content, options.model)
    options.refuse(_OF_RATINGS, "is for models of ratings; this one is of rows")
    if options.proba and model.classes is None:
        raise UsageError("--proba needs a model of classes; this one predicts a value")
    with options.streams().waiting_for(options.inputs):
        paths = expand_inputs(options.inputs)
        check_columns(paths[0], format_of(paths[0], str(options.format)), model)
        reader = Reader(options.inputs, prediction_read_options(options, model))
    check_output(options, [*reader.paths, options.model])
    predictor = LinearPredictor(model)
    metrics = metrics_for(model, options.inputs[0]) if options.evaluate else None
    with prediction_writer(options) as write:
        for block in reader:
            margins = predictor.margins(block)
            write(_columns(options, model, predictor, margins))
            if metrics is not None:
                with np.errstate(over="ignore", invalid="ignore"):
                    metrics.add(block, margins)
    if metrics is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            values = metrics.values()
        show_evaluation(values, "the file's labels", as_json=options.json)


def check_columns(path: str, kind: str, model: LinearModel) -> None:
    """Named columns and numbered ones are not interchangeable."""
    named = kind in ("csv", "tsv")
    if model.feature_map is not None and kind == "libsvm":
        raise DataError(
            "its columns have numbers, the model was fitted to columns with names",
            path=path,
            hint="give a CSV or Parquet file with the model's columns",
        )
    if model.feature_map is None and named:
        raise DataError(
            "its columns have names, the model was fitted to numbered columns",
            path=path,
            hint="give a LIBSVM file, or Parquet with lists of indices and values",
        )


def _columns(
    options: PredictOptions, model: LinearModel, predictor: LinearPredictor, margins: Floats
) -> Columns:
    if options.proba:
        return _by_class("probability", model, predictor.means(margins))
    if options.margin:
        return _by_class("margin", model, margins)
    columns: Columns = {"prediction": predictor.answers(margins)}
    if options.json and model.classes is not None:
        columns |= _by_class("probability", model, predictor.means(margins))
    return columns


def _by_class(name: str, model: LinearModel, values: Floats) -> Columns:
    """One column, or one for each class of a model of several."""
    if values.ndim == 1:
        return {name: values}
    labels = [text_of(label) for label in model.classes or ()]
    return {f"{name}:{label}": part for label, part in zip(labels, values.T, strict=True)}
