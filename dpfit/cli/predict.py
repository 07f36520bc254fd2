"""``dpfit predict``: one prediction a line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import typer

from dpfit.cli import signals
from dpfit.cli.options import OutputOptions, RatingFormat, ReadingOptions
from dpfit.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class PredictOptions(ReadingOptions, OutputOptions):
    """Everything ``dpfit predict`` takes."""

    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Model file that fit or complete-matrix wrote.")
    ]
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Files, folders of parts, URLs, or - for stdin."),
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
    pairs: Annotated[
        str | None,
        typer.Option("--pairs", metavar="FILE", help="Of ratings: the pairs to predict."),
    ] = None
    top: Annotated[
        int | None,
        typer.Option("--top", metavar="N", help="Of ratings: the N best new items of each user."),
    ] = None
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="COLUMN", help="Column of users [default: the model's]."),
    ] = None
    item: Annotated[
        str | None,
        typer.Option("--item", metavar="COLUMN", help="Column of items [default: the model's]."),
    ] = None
    value: Annotated[
        str | None,
        typer.Option("--value", metavar="COLUMN", help="Column of ratings [default: the model's]."),
    ] = None
    grouped: Annotated[
        bool,
        typer.Option("--grouped", help="Each user's ratings stand together: read user by user."),
    ] = False
    ignore_new_items: Annotated[
        bool,
        typer.Option("--ignore-new-items", help="Leave out items that the model does not know."),
    ] = False
    format: Annotated[
        RatingFormat,
        typer.Option("--format", help="Input format; auto goes by the file's extension."),
    ] = RatingFormat.AUTO
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write here; .csv and .parquet by extension."
        ),
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output.")] = False

    def refuse(self, names: Iterable[str], why: str) -> None:
        """None of these options may be given."""
        for name in names:
            if getattr(self, name):
                raise UsageError(f"--{name.replace('_', '-')} {why}")


def predict(options: PredictOptions) -> None:
    """Predict with a model: one line a row on stdout, labels by default.

    With a model of ratings, from complete-matrix: the pairs of a file, or the best items of users.
    """
    if options.proba and options.margin:
        raise UsageError("--proba and --margin exclude each other")
    signals.install()
    from dpfit.files.model_file import is_of_factors, read_model_file

    content = read_model_file(options.model)
    if is_of_factors(content):
        from dpfit.cli.rating_prediction_run import predict_ratings

        predict_ratings(options, content)
    else:
        from dpfit.cli.prediction_run import predict_rows

        predict_rows(options, content)


OPTIONS, BODY = PredictOptions, predict
