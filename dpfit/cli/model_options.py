"""What a fit of rows can be told about its algorithm, its noise and its map of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from dpfit.cli.options import BudgetOptions


@dataclass(frozen=True, kw_only=True)
class ModelOptions(BudgetOptions):
    """A configuration: everything but the data and the files."""

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
    max_rows_per_unit: Annotated[
        int | None,
        typer.Option(
            "--max-rows-per-unit", metavar="M", help="With --unit: rows of one that take part."
        ),
    ] = None
    unit_clip: Annotated[
        float | None,
        typer.Option(
            "--unit-clip",
            metavar="C",
            help="With --unit: length of one's sum of gradients, in rows [default: by rule].",
        ),
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
    calibration: Annotated[
        str,
        typer.Option(
            "--calibration",
            metavar="NAME",
            help="Noise: exact [default], or as printed: paper, paper-corollary.",
        ),
    ] = "exact"
