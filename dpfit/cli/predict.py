"""``dpfit predict``: one prediction a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from dpfit.cli import signals
from dpfit.cli.options import OutputOptions, ReadingOptions
from dpfit.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class PredictOptions(ReadingOptions, OutputOptions):
    """Everything ``dpfit predict`` takes."""

    model: Annotated[str, typer.Argument(metavar="MODEL", help="Model file that fit wrote.")]
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Files, a folder of parts, or - for stdin."),
    ]
    proba: Annotated[
        bool, typer.Option("--proba", help="Print the probability of the positive class.")
    ] = False
    margin: Annotated[bool, typer.Option("--margin", help="Print the score.")] = False
    evaluate: Annotated[
        bool, typer.Option("--evaluate", help="Compare with the file's labels; not private.")
    ] = False
    ignore_new_features: Annotated[
        bool,
        typer.Option("--ignore-new-features", help="Ignore columns that the model does not know."),
    ] = False
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write here; .csv and .parquet by extension."
        ),
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output.")] = False


def predict(options: PredictOptions) -> None:
    """Predict with a model: one line a row on stdout, labels by default."""
    if options.proba and options.margin:
        raise UsageError("--proba and --margin exclude each other")
    signals.install()
    from dpfit.cli.prediction_run import predict_file

    predict_file(options)


OPTIONS, BODY = PredictOptions, predict
