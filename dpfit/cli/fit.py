"""``dpfit fit``: files in; model and ledger out."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from dpfit.cli import signals
from dpfit.cli.options import BudgetOptions, LockOptions, OutputOptions, ReadingOptions
from dpfit.cli.streams import Streams
from dpfit.errors import UsageError

if TYPE_CHECKING:
    from dpfit.cli.fit_inputs import FitInputs
    from dpfit.fitting.linear_fit import LinearFit


@dataclass(frozen=True, kw_only=True)
class FitOptions(BudgetOptions, ReadingOptions, LockOptions, OutputOptions):
    """Everything ``dpfit fit`` takes."""

    inputs: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Files, a folder of parts, or - for stdin."),
    ]
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
    dataset: Annotated[
        str | None,
        typer.Option("--dataset", metavar="NAME", help="Name in the ledger [default: STEM]."),
    ] = None
    ledger: Annotated[
        str | None,
        typer.Option("--ledger", metavar="FILE", help="Ledger [default: STEM.ledger.json]."),
    ] = None
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Model [default: STEM.model.json]."),
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Replace an existing model.")] = False
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse to take any fact from the data as public.")
    ] = False
    calibration: Annotated[
        str,
        typer.Option(
            "--calibration",
            metavar="NAME",
            help="Noise: exact [default], or as printed: paper, paper-corollary.",
        ),
    ] = "exact"
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show charge, noise and settings; spend nothing.")
    ] = False
    non_private: Annotated[
        bool, typer.Option("--non-private", help="Fit without noise, by the same rules.")
    ] = False
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", help="Reproducible noise. The result is NOT private."),
    ] = None


def fit(options: FitOptions) -> None:
    """Fit a sparse model under differential privacy.

    Writes STEM.model.json and charges STEM.ledger.json in the working directory.
    """
    from dpfit.cli.fit_inputs import FitInputs
    from dpfit.cli.fit_report import report_assumptions, report_plan, report_printed, report_ridge

    streams = options.streams()
    signals.install(options.timeout)
    if options.json and options.output == "-" and not options.dry_run:
        raise UsageError("--json and -o - both want standard output")
    inputs = FitInputs.from_options(options)
    inputs.check_before_reading(writes=not options.dry_run)
    _warn_of_no_privacy(inputs, streams, dry_run=options.dry_run)
    if options.algo == "auto":
        streams.step(f"--algo auto: {inputs.request.algorithm}")
    if options.ledger is not None and not os.path.exists(options.ledger):
        streams.inform(f"{options.ledger}: a new ledger, without a cap")
    fitted = inputs.load(streams)
    report_assumptions(fitted, streams)
    report_printed(fitted, streams)
    report_ridge(fitted, streams)
    if options.dry_run:
        inputs.ledger.check(fitted.plan.events)
        report_plan(fitted, inputs, streams, as_json=options.json)
        return
    _run(fitted, inputs, streams, as_json=options.json)


def _warn_of_no_privacy(inputs: FitInputs, streams: Streams, *, dry_run: bool) -> None:
    request = inputs.request
    if dry_run or request.private:
        return
    why = "there is no noise" if request.without_noise else "--seed repeats the noise"
    ledger = inputs.ledger.path
    streams.warn(f"{why}: the model is not private, and {ledger} counts as unbounded from now on")


def _run(fitted: LinearFit, inputs: FitInputs, streams: Streams, *, as_json: bool) -> None:
    from dpfit.cli.charged_run import charged_run
    from dpfit.cli.fit_report import report_result

    plan = fitted.plan
    with charged_run(plan.events, inputs.ledger) as run:
        with streams.progress_bar("fitting", plan.algorithm.steps) as show:

            def between_steps(done: int) -> None:
                signals.raise_pending()
                show(done)

            # Raised amid the threads' locks, an interruption could leave one held for ever.
            with signals.uninterrupted():
                outcome = fitted.run(run.reserve, between_steps)
        model = inputs.model(fitted, outcome).to_bytes()
        run.write(model, inputs.model_path, overwrite=inputs.force)
    report_result(fitted, inputs, streams, as_json=as_json)


OPTIONS, BODY = FitOptions, fit
