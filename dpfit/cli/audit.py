"""``dpfit audit``: attacks a configuration, and sets what it shows beside what is claimed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from dpfit.cli import signals
from dpfit.cli.model_options import ModelOptions
from dpfit.cli.options import Format, OutputOptions
from dpfit.errors import PrivacyError


@dataclass(frozen=True, kw_only=True)
class AuditOptions(ModelOptions, OutputOptions):
    """Everything ``dpfit audit`` takes."""

    data: Annotated[
        str | None,
        typer.Option("--data", metavar="FILE", help="Attack among real records. NOT private."),
    ] = None
    format: Annotated[
        Format, typer.Option("--format", help="Of --data; auto goes by the file's extension.")
    ] = Format.AUTO
    label: Annotated[
        str | None, typer.Option("--label", metavar="COLUMN", help="Target column of --data.")
    ] = None
    attack: Annotated[
        str | None,
        typer.Option(
            "--attack",
            metavar="NAME",
            help="white-box, black-box, score or one-run [default: by algorithm].",
        ),
    ] = None
    trials: Annotated[
        int, typer.Option("--trials", metavar="N", help="Runs in each of two worlds.")
    ] = 1000
    confidence: Annotated[
        float, typer.Option("--confidence", metavar="C", help="Of each bound.")
    ] = 0.95
    rows: Annotated[
        int, typer.Option("--rows", metavar="N", help="Synthetic records, or users.")
    ] = 50
    features: Annotated[
        int,
        typer.Option(
            "--features", metavar="D", help="Their columns or items; canaries of one-run."
        ),
    ] = 3
    rank: Annotated[
        int | None, typer.Option("--rank", metavar="R", help="Of --algo complete-matrix.")
    ] = None
    sweeps: Annotated[
        int | None, typer.Option("--sweeps", metavar="T", help="Of --algo complete-matrix.")
    ] = None
    passes: Annotated[
        int | None, typer.Option("--passes", metavar="T", help="Of --algo complete-matrix.")
    ] = None
    max_per_user: Annotated[
        float | None,
        typer.Option("--max-per-user", metavar="K", help="Of --algo complete-matrix."),
    ] = None
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="Repeat an audit to the bit.")
    ] = None
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", help="End after so long, as SIGTERM does."),
    ] = None


def audit(options: AuditOptions) -> None:
    """Attack a configuration and compare what it shows with what is claimed.

    Runs it many times on two synthetic neighbouring data sets, with real noise, and tells them
    apart by what it releases. Charges no ledger, and reads no file but that of --data.
    """
    from dpfit.cli.audit_inputs import audit_of
    from dpfit.cli.audit_report import result_json, result_rows

    streams = options.streams()
    signals.install(options.timeout)
    if options.data is not None:
        streams.warn(f"--data {options.data}: what this audit prints is NOT private")
    prepared = audit_of(options)
    duration = prepared.seconds()
    runs = "1 run" if prepared.trials == 1 else f"{prepared.trials} runs in each of two worlds"
    streams.inform(f"{prepared.attack} attack, {runs}, about {duration:.0f} seconds")
    with streams.progress_bar("attacking", prepared.steps) as show:

        def between_runs(done: int) -> None:
            signals.raise_pending()
            show(done)

        finding = prepared.run(between_runs)
    if options.json:
        streams.result_json(result_json(options, prepared, finding))
    else:
        streams.result_table(*result_rows(options, prepared, finding))
    if not finding.holds:
        raise PrivacyError("the audit shows more than is claimed", hint="repeat it, then report it")


OPTIONS, BODY = AuditOptions, audit
