"""``dpfit report``: what a model promises and what was spent, as a page that anybody can open."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dpfit.cli import signals
from dpfit.cli.options import OutputOptions
from dpfit.cli.streams import require_standard_output
from dpfit.cli.targets import check_apart, check_target
from dpfit.errors import UsageError
from dpfit.files.atomic import write_atomically
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget

if TYPE_CHECKING:
    from dpfit.privacy.ledger_document import LedgerDocument
    from dpfit.report.chart import Chart
    from dpfit.report.largest import Largest
    from dpfit.report.page import LedgerPart
    from dpfit.report.plan import Plan
    from dpfit.report.released_run import ReleasedRun

_OF_A_PLAN: Final = ("n_rows", "n_features", "sparsity", "eps", "delta", "adjacency")


@dataclass(frozen=True, kw_only=True)
class ReportOptions(OutputOptions):
    """Everything ``dpfit report`` takes."""

    model: Annotated[
        str | None,
        typer.Argument(metavar="[MODEL]", help="Model file that fit or complete-matrix wrote."),
    ] = None
    ledger: Annotated[
        str | None, typer.Argument(metavar="[LEDGER]", help="The ledger it was charged to.")
    ] = None
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The page; - is stdout.")
    ] = "report.html"
    png: Annotated[
        str | None,
        typer.Option("--png", metavar="FILE", help="Write the pictures to this file as well."),
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Replace existing outputs.")] = False
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Error to expect at each epsilon; needs no model and no data."),
    ] = False
    n_rows: Annotated[
        int | None, typer.Option("--n-rows", metavar="N", help="With --plan: number of rows.")
    ] = None
    n_features: Annotated[
        int | None,
        typer.Option("--n-features", metavar="D", help="With --plan: number of columns."),
    ] = None
    sparsity: Annotated[
        int | None,
        typer.Option(
            "--sparsity", metavar="S", help="With --plan: coefficients [default: all columns]."
        ),
    ] = None
    eps: Annotated[
        float | None, typer.Option("--eps", metavar="E", help="With --plan: an epsilon to mark.")
    ] = None
    delta: Annotated[
        float | None, typer.Option("--delta", metavar="D", help="With --plan: delta of the runs.")
    ] = None
    adjacency: Annotated[
        Adjacency | None,
        typer.Option("--adjacency", help="With --plan: neighbours [default: replace-one]."),
    ] = None


def report(options: ReportOptions) -> None:
    """Write what a model promises, and what was spent, as one page for any browser.

    The page holds the promise and its assumptions in plain words, the curves of privacy and of the
    best attack, the largest coefficients and the settings; with LEDGER also the budget spent over
    time. It needs no network. Everything comes from released values: nothing is charged.

    With --plan: the error to expect at each epsilon, before anything is spent.
    """
    signals.install()
    if options.png is not None:
        from dpfit.report.png import require_matplotlib

        require_matplotlib()
    (_write_plan if options.plan else _write_report)(options)


def _write_report(options: ReportOptions) -> None:
    for name in _OF_A_PLAN:
        if getattr(options, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} has a meaning with --plan only")
    if options.model is None:
        raise UsageError(
            "a MODEL is needed",
            hint="dpfit report MODEL LEDGER, or dpfit report --plan --n-rows N --n-features D "
            "--delta D before there is one",
        )
    _check_outputs(options, reads=[options.model, *([options.ledger] if options.ledger else [])])
    from dpfit.files.model_file import read_model_file
    from dpfit.report.page import ModelPage

    content = read_model_file(options.model)
    run, largest = _of_model(content, options.model)
    ledger = _of_ledger(options.ledger, run, content) if options.ledger is not None else None
    page = ModelPage(run, largest, ledger)
    title = "Privacy of the model" if run.private else "NOT PRIVATE"
    _write(options, page.to_bytes(), page.charts, title)
    if options.json:
        _say(options, private=run.private, charged=False)


def _of_model(content: bytes, path: str) -> tuple[ReleasedRun, Largest]:
    """What the file of a model of any kind says."""
    from dpfit.files.factor_model import parse_factor_model
    from dpfit.files.linear_model import parse_linear_model
    from dpfit.files.model_file import is_of_factors
    from dpfit.report.largest import largest_biases, largest_coefficients
    from dpfit.report.released_run import ReleasedRun

    if is_of_factors(content):
        factors = parse_factor_model(content, path)
        run = ReleasedRun.read(factors.provenance, private=factors.private, path=path)
        return run, largest_biases(factors)
    linear = parse_linear_model(content, path)
    run = ReleasedRun.read(linear.provenance, private=linear.private, path=path)
    return run, largest_coefficients(linear, path)


def _of_ledger(path: str, run: ReleasedRun, model: bytes) -> LedgerPart:
    """What a ledger, verified in all its parts, says beside a model."""
    from dpfit.privacy.ledger import Ledger
    from dpfit.report.page import LedgerPart
    from dpfit.report.protected import SpentOnEach
    from dpfit.report.released_run import USUAL_DELTA
    from dpfit.report.spending import Spending

    document = Ledger(path, lock_timeout=0.0).read(must_exist=True)
    adjacency, delta = run.adjacency, run.delta or USUAL_DELTA
    if document.cap is not None:
        adjacency, delta = document.cap.adjacency, document.cap.delta
    spending = Spending.of(document, adjacency, delta)
    number = _run_of(document, hashlib.sha256(model).hexdigest())
    return LedgerPart(spending, SpentOnEach.of(document, run.adjacency), number)


def _run_of(document: LedgerDocument, sha256: str) -> int | None:
    """Number of the run that released the model with that hash."""
    runs: list[object] = []
    for entry in document.entries():
        if entry["kind"] == "reserved":
            runs.append(entry["run"])
        elif entry.get("model_sha256") == sha256:
            return runs.index(entry["run"]) + 1
    return None


def _write_plan(options: ReportOptions) -> None:
    if options.model is not None:
        raise UsageError(
            "--plan takes no MODEL", hint="the page of a model shows the plan of its own numbers"
        )
    plan = _plan(options)
    _check_outputs(options, reads=[])
    from dpfit.report.page import PLAN_TITLE, plan_page

    _write(options, plan_page(plan, options.eps), [plan.chart(options.eps)], PLAN_TITLE)
    if options.json:
        points = [
            {"epsilon": e, "expected": plan.expected(e), "minimax": plan.yardstick(e)}
            for e in plan.epsilons(options.eps)
        ]
        _say(options, plan=points)


def _plan(options: ReportOptions) -> Plan:
    from dpfit.report.plan import Plan

    rows = _count("--n-rows", options.n_rows)
    features = _count("--n-features", options.n_features)
    sparsity = None if options.sparsity is None else _count("--sparsity", options.sparsity)
    if sparsity is not None and sparsity > features:
        raise UsageError("--sparsity is above --n-features")
    if options.delta is None:
        raise UsageError("--plan needs --delta", hint="well below 1/rows, for instance 1e-6")
    # For its checks; without an epsilon to mark those of delta alone.
    Budget.from_request(1.0 if options.eps is None else options.eps, options.delta, None, None)
    adjacency = options.adjacency or Adjacency.REPLACE_ONE
    return Plan(
        rows, features, None if sparsity == features else sparsity, options.delta, adjacency
    )


def _count(option: str, value: int | None) -> int:
    if value is None:
        raise UsageError(f"--plan needs {option}")
    from dpfit.report.plan import MOST

    if not 1 <= value <= MOST:
        raise UsageError(f"{option} must be at least 1 and at most {MOST}")
    return value


def _check_outputs(options: ReportOptions, reads: Sequence[str]) -> None:
    """Refuse what could not or must not be written, before anything is read."""
    if options.output == "-":
        if options.json:
            raise UsageError("-o - and --json exclude each other")
        require_standard_output()
    else:
        check_target(options.output, force=options.force, reads=reads, replaces_models_only=False)
        _check_name("--output", options.output, "an HTML page", (".html", ".htm"))
    if options.png is not None:
        check_apart(options.png, [options.output])
        check_target(options.png, force=options.force, reads=reads, replaces_models_only=False)
        _check_name("--png", options.png, "a PNG picture", (".png",))


def _check_name(option: str, path: str, kind: str, endings: tuple[str, ...]) -> None:
    """Refuse a name that says that the file is something else."""
    if not path.lower().endswith(endings):
        raise UsageError(
            f"{option} {path}: what is written is {kind}",
            hint=f"let its name end in {' or '.join(endings)}",
        )


def _write(options: ReportOptions, page: bytes, charts: Sequence[Chart], title: str) -> None:
    if options.png is not None:
        from dpfit.report.png import png

        if not charts:
            raise UsageError("--png: nothing of this model can be drawn; leave it out")
        write_atomically(options.png, png(charts, title), overwrite=options.force)
    if options.output == "-":
        options.streams().result(page.decode().rstrip("\n"))
    else:
        write_atomically(options.output, page, overwrite=options.force)


def _say(options: ReportOptions, **values: object) -> None:
    options.streams().result_json({"schema_version": 1, "report": options.output, **values})


OPTIONS, BODY = ReportOptions, report
