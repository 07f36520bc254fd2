"""Exact metrics of a public file: no noise, no charge."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from dpfit.cli.metrics import metrics_for
from dpfit.cli.prediction_run import check_columns
from dpfit.cli.reading import prediction_read_options
from dpfit.data.reader import Reader
from dpfit.errors import UsageError
from dpfit.fitting.prediction import LinearPredictor

if TYPE_CHECKING:
    from dpfit.cli.evaluate import EvaluateOptions
    from dpfit.files.linear_model import LinearModel

_OF_CHARGES: Final = ("eps", "delta", "rho", "mu", "seed", "ledger", "strict", "dry_run")


def evaluate_publicly(options: EvaluateOptions, model: LinearModel) -> None:
    """Run ``dpfit evaluate --public``."""
    for name in (*_OF_CHARGES, "n_rows", "loss_clip"):
        if getattr(options, name) not in (None, False):
            raise UsageError(f"--{name.replace('_', '-')} has no meaning with --public")
    with options.streams().waiting_for(options.inputs):
        reader = Reader(options.inputs, prediction_read_options(options, model))
    check_columns(reader.paths[0], reader.format, model)
    predictor, metrics = LinearPredictor(model), metrics_for(model, options.inputs[0])
    with np.errstate(over="ignore", invalid="ignore"):
        for block in reader:
            metrics.add(block, predictor.margins(block))
        found = {name: v for name, v in metrics.values().items() if math.isfinite(v)}
    streams = options.streams()
    if options.json:
        named = {name.replace(" ", "_"): value for name, value in found.items()}
        streams.result_json({"schema_version": 1, "private": False, "metrics": named})
    else:
        rows = [(name, f"{value:.6g}") for name, value in found.items()]
        streams.result_table("exact metrics of a public file: nothing was charged", rows)
