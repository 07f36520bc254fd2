"""``dpfit audit``: attacks a configuration, and sets what it shows beside what is claimed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from dpfit.cli import signals
from dpfit.cli.matrix_options import MatrixOptions
from dpfit.cli.model_options import ModelOptions
from dpfit.cli.options import OutputOptions, RatingFormat
from dpfit.cli.row_options import RowOptions
from dpfit.errors import PrivacyError
from dpfit.privacy.adjacency import Adjacency


@dataclass(frozen=True, kw_only=True)
class AuditOptions(ModelOptions, MatrixOptions, RowOptions, OutputOptions):
    """Everything ``dpfit audit`` takes: all of a configuration, and of how its input is read."""

    algo: Annotated[
        str,
        typer.Option(
            "--algo", metavar="NAME", help="One of dpfit fit with noise, or complete-matrix."
        ),
    ] = "auto"
    noise: Annotated[
        str | None,
        typer.Option(
            "--noise",
            metavar="LAW",
            help="In medians: l2, l1 or gaussian; of complete-matrix: gaussian, laplace or huber "
            "[default: by rule].",
        ),
    ] = None
    adjacency: Annotated[
        Adjacency | None,
        typer.Option(
            "--adjacency",
            help="Neighbours: a record replaced, or left out "
            "[default: that of the command: of ratings add-remove].",
        ),
    ] = None  # type: ignore[assignment]
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="FILE", help="Attack among real records. NOT private."),
    ] = None
    format: Annotated[
        RatingFormat,
        typer.Option("--format", help="Of --data; auto goes by the file's extension."),
    ] = RatingFormat.AUTO  # type: ignore[assignment]
    attack: Annotated[
        str | None,
        typer.Option(
            "--attack",
            metavar="NAME",
            help="white-box, black-box, score or one-run [default: white-box].",
        ),
    ] = None
    trials: Annotated[
        int, typer.Option("--trials", metavar="N", help="Runs in each of two worlds, 20 or more.")
    ] = 1000
    confidence: Annotated[
        float, typer.Option("--confidence", metavar="C", help="Of each bound.")
    ] = 0.95
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            metavar="N",
            help="Synthetic records or users [default: by attack, 500 or 50].",
        ),
    ] = None
    features: Annotated[
        int | None,
        typer.Option(
            "--features",
            metavar="D",
            help="Their columns [default: 3] or items [default: 24]; "
            "canaries of one-run [default: 1000].",
        ),
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
    apart by what it releases. Charges no ledger, and reads no records but those of --data.
    """
    from dpfit.cli.audit_inputs import audit_of, check, settled
    from dpfit.cli.audit_report import result_json, result_rows

    streams = options.streams()
    signals.install(options.timeout)
    check(options)
    options = settled(options)
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
    if finding.refuted:
        more = "--features" if prepared.trials == 1 else "--trials"
        raise PrivacyError(
            "the audit shows more than is claimed",
            hint="one audit in twenty does by chance: repeat it with "
            f"more {more} and another --seed, then report it as "
            "SECURITY.md and man dpfit-privacy say",
        )


OPTIONS, BODY = AuditOptions, audit
