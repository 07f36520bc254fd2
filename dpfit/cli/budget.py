"""``dpfit budget``: a privacy calculator, and the reader and opener of ledgers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Final

import typer

from dpfit.cli import signals
from dpfit.cli.budget_report import ledger_json, ledger_rows
from dpfit.cli.options import BudgetOptions, LockOptions, OutputOptions
from dpfit.errors import UsageError
from dpfit.privacy.accountant import Cost
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget, gaussian_scale
from dpfit.privacy.ledger import Ledger
from dpfit.privacy.ledger_document import Cap

TABLE_DELTAS: Final = (1e-5, 1e-6, 1e-9)


@dataclass(frozen=True, kw_only=True)
class BudgetCommandOptions(BudgetOptions, LockOptions, OutputOptions):
    """Everything ``dpfit budget`` takes."""

    ledger: Annotated[
        str | None, typer.Argument(metavar="LEDGER", help="A ledger to add up, or to start.")
    ] = None
    iterations: Annotated[
        int | None, typer.Option("--iterations", metavar="T", help="Releases to share the budget.")
    ] = None
    sensitivity: Annotated[
        float | None,
        typer.Option("--sensitivity", metavar="D", help="l2 sensitivity of each."),
    ] = None
    records: Annotated[
        int | None,
        typer.Option("--records", metavar="N", help="Rows, for a mean gradient's sensitivity."),
    ] = None
    row_norm: Annotated[
        float, typer.Option("--row-norm", metavar="K", help="With --records: l2 norm of a row.")
    ] = 1.0
    residual_clip: Annotated[
        float,
        typer.Option("--residual-clip", metavar="TAU", help="With --records: residual bound."),
    ] = 1.0
    cap_eps: Annotated[
        float | None, typer.Option("--cap-eps", metavar="E", help="Start LEDGER with this cap.")
    ] = None
    cap_delta: Annotated[
        float | None, typer.Option("--cap-delta", metavar="D", help="Delta of the cap.")
    ] = None


def budget(options: BudgetCommandOptions) -> None:
    """Convert budgets, show the noise they need, or add up a ledger.

    With LEDGER: recompute what was spent and what is left. With LEDGER, --cap-eps and --cap-delta:
    start a new ledger with that cap. Otherwise: a calculator.
    """
    signals.install(options.timeout)
    capped = options.cap_eps is not None or options.cap_delta is not None
    if options.ledger is None:
        if capped:
            raise UsageError("--cap-eps and --cap-delta need the LEDGER to start")
        _calculate(options)
    elif capped:
        _start(options, options.ledger)
    else:
        _add_up(options, options.ledger)


def _start(options: BudgetCommandOptions, path: str) -> None:
    cap = _cap(options)
    with signals.uninterrupted():
        waiting = signals.raise_pending
        Ledger(path, lock_timeout=options.lock_timeout, while_waiting=waiting).create(cap)
    if options.json:
        options.streams().result_json({"schema_version": 1, "ledger": path, "cap": cap.to_json()})
    else:
        options.streams().result(
            f"{path}: cap epsilon {cap.epsilon:g} at delta {cap.delta:g} ({cap.adjacency})"
        )


def _cap(options: BudgetCommandOptions) -> Cap:
    if options.cap_eps is None or options.cap_delta is None:
        given, other = "--cap-eps", "--cap-delta"
        if options.cap_eps is None:
            given, other = other, given
        raise UsageError(f"{given} needs {other} beside it")
    asked = Budget.from_request(options.cap_eps, options.cap_delta, None, None, prefix="--cap-")
    assert asked.epsilon is not None
    assert asked.delta is not None
    return Cap(asked.epsilon, asked.delta, options.adjacency)


def _add_up(options: BudgetCommandOptions, path: str) -> None:
    if any(v is not None for v in (options.eps, options.rho, options.mu, options.sensitivity)):
        raise UsageError("a LEDGER is added up as it is; --eps, --rho and --mu are for calculating")
    ledger = Ledger(path, lock_timeout=options.lock_timeout)
    document = ledger.read(must_exist=True)
    adjacency = document.cap.adjacency if document.cap else options.adjacency
    deltas = TABLE_DELTAS if options.delta is None else (options.delta,)
    if options.json:
        options.streams().result_json(ledger_json(document, adjacency, deltas))
        return
    for title, rows in ledger_rows(document, adjacency, deltas):
        options.streams().result_table(title, rows)


def _calculate(options: BudgetCommandOptions) -> None:
    budget_asked = Budget.from_request(options.eps, options.delta, options.rho, options.mu)
    squared_mu = budget_asked.squared_mu
    cost = Cost(gaussian=squared_mu, rho=squared_mu / 2, pure=None)
    deltas: tuple[float, ...] = TABLE_DELTAS
    if budget_asked.report_delta is not None:
        deltas = (budget_asked.report_delta, *(d for d in deltas if d != budget_asked.report_delta))
    noise = _noise(options, budget_asked)
    if options.json:
        document: dict[str, object] = {
            "schema_version": 1,
            "request": budget_asked.to_json(),
            "adjacency": str(options.adjacency),
            "mu": cost.mu(),
            "rho": cost.rho_bound(),
            "epsilon": [{"delta": d, "epsilon": cost.epsilon(d)} for d in deltas],
            **noise,
        }
        options.streams().result_json(document)
        return
    rows = [("mu", f"{cost.mu():.6g}"), ("rho", f"{cost.rho_bound():.6g}")]
    rows += [(f"epsilon at delta {d:g}", f"{cost.epsilon(d):.6g}") for d in deltas]
    rows += [(name.replace("_", " "), f"{value:.6g}") for name, value in noise.items()]
    options.streams().result_table(f"Gaussian releases, {options.adjacency}", rows)


def _noise(options: BudgetCommandOptions, asked: Budget) -> dict[str, float]:
    """Noise scale of each of the releases that share the budget, if they were described."""
    sensitivity = _sensitivity(options)
    if sensitivity is None:
        if options.iterations is not None:
            raise UsageError("--iterations needs --sensitivity, or --records with its bounds")
        return {}
    count = 1 if options.iterations is None else options.iterations
    if count < 1:
        raise UsageError("--iterations must be at least 1")
    scale = gaussian_scale(sensitivity, asked.squared_mu, count)
    return {
        "releases": count,
        "sensitivity_per_release": sensitivity,
        "noise_scale_per_release": scale,
    }


def _sensitivity(options: BudgetCommandOptions) -> float | None:
    if options.sensitivity is not None and options.records is not None:
        raise UsageError("--sensitivity and --records exclude each other")
    if options.sensitivity is not None:
        if not 0.0 < options.sensitivity < math.inf:
            raise UsageError("--sensitivity must be a positive finite number")
        return options.sensitivity
    if options.records is None:
        return None
    if options.records < 1:
        raise UsageError("--records must be at least 1")
    bound = options.row_norm * options.residual_clip / options.records
    if not 0.0 < bound < math.inf:
        raise UsageError("--row-norm and --residual-clip must be positive finite numbers")
    # A replaced record can turn its part of a sum round; a zeroed one only takes it away.
    return 2.0 * bound if options.adjacency is Adjacency.REPLACE_ONE else bound


OPTIONS, BODY = BudgetCommandOptions, budget
