"""A private evaluation from the shell: refusals first, then reading, charge and release."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpfit.cli import signals
from dpfit.cli.charged_run import charged_run
from dpfit.cli.prediction_run import check_columns
from dpfit.cli.reading import prediction_read_options
from dpfit.cli.run_files import RunFiles
from dpfit.cli.run_report import charge_text, report_assumed, report_before_reading
from dpfit.cli.streams import Streams, plain_table
from dpfit.data.reader import Reader
from dpfit.errors import PrivacyError, UsageError
from dpfit.fitting.charge import charge_of
from dpfit.fitting.private_evaluation import EvaluationRequest, PrivateEvaluation
from dpfit.fitting.released_metrics import CONFIDENCE, NoisyMetric, listed
from dpfit.fitting.requested_budget import requested_budget

if TYPE_CHECKING:
    from dpfit.cli.evaluate import EvaluateOptions
    from dpfit.files.linear_model import LinearModel


def evaluate_privately(options: EvaluateOptions, model: LinearModel) -> None:
    """Run ``dpfit evaluate`` on private records."""
    streams = options.streams()
    files = _files(options)
    request = _request(options, files.dataset)
    with streams.waiting_for(options.inputs):
        reader = Reader(options.inputs, prediction_read_options(options, model))
    check_columns(reader.paths[0], reader.format, model)
    evaluation = PrivateEvaluation(request, model)
    reads = [*reader.paths, options.model, options.config]
    files.check_apart_from(reads, writes=not options.dry_run)
    files.ledger.check(evaluation.events)
    report_before_reading(request, options, files, streams, what="evaluation")
    for text in evaluation.warnings:
        streams.warn(text)
    evaluation.read(reader, files.source)
    report_assumed(evaluation.facts, request.budget, streams, records="rows")
    if options.dry_run:
        _report_plan(evaluation, options, files, streams)
        return
    with charged_run(evaluation.events, files, streams) as run:
        with signals.uninterrupted():
            metrics = evaluation.run(run.reserve)
        run.show(_document(evaluation, metrics, options, files).encode())


def _files(options: EvaluateOptions) -> RunFiles:
    if options.inputs == ["-"] and options.ledger is None:
        raise UsageError(
            "reading standard input needs a name for the charge", hint="give --ledger LEDGER"
        )
    return RunFiles.from_options(options, ".model.json")


def _request(options: EvaluateOptions, dataset: str) -> EvaluationRequest:
    if all(value is None for value in (options.eps, options.delta, options.rho, options.mu)):
        raise UsageError(
            "no privacy budget was given",
            hint="give --eps, with --delta or without; a public file needs --public instead",
        )
    if options.n_rows is not None and options.n_rows < 1:
        raise UsageError(f"--n-rows must be at least 1, not {options.n_rows}")
    if options.strict and options.n_rows is None:
        raise PrivacyError(
            "--strict: not declared: --n-rows", hint="it is the public number of rows"
        )
    budget = requested_budget(options, seed=options.seed, without_noise=False)
    assert budget is not None
    return EvaluationRequest(
        budget=budget,
        dataset=dataset,
        adjacency=options.adjacency,
        n_rows=options.n_rows,
        loss_clip=options.loss_clip,
        strict=options.strict,
        seed=options.seed,
    )


def _report_plan(
    evaluation: PrivateEvaluation, options: EvaluateOptions, files: RunFiles, streams: Streams
) -> None:
    deviation = evaluation.noise.deviation
    if options.json:
        plan = _plan_json(evaluation, options, files)
        streams.result_json({"schema_version": 1, "dry_run": True, **plan})
        return
    noise = f"standard deviation {deviation:.4g} rows on each sum"
    rows = [*_rows(evaluation, files), ("noise", noise)]
    streams.result_table("dry run: nothing was spent", rows)


def _document(
    evaluation: PrivateEvaluation,
    metrics: Sequence[NoisyMetric],
    options: EvaluateOptions,
    files: RunFiles,
) -> str:
    if options.json:
        found = {"confidence": CONFIDENCE, "metrics": listed(metrics)}
        plan = _plan_json(evaluation, options, files)
        return json.dumps({"schema_version": 1, **found, **plan}, allow_nan=False) + "\n"
    named = [(one.name, _shown(one)) for one in metrics]
    title = f"private metrics; intervals are {CONFIDENCE:.0%} of the noise alone"
    return plain_table(title, [*named, *_rows(evaluation, files)]) + "\n"


def _shown(metric: NoisyMetric) -> str:
    if metric.value is None:
        return "not resolved at this budget"
    return f"{metric.value:.6g}  ({metric.low:.6g} to {metric.high:.6g})"


def _rows(evaluation: PrivateEvaluation, files: RunFiles) -> list[tuple[str, str]]:
    request, facts = evaluation.request, evaluation.facts
    return [
        ("data", f"{request.dataset}: {facts.integer('rows')} rows"),
        ("protects", "single rows"),
        ("charge", charge_text(evaluation.events, request)),
        ("ledger", files.ledger.path),
    ]


def _plan_json(
    evaluation: PrivateEvaluation, options: EvaluateOptions, files: RunFiles
) -> dict[str, Any]:
    request = evaluation.request
    return {
        "model": options.model,
        "ledger": files.ledger.path,
        **evaluation.description(),
        "charge": charge_of(evaluation.events, request.budget, request.adjacency),
        "events": [event.to_json() for event in evaluation.events],
        "noise_deviation": evaluation.noise.deviation,
        "assumed": [fact.name for fact in evaluation.facts.assumed()],
        "record": "row",
        "warnings": evaluation.warnings,
    }
