"""``dpfit fit``: files in; model and ledger out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from dpfit.cli import signals
from dpfit.cli.model_options import ModelOptions
from dpfit.cli.options import LockOptions, OutputOptions, RunOptions, StorageOptions
from dpfit.cli.row_options import RowOptions
from dpfit.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class FitOptions(ModelOptions, RowOptions, StorageOptions, RunOptions, LockOptions, OutputOptions):
    """Everything ``dpfit fit`` takes."""

    inputs: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Files, folders of parts, URLs, or - for stdin."),
    ]
    tune: Annotated[
        list[str] | None,
        typer.Option(
            "--tune",
            metavar="NAME=V,V",
            help="Search settings privately, one option each: sparsity=100,300.",
        ),
    ] = None
    tune_runs: Annotated[
        float | None,
        typer.Option(
            "--tune-runs", metavar="R", help="Expected runs of --tune [default: the combinations]."
        ),
    ] = None
    keep_cache: Annotated[
        bool,
        typer.Option("--keep-cache", help="Keep the rows there for later fits: private data."),
    ] = False
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster", metavar="ADDRESS", help="Dask scheduler, tls://HOST:PORT, or local:N."
        ),
    ] = None
    insecure_cluster: Annotated[
        bool, typer.Option("--insecure-cluster", help="Allow a tcp:// scheduler.")
    ] = False
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Model [default: STEM.model.json]."),
    ] = None


def fit(options: FitOptions) -> None:
    """Fit a sparse model under differential privacy.

    Writes STEM.model.json and charges STEM.ledger.json in the working directory.
    """
    from dpfit.cli.charged_run import run_and_write
    from dpfit.cli.fit_inputs import FitInputs
    from dpfit.cli.fit_report import (
        report_assumptions,
        report_plan,
        report_printed,
        report_result,
        report_ridge,
        report_sparsity,
    )
    from dpfit.cli.run_report import report_before_reading

    streams = options.streams()
    signals.install(options.timeout)
    if options.json and options.output == "-":
        raise UsageError("--json and -o - both want standard output")
    with streams.waiting_for(options.inputs):
        inputs = FitInputs.from_options(options)
    inputs.check_before_reading(writes=not options.dry_run)
    report_before_reading(inputs.request, options, inputs.files, streams)
    if options.algo == "auto":
        streams.step(f"--algo auto: {inputs.request.algorithm}")
    with inputs.workers() as workers:
        fitted = inputs.load(streams, workers)
        report_assumptions(fitted, streams)
        report_printed(fitted, streams)
        report_ridge(fitted, streams)
        report_sparsity(fitted, streams)
        if options.dry_run:
            inputs.files.ledger.check(fitted.plan.events)
            report_plan(fitted, inputs, streams, as_json=options.json)
            return
        run_and_write(
            fitted,
            inputs.files,
            streams,
            task="fitting",
            document=lambda outcome: inputs.model(fitted, outcome).to_bytes(),
        )
    report_result(fitted, inputs, streams, as_json=options.json)


OPTIONS, BODY = FitOptions, fit
