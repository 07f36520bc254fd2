"""What is said about an input of rows: how to read it, and which facts are public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from dpfit.cli.options import Format, ReadingOptions


@dataclass(frozen=True, kw_only=True)
class RowOptions(ReadingOptions):
    """Of an input with targets."""

    format: Annotated[
        Format, typer.Option("--format", help="Input format; auto goes by the file's extension.")
    ] = Format.AUTO
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
    unit: Annotated[
        str | None,
        typer.Option(
            "--unit",
            metavar="COLUMN",
            help="Column of people: protect all rows of one; in LIBSVM qid.",
        ),
    ] = None
    n_units: Annotated[
        int | None, typer.Option("--n-units", metavar="N", help="Public number of units.")
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
