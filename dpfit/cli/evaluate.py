"""``dpfit evaluate``: how well a model does on a private file, or on a public one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from dpfit.cli import signals
from dpfit.cli.options import (
    BudgetOptions,
    ChargeOptions,
    Format,
    LockOptions,
    OutputOptions,
    ReadingOptions,
)
from dpfit.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(BudgetOptions, ReadingOptions, ChargeOptions, LockOptions, OutputOptions):
    """Everything ``dpfit evaluate`` takes."""

    model: Annotated[str, typer.Argument(metavar="MODEL", help="Model file that fit wrote.")]
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Files with targets, folders of parts, URLs, or -."),
    ]
    public: Annotated[
        bool,
        typer.Option("--public", help="The file is public: exact metrics, no budget, no ledger."),
    ] = False
    loss_clip: Annotated[
        float | None,
        typer.Option(
            "--loss-clip",
            metavar="L",
            help="Bound on a row's log loss or deviance in private metrics [default: 4].",
        ),
    ] = None
    n_rows: Annotated[
        int | None, typer.Option("--n-rows", metavar="N", help="Public number of rows.")
    ] = None
    ignore_new_features: Annotated[
        bool,
        typer.Option("--ignore-new-features", help="Ignore columns that the model does not know."),
    ] = False
    format: Annotated[
        Format, typer.Option("--format", help="Input format; auto goes by the file's extension.")
    ] = Format.AUTO

    @property
    def evaluate(self) -> bool:
        """Targets are needed."""
        return True

    @property
    def output(self) -> str:
        """Metrics go to standard output."""
        return "-"

    @property
    def force(self) -> bool:
        """Nothing is replaced."""
        return False


def evaluate(options: EvaluateOptions) -> None:
    """Tell how well a model predicts the targets of a file, under differential privacy.

    Releases the error rate, log loss and AUC of two classes, the RMSE and MAE of values, or what
    else fits the model, all at once and charged to STEM.ledger.json. With --public the file is
    nobody's secret: the metrics are exact and nothing is charged.
    """
    signals.install(options.timeout)
    from dpfit.files.linear_model import parse_linear_model
    from dpfit.files.model_file import is_of_factors, read_model_file

    content = read_model_file(options.model)
    if is_of_factors(content):
        raise UsageError(
            f"{options.model}: a model of ratings has no private evaluation",
            hint="on public ratings use dpfit predict --pairs FILE --evaluate",
        )
    model = parse_linear_model(content, options.model)
    if options.public:
        from dpfit.cli.public_evaluation import evaluate_publicly

        evaluate_publicly(options, model)
    else:
        from dpfit.cli.evaluation_run import evaluate_privately

        evaluate_privately(options, model)


OPTIONS, BODY = EvaluateOptions, evaluate
