"""``dpfit budget``: a privacy calculator, and the reader and opener of ledgers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Final

import typer

from dpfit.cli import signals
from dpfit.cli.budget_report import ledger_json, ledger_rows
from dpfit.cli.options import BudgetOptions, LockOptions, OutputOptions
from dpfit.errors import UsageError
from dpfit.privacy.accountant import gaussian_cost
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget, gaussian_scale
from dpfit.privacy.ledger import Ledger
from dpfit.privacy.ledger_frame import Cap

TABLE_DELTAS: Final = (1e-5, 1e-6, 1e-9)

_SIZES: Final = (1e-100, 1e100)
_MOST: Final = 1 << 40  # records or releases, as a fit allows; also keeps every quotient a float


class Mode(Enum):
    """What is asked for; the value ends the sentence about an option without a meaning."""

    CALCULATE = "without a LEDGER"
    START = "where --cap-eps and --cap-delta start a LEDGER"
    ADD_UP = "where a LEDGER is added up"


_ASKED: Final = ("eps", "delta", "rho", "mu")
_SENSITIVITY: Final = ("sensitivity", "records", "row_norm", "residual_clip")
_CAP: Final = ("cap_eps", "cap_delta")
_OPTIONS: Final = {
    Mode.CALCULATE: (*_ASKED, "iterations", *_SENSITIVITY),
    Mode.START: _CAP,
    Mode.ADD_UP: ("delta", "plot"),
}


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
        float | None,
        typer.Option(
            "--row-norm", metavar="K", help="With --records: l2 norm of a row [default: 1]."
        ),
    ] = None
    residual_clip: Annotated[
        float | None,
        typer.Option(
            "--residual-clip", metavar="TAU", help="With --records: residual bound [default: 1]."
        ),
    ] = None
    cap_eps: Annotated[
        float | None, typer.Option("--cap-eps", metavar="E", help="Start LEDGER with this cap.")
    ] = None
    cap_delta: Annotated[
        float | None, typer.Option("--cap-delta", metavar="D", help="Delta of the cap.")
    ] = None
    plot: Annotated[
        bool, typer.Option("--plot", help="Draw what LEDGER spent over time, against its cap.")
    ] = False


def budget(options: BudgetCommandOptions) -> None:
    """Convert budgets, show the noise they need, or add up a ledger.

    With LEDGER: recompute what was spent and what is left. With LEDGER, --cap-eps and --cap-delta:
    start a new ledger with that cap. Otherwise: a calculator.
    """
    signals.install(options.timeout)
    mode = _mode(options)
    if options.ledger is None:
        _calculate(options)
    elif mode is Mode.START:
        _start(options, options.ledger)
    else:
        _add_up(options, options.ledger)


def _mode(options: BudgetCommandOptions) -> Mode:
    """What is asked for; an option that it would ignore is refused."""
    mode = Mode.ADD_UP
    if options.ledger is None:
        mode = Mode.CALCULATE
    elif any(getattr(options, name) is not None for name in _CAP):
        mode = Mode.START
    for name in sorted({name for names in _OPTIONS.values() for name in names}):
        if name not in _OPTIONS[mode] and getattr(options, name) not in (None, False):
            raise UsageError(
                f"--{name.replace('_', '-')} has no meaning {mode.value}",
                hint="--print-config shows where each option comes from",
            )
    return mode


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
    if options.delta is not None:
        Budget.from_request(None, options.delta, None, 1.0)  # for its check of delta
    ledger = Ledger(path, lock_timeout=options.lock_timeout)
    document = ledger.read(must_exist=True)
    adjacency = document.cap.adjacency if document.cap else options.adjacency
    # The default cannot be told from a wish; any other relation than the cap's is a wish.
    if options.adjacency not in (adjacency, Adjacency.REPLACE_ONE):
        raise UsageError(f"the cap of {path} is under {adjacency}: leave --adjacency out")
    deltas = TABLE_DELTAS if options.delta is None else (options.delta,)
    if options.plot:
        if options.json:
            raise UsageError("--plot and --json exclude each other")
        from dpfit.cli.budget_plot import show_spending

        show_spending(document, adjacency, options.delta, options.streams())
        return
    if options.json:
        options.streams().result_json(ledger_json(document, adjacency, deltas))
        return
    for title, rows in ledger_rows(document, adjacency, deltas):
        options.streams().result_table(title, rows)


def _calculate(options: BudgetCommandOptions) -> None:
    budget_asked = Budget.from_request(options.eps, options.delta, options.rho, options.mu)
    squared_mu = budget_asked.squared_mu
    cost = gaussian_cost(squared_mu)
    deltas: tuple[float, ...] = TABLE_DELTAS
    if budget_asked.delta is not None:
        deltas = (budget_asked.delta, *(d for d in deltas if d != budget_asked.delta))
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
    _check_count("--iterations", count)
    scale = gaussian_scale(sensitivity, asked.squared_mu, count)
    return {
        "releases": count,
        "sensitivity_per_release": sensitivity,
        "noise_scale_per_release": scale,
    }


def _sensitivity(options: BudgetCommandOptions) -> float | None:
    if options.sensitivity is not None and options.records is not None:
        raise UsageError("--sensitivity and --records exclude each other")
    for name in ("row_norm", "residual_clip"):
        if options.records is None and getattr(options, name) not in (None, False):
            raise UsageError(f"--{name.replace('_', '-')} needs --records beside it")
    if options.sensitivity is not None:
        return _size("--sensitivity", options.sensitivity)
    if options.records is None:
        return None
    _check_count("--records", options.records)
    norm, clip = (
        _size("--row-norm", options.row_norm),
        _size("--residual-clip", options.residual_clip),
    )
    bound = norm * clip / options.records
    # A replaced record can turn its part of a sum round; a zeroed one only takes it away.
    return 2.0 * bound if options.adjacency is Adjacency.REPLACE_ONE else bound


def _check_count(option: str, value: int) -> None:
    if not 1 <= value <= _MOST:
        raise UsageError(f"{option} must be at least 1 and at most {_MOST}")


def _size(option: str, value: float | None) -> float:
    """A positive size, 1 if it is not given, such that no product of sizes leaves the floats."""
    least, most = _SIZES
    if value is not None and not least <= value <= most:
        raise UsageError(f"{option} must be a number between {least:g} and {most:g}")
    return 1.0 if value is None else value


OPTIONS, BODY = BudgetCommandOptions, budget
