"""``dpfit complete-matrix``: ratings in; item factors and ledger out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from dpfit.cli import signals
from dpfit.cli.matrix_options import MatrixOptions
from dpfit.cli.options import (
    LockOptions,
    OutputOptions,
    RatingDuplicates,
    RatingFormat,
    RunOptions,
    StorageOptions,
    TextOptions,
)
from dpfit.errors import UsageError
from dpfit.privacy.adjacency import Adjacency


@dataclass(frozen=True, kw_only=True)
class CompleteMatrixOptions(
    MatrixOptions, TextOptions, StorageOptions, RunOptions, LockOptions, OutputOptions
):
    """Everything ``dpfit complete-matrix`` takes."""

    inputs: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Files, folders of parts, URLs, or - for stdin."),
    ]
    algo: Annotated[
        str,
        typer.Option(
            "--algo", metavar="NAME", help="complete-matrix, or without noise: als, irls."
        ),
    ] = "complete-matrix"
    noise: Annotated[
        str,
        typer.Option("--noise", metavar="LAW", help="gaussian, laplace or huber."),
    ] = "gaussian"
    loss: Annotated[
        str | None,
        typer.Option("--loss", metavar="NAME", help="Of users: squared [default] or huber."),
    ] = None
    huber_threshold: Annotated[
        float | None,
        typer.Option(
            "--huber-threshold",
            metavar="H",
            help="Of --loss huber, in units of a rating [default: 0.25 of range].",
        ),
    ] = None
    duplicates: Annotated[
        RatingDuplicates,
        typer.Option(
            "--duplicates", help="A user's second rating of an item: an error, or what counts."
        ),
    ] = RatingDuplicates.ERROR
    format: Annotated[
        RatingFormat,
        typer.Option("--format", help="Input format; auto goes by the file's extension."),
    ] = RatingFormat.AUTO
    budget_report: Annotated[
        bool,
        typer.Option("--budget-report", help="Each release's share of the budget, in the ledger."),
    ] = False
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Model [default: STEM.factors.parquet]."
        ),
    ] = None
    eps: Annotated[
        float | None,
        typer.Option("--eps", metavar="E", help="Epsilon; Gaussian noise needs --delta."),
    ] = None
    delta: Annotated[
        float | None, typer.Option("--delta", metavar="D", help="Delta, well below 1/users.")
    ] = None
    adjacency: Annotated[
        Adjacency, typer.Option("--adjacency", help="Neighbours: a user replaced, or left out.")
    ] = Adjacency.ADD_REMOVE


def complete_matrix(options: CompleteMatrixOptions) -> None:
    """Complete a matrix of ratings under differential privacy of whole users.

    Writes item factors to STEM.factors.parquet and charges STEM.ledger.json in the working
    directory. Each user's own part follows from these and the user's ratings, see dpfit predict.
    """
    from dpfit.cli.charged_run import run_and_write
    from dpfit.cli.matrix_inputs import MatrixInputs
    from dpfit.cli.matrix_report import report_outcome, report_plan, report_result
    from dpfit.cli.run_report import report_assumed, report_before_reading

    streams = options.streams()
    signals.install(options.timeout)
    if options.json and options.output == "-":
        raise UsageError("--json and -o - both want standard output")
    with streams.waiting_for(options.inputs):
        inputs = MatrixInputs.from_options(options)
    inputs.check_before_reading(writes=not options.dry_run)
    report_before_reading(inputs.request, options, inputs.files, streams)
    fitted, items = inputs.load(streams)
    report_assumed(fitted.plan.facts, inputs.request.budget, streams, records="users")
    if options.dry_run:
        inputs.files.ledger.check(fitted.plan.events)
        report_plan(fitted, inputs.files, streams, as_json=options.json)
        return
    outcome = run_and_write(
        fitted,
        inputs.files,
        streams,
        task="completing",
        document=lambda outcome: inputs.model(fitted, items, outcome).to_bytes(),
    )
    report_outcome(fitted, outcome, streams)
    report_result(fitted, outcome, inputs.files, streams, as_json=options.json)


OPTIONS, BODY = CompleteMatrixOptions, complete_matrix
