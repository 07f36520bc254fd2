"""Reading, predicting and writing in blocks: memory does not grow with the file."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.cli.metrics import Metrics, metrics_for
from dpfit.cli.reading import prediction_read_options
from dpfit.cli.streams import printable
from dpfit.cli.targets import check_target
from dpfit.data.open import expand_inputs, format_of
from dpfit.data.reader import Reader
from dpfit.errors import DataError, UsageError
from dpfit.files.atomic import written_atomically
from dpfit.files.linear_model import LinearModel, read_linear_model
from dpfit.fitting.prediction import LinearPredictor

if TYPE_CHECKING:
    from dpfit.cli.predict import PredictOptions

Floats: TypeAlias = NDArray[np.float64]
Columns: TypeAlias = dict[str, NDArray[np.float64] | NDArray[np.object_]]
Writer: TypeAlias = Callable[[Columns], None]


def predict_file(options: PredictOptions) -> None:
    """Run ``dpfit predict``."""
    model = read_linear_model(options.model)
    if options.proba and model.classes is None:
        raise UsageError("--proba needs a model of classes; this one predicts a value")
    paths = expand_inputs(options.inputs)
    _check_columns(paths[0], format_of(paths[0], str(options.format)), model)
    reader = Reader(options.inputs, prediction_read_options(options, model))
    if options.output is not None and options.output != "-":
        reads = [*reader.paths, options.model]
        check_target(options.output, force=options.force, reads=reads, replaces_models_only=False)
    predictor = LinearPredictor(model)
    metrics = metrics_for(model, options.inputs[0]) if options.evaluate else None
    with _writer(options) as write:
        for block in reader:
            margins = predictor.margins(block)
            write(_columns(options, model, predictor, margins))
            if metrics is not None:
                with np.errstate(over="ignore", invalid="ignore"):
                    metrics.add(block, margins)
    if metrics is not None:
        _show(metrics, as_json=options.json)


def _check_columns(path: str, kind: str, model: LinearModel) -> None:
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
    labels = [_text(label) for label in model.classes or ()]
    return {f"{name}:{label}": part for label, part in zip(labels, values.T, strict=True)}


@contextlib.contextmanager
def _writer(options: PredictOptions) -> Iterator[Writer]:
    path = options.output
    if path is None or path == "-":
        yield lambda columns: _write_lines(sys.stdout.write, columns, as_json=options.json)
        sys.stdout.flush()
        return
    with written_atomically(path, overwrite=options.force) as stream:
        kind = os.path.splitext(path)[1].lower()
        if kind == ".parquet":
            with _parquet_writer(stream) as write:
                yield write
        elif kind == ".csv":
            yield _csv_writer(stream)
        else:
            yield lambda columns: _write_lines(
                lambda text: stream.write(text.encode()), columns, as_json=options.json
            )


def _write_lines(write: Callable[[str], object], columns: Columns, *, as_json: bool) -> None:
    if as_json:
        names, lists = list(columns), [column.tolist() for column in columns.values()]
        rows = zip(*lists, strict=True)
        text = [json.dumps(dict(zip(names, map(_plain, row), strict=True))) for row in rows]
    else:
        lists = [[_text(value) for value in column.tolist()] for column in columns.values()]
        text = [" ".join(row) for row in zip(*lists, strict=True)]
    if text:
        write("\n".join(text) + "\n")


def _csv_writer(stream: object) -> Writer:
    import csv
    import io

    started = False

    def write(columns: Columns) -> None:
        nonlocal started
        buffer = io.StringIO()
        rows = csv.writer(buffer, lineterminator="\n")
        if not started:
            rows.writerow(columns)
            started = True
        lists = [[_text(value) for value in column.tolist()] for column in columns.values()]
        rows.writerows(zip(*lists, strict=True))
        stream.write(buffer.getvalue().encode())  # type: ignore[attr-defined]

    return write


@contextlib.contextmanager
def _parquet_writer(stream: object) -> Iterator[Writer]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None

    def write(columns: Columns) -> None:
        nonlocal writer
        table = pa.table({name: pa.array(column.tolist()) for name, column in columns.items()})
        if writer is None:
            writer = pq.ParquetWriter(stream, table.schema)
        writer.write_table(table)

    try:
        yield write
    except BaseException:
        if writer is not None:  # unclosed, it would complain of the closed stream when collected
            with contextlib.suppress(Exception):
                writer.close()
        raise
    if writer is not None:
        writer.close()


def _show(metrics: Metrics, *, as_json: bool) -> None:
    """Asked for, so shown however quiet the run is; on stderr, beside the predictions.

    What left the range of numbers on targets such as 1e200 is left out.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        values = metrics.values()
    finite = {name: value for name, value in values.items() if math.isfinite(value)}
    if as_json:
        named = {name.replace(" ", "_"): value for name, value in finite.items()}
        evaluation = {"schema_version": 1, "private": False, **named}
        sys.stderr.write(json.dumps({"evaluation": evaluation}) + "\n")
        return
    text = ", ".join(f"{name} {value:.6g}" for name, value in finite.items())
    sys.stderr.write(f"dpfit: evaluation (from the file's labels, not private): {text}\n")


def _plain(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(value: object) -> str:
    plain = _plain(value)
    return repr(plain) if isinstance(plain, float) else printable(str(plain))
