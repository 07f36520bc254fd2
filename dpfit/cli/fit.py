"""``dpfit fit``: files in; model and ledger out."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from dpfit.cli import signals
from dpfit.cli.options import BudgetOptions, LockOptions, OutputOptions, ReadingOptions
from dpfit.cli.streams import Streams
from dpfit.errors import DpfitError, UsageError

if TYPE_CHECKING:
    from dpfit.cli.fit_inputs import FitInputs
    from dpfit.fitting.linear_fit import LinearFit
    from dpfit.privacy.ledger import Ledger
    from dpfit.privacy.ledger_document import Json


@dataclass(frozen=True, kw_only=True)
class FitOptions(BudgetOptions, ReadingOptions, LockOptions, OutputOptions):
    """Everything ``dpfit fit`` takes."""

    inputs: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Files, a folder of parts, or - for stdin."),
    ]
    algo: Annotated[
        str,
        typer.Option("--algo", metavar="NAME", help="dp-ight, dp-screen, dp-gd, dp-iht or dp-fw."),
    ] = "dp-ight"
    sparsity: Annotated[
        int | None, typer.Option("--sparsity", metavar="S", help="Coefficients to keep.")
    ] = None
    loss: Annotated[
        str | None,
        typer.Option(
            "--loss", metavar="NAME", help="logistic or squared [default: by the target's values]."
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
    entry_clip: Annotated[
        float | None,
        typer.Option(
            "--entry-clip", metavar="A", help="Bound on an entry over K; dp-iht, dp-fw: 0.2."
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
    n_rows: Annotated[
        int | None, typer.Option("--n-rows", metavar="N", help="Public number of rows.")
    ] = None
    n_features: Annotated[
        int | None, typer.Option("--n-features", metavar="D", help="Public number of columns.")
    ] = None
    labels: Annotated[
        str | None,
        typer.Option("--labels", metavar="NEG,POS", help="Public label set, positive one last."),
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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show charge, noise and settings; spend nothing.")
    ] = False
    non_private: Annotated[
        bool, typer.Option("--non-private", help="Fit without noise, for comparison.")
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

    streams = options.streams()
    signals.install(options.timeout)
    if options.json and options.output == "-" and not options.dry_run:
        raise UsageError("--json and -o - both want standard output")
    inputs = FitInputs.from_options(options)
    inputs.check_before_reading()
    _warn_of_no_privacy(options, inputs.ledger.path, streams)
    if options.ledger is not None and not os.path.exists(options.ledger):
        streams.inform(f"{options.ledger}: a new ledger, without a cap")
    fitted = inputs.load(streams)
    _report_assumptions(fitted, streams)
    if options.dry_run:
        _show_plan(fitted, inputs, streams, as_json=options.json)
        return
    _run(fitted, inputs, streams, as_json=options.json)


def _warn_of_no_privacy(options: FitOptions, ledger: str, streams: Streams) -> None:
    if options.dry_run or not (options.non_private or options.seed is not None):
        return
    why = "--non-private adds no noise" if options.non_private else "--seed repeats the noise"
    streams.warn(f"{why}: the model is not private, and {ledger} counts as unbounded from now on")


def _run(fitted: LinearFit, inputs: FitInputs, streams: Streams, *, as_json: bool) -> None:
    from dpfit.files.atomic import write_atomically

    run = _ChargedRun(fitted, inputs.ledger)
    try:
        with streams.progress_bar("fitting", fitted.plan.algorithm.steps) as show:
            outcome = fitted.run(run.reserve, show)
        with signals.uninterrupted():
            data = inputs.model(fitted, outcome).to_bytes()
            if inputs.model_path == "-":
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
            else:
                write_atomically(inputs.model_path, data, overwrite=inputs.force)
            run.written = True
            run.close("released", model_sha256=hashlib.sha256(data).hexdigest())
    except BaseException as error:
        signals.heard()
        if not run.written:  # else the failure was that of the last entry itself
            with contextlib.suppress(DpfitError):  # the charge stays with or without this entry
                run.close("aborted", reason=_reason(error))
        raise
    rows = _summary(fitted, inputs)
    if as_json:
        streams.result_json({"schema_version": 1, **_plan_json(fitted, inputs)})
    streams.summary_table("dpfit fit", rows)


def _reason(error: BaseException) -> str:
    return error.number.name if isinstance(error, signals.Interrupted) else type(error).__name__


class _ChargedRun:
    """The ledger's side of one run; closes what it opened, once."""

    def __init__(self, fitted: LinearFit, ledger: Ledger) -> None:
        self._fitted = fitted
        self._ledger = ledger
        self._open = False
        self._run = ""
        self.written = False

    def reserve(self, description: Json) -> None:
        with signals.uninterrupted():
            entry = self._ledger.reserve(self._fitted.plan.events, description)
            self._run = str(entry["run"])
            self._open = True

    def close(self, outcome: str, **detail: str) -> None:
        if self._open:
            with signals.uninterrupted():
                self._ledger.close(self._run, outcome, **detail)
                self._open = False


def _report_assumptions(fitted: LinearFit, streams: Streams) -> None:
    assumed = fitted.plan.facts.assumed()
    if assumed:
        listed = ", ".join(f"{fact.name}={_shown(fact.value)} ({fact.option})" for fact in assumed)
        streams.inform(f"assumed from the data and taken as public: {listed}")
    budget = fitted.request.budget
    if budget is not None and budget.delta is not None:
        n_rows = fitted.plan.facts.integer("rows")
        if budget.delta * n_rows > 1.0:
            streams.warn(f"delta {budget.delta:g} is above 1/rows: a whole record may leak")


def _show_plan(fitted: LinearFit, inputs: FitInputs, streams: Streams, *, as_json: bool) -> None:
    if as_json:
        streams.result_json({"schema_version": 1, "dry_run": True, **_plan_json(fitted, inputs)})
    else:
        streams.result_table("dry run: nothing was spent", _summary(fitted, inputs))


def _plan_json(fitted: LinearFit, inputs: FitInputs) -> dict[str, object]:
    plan, request = fitted.plan, fitted.request
    return {
        "model": inputs.model_path,
        "ledger": inputs.ledger.path,
        **fitted.description(),
        "loss": plan.loss.name,
        "noise_multipliers": plan.noise_multipliers(),
        "charge": _charge(fitted),
        "events": [event.to_json() for event in plan.events],
        "assumed": [fact.name for fact in plan.facts.assumed()],
        "adjacency": str(request.adjacency),
    }


def _charge(fitted: LinearFit) -> dict[str, float] | None:
    from dpfit.privacy.accountant import compose

    request = fitted.request
    cost = compose(fitted.plan.events, request.adjacency)
    if cost.infinite or request.budget is None:
        return None
    charge = {"mu": cost.mu(), "rho": cost.rho_bound()}
    delta = request.budget.report_delta
    if delta is not None:
        charge |= {"epsilon": cost.epsilon(delta), "delta": delta}
    return charge


def _summary(fitted: LinearFit, inputs: FitInputs) -> list[tuple[str, str]]:
    plan, request = fitted.plan, fitted.request
    charge = _charge(fitted)
    spent = "NOT PRIVATE" if charge is None else _listed(charge)
    settings = _listed(plan.algorithm.settings())
    shape = f"{plan.facts.integer('rows')} rows, {plan.facts.integer('features')} features"
    return [
        ("data", f"{request.dataset}: {shape}"),
        ("algorithm", f"{plan.algorithm.name}, {plan.loss.name} loss"),
        ("settings", settings),
        ("row map", f"{plan.grid.row_map} to norm {plan.grid.row_norm:g}"),
        ("charge", f"{spent} ({request.adjacency})"),
        ("noise", f"{_listed(plan.noise_multipliers())} (times the largest share of a record)"),
        ("model", inputs.model_path),
        ("ledger", inputs.ledger.path),
    ]


def _listed(values: Mapping[str, object]) -> str:
    texts = {k: f"{v:.6g}" if isinstance(v, float) else str(v) for k, v in values.items()}
    return ", ".join(f"{name} {text}" for name, text in texts.items())


def _shown(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_shown(item) for item in value) + "]"
    if isinstance(value, float):
        return f"{value:g}" if math.isfinite(value) else "?"
    return str(value)


OPTIONS, BODY = FitOptions, fit
