"""What a completion of ratings can be told about its input and its algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from dpfit.cli.options import BudgetOptions


@dataclass(frozen=True, kw_only=True)
class MatrixOptions(BudgetOptions):
    """What does not depend on where the ratings come from."""

    user: Annotated[
        str | None, typer.Option("--user", metavar="COLUMN", help="Column of users (CSV, Parquet).")
    ] = None
    item: Annotated[
        str | None, typer.Option("--item", metavar="COLUMN", help="Column of items.")
    ] = None
    value: Annotated[
        str | None, typer.Option("--value", metavar="COLUMN", help="Column of ratings.")
    ] = None
    range: Annotated[
        tuple[float, float] | None,
        typer.Option(
            "--range", metavar="LOW HIGH", help="Public bounds of a rating; those beyond are cut."
        ),
    ] = None
    items: Annotated[
        str | None,
        typer.Option("--items", metavar="FILE", help="Public list of all items, one a line."),
    ] = None
    n_users: Annotated[
        int | None, typer.Option("--n-users", metavar="N", help="Public number of users.")
    ] = None
    rank: Annotated[
        int | None,
        typer.Option("--rank", metavar="R", help="Factors at most; 0: biases [default: by rule]."),
    ] = None
    huber_knee: Annotated[
        float | None,
        typer.Option(
            "--huber-knee",
            metavar="A",
            help="Where Huber noise turns exponential, 1 to 4 [default: 2; pure: 1].",
        ),
    ] = None
    sweeps: Annotated[
        int | None,
        typer.Option("--sweeps", metavar="T", help="Noisy moves of factors [default: by rule]."),
    ] = None
    passes: Annotated[
        int | None,
        typer.Option("--passes", metavar="T", help="Noisy looks at biases [default: by rule]."),
    ] = None
    max_per_user: Annotated[
        float | None,
        typer.Option(
            "--max-per-user",
            metavar="K",
            help="A user's ratings weigh like K of them at most [default: 20].",
        ),
    ] = None
