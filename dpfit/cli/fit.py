"""``dpfit fit``: files in; model and ledger out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from dpfit.cli import signals
from dpfit.cli.options import (
    BudgetOptions,
    Format,
    LockOptions,
    OutputOptions,
    ReadingOptions,
    RunOptions,
)
from dpfit.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class FitOptions(BudgetOptions, ReadingOptions, RunOptions, LockOptions, OutputOptions):
    """Everything ``dpfit fit`` takes."""

    inputs: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Files, a folder of parts, or - for stdin."),
    ]
    format: Annotated[
        Format, typer.Option("--format", help="Input format; auto goes by the file's extension.")
    ] = Format.AUTO
    algo: Annotated[
        str,
        typer.Option(
            "--algo",
            metavar="NAME",
            help="auto, dp-screen, dp-gd, dp-ight, dp-iht, dp-fw, two-stage, median-objective, "
            "median-irls, median-cd; gd, ight, iht, fw.",
        ),
    ] = "auto"
    sparsity: Annotated[
        int | None, typer.Option("--sparsity", metavar="S", help="Coefficients to keep.")
    ] = None
    dense: Annotated[
        bool, typer.Option("--dense", help="No threshold at the end: dp-screen, dp-gd, auto.")
    ] = False
    loss: Annotated[
        str | None,
        typer.Option(
            "--loss",
            metavar="NAME",
            help="logistic, multinomial, squared, huber, absolute or poisson "
            "[default: by the target].",
        ),
    ] = None
    sparsity_mode: Annotated[
        str | None,
        typer.Option(
            "--sparsity-mode",
            metavar="MODE",
            help="S coefficients per-class [default], or joint: the same columns for all.",
        ),
    ] = None
    huber_threshold: Annotated[
        float | None,
        typer.Option(
            "--huber-threshold", metavar="H", help="In the target's units [default: 0.1 of range]."
        ),
    ] = None
    quantile: Annotated[
        float | None,
        typer.Option(
            "--quantile", metavar="Q", help="Of --loss absolute [default: 0.5, the median]."
        ),
    ] = None
    iterations: Annotated[
        int | None,
        typer.Option("--iterations", metavar="T", help="Noisy gradients [default: by rule]."),
    ] = None
    step_size: Annotated[
        float | None,
        typer.Option("--step-size", metavar="ETA", help="Step length [default: by rule]."),
    ] = None
    residual_clip: Annotated[
        float | None,
        typer.Option("--residual-clip", metavar="TAU", help="Residual bound [default: by rule]."),
    ] = None
    l1_radius: Annotated[
        float | None, typer.Option("--l1-radius", metavar="C", help="l1 ball of dp-fw.")
    ] = None
    selection: Annotated[
        str | None,
        typer.Option(
            "--selection", metavar="NAME", help="In dp-iht: one-shot [default] or peeling."
        ),
    ] = None
    projection_radius: Annotated[
        float | None,
        typer.Option("--projection-radius", metavar="C", help="l2 bound on models of dp-ight."),
    ] = None
    threshold: Annotated[
        str | None,
        typer.Option(
            "--threshold", metavar="WHEN", help="In dp-ight: each [default], decreasing or final."
        ),
    ] = None
    smoothing: Annotated[
        float | None,
        typer.Option(
            "--smoothing",
            metavar="H",
            help="Where median losses turn into lines, in the target's units [default: by rule].",
        ),
    ] = None
    ridge: Annotated[
        float | None,
        typer.Option(
            "--ridge", metavar="R", help="l2 penalty of medians, in records [default: by rule]."
        ),
    ] = None
    noise: Annotated[
        str | None,
        typer.Option(
            "--noise", metavar="LAW", help="In medians: l2, l1 or gaussian [default: by rule]."
        ),
    ] = None
    batches: Annotated[
        str | None,
        typer.Option(
            "--batches",
            metavar="NAME",
            help="In median-cd: disjoint, or full [default, given --delta].",
        ),
    ] = None
    entry_clip: Annotated[
        float | None,
        typer.Option("--entry-clip", metavar="A", help="Largest entry of a row, as a share of K."),
    ] = None
    row_norm: Annotated[
        float | None,
        typer.Option("--row-norm", metavar="K", help="Bound on a row's l2 norm [default: 1]."),
    ] = None
    normalize_rows: Annotated[
        bool | None,
        typer.Option(
            "--normalize-rows/--clip-rows",
            help="Scale every row to the norm K, or only those above it "
            "[default: normalize, or clip when --row-norm is given].",
        ),
    ] = None
    intercept: Annotated[
        bool, typer.Option("--intercept/--no-intercept", help="Fit an intercept.")
    ] = True
    n_rows: Annotated[
        int | None, typer.Option("--n-rows", metavar="N", help="Public number of rows.")
    ] = None
    n_features: Annotated[
        int | None, typer.Option("--n-features", metavar="D", help="Public number of columns.")
    ] = None
    weight: Annotated[
        str | None, typer.Option("--weight", metavar="COLUMN", help="Column of row weights.")
    ] = None
    max_weight: Annotated[
        float | None, typer.Option("--max-weight", metavar="W", help="Public bound on a weight.")
    ] = None
    offset: Annotated[
        str | None,
        typer.Option("--offset", metavar="COLUMN", help="Column that is added to the score."),
    ] = None
    exposure: Annotated[
        str | None,
        typer.Option("--exposure", metavar="COLUMN", help="Column whose logarithm is an offset."),
    ] = None
    max_exposure: Annotated[
        float | None,
        typer.Option("--max-exposure", metavar="X", help="Public bound on an exposure."),
    ] = None
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels", metavar="L,L,...", help="Public labels; of two the positive last."
        ),
    ] = None
    positive_label: Annotated[
        str | None, typer.Option("--positive-label", metavar="L", help="The positive class.")
    ] = None
    target_range: Annotated[
        tuple[float, float] | None,
        typer.Option("--target-range", metavar="LOW HIGH", help="Public range of a real target."),
    ] = None
    index_base: Annotated[
        str,
        typer.Option("--index-base", metavar="0|1|auto", help="Number of the first LIBSVM column."),
    ] = "auto"
    hash_bits: Annotated[
        int | None,
        typer.Option("--hash-bits", metavar="B", help="Hash columns without levels to 2^B."),
    ] = None
    schema: Annotated[
        str | None,
        typer.Option("--schema", metavar="FILE", help="TOML file of public facts and columns."),
    ] = None
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Model [default: STEM.model.json]."),
    ] = None
    calibration: Annotated[
        str,
        typer.Option(
            "--calibration",
            metavar="NAME",
            help="Noise: exact [default], or as printed: paper, paper-corollary.",
        ),
    ] = "exact"


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
    )
    from dpfit.cli.run_report import report_before_reading

    streams = options.streams()
    signals.install(options.timeout)
    if options.json and options.output == "-" and not options.dry_run:
        raise UsageError("--json and -o - both want standard output")
    inputs = FitInputs.from_options(options)
    inputs.check_before_reading(writes=not options.dry_run)
    report_before_reading(inputs.request, options, inputs.files.ledger.path, streams)
    if options.algo == "auto":
        streams.step(f"--algo auto: {inputs.request.algorithm}")
    fitted = inputs.load(streams)
    report_assumptions(fitted, streams)
    report_printed(fitted, streams)
    report_ridge(fitted, streams)
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
