"""Options shared by commands, grouped as dataclasses; each command adds its own."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from dpfit.cli.command import ConfigurationOptions
from dpfit.cli.sizes import bytes_of
from dpfit.cli.streams import Streams
from dpfit.design.storage import Storage
from dpfit.errors import UsageError
from dpfit.privacy.adjacency import Adjacency

_LONGEST_WAIT = 1e8  # seconds, three years: what every timer of the system can count


class Color(StrEnum):
    """When to use colour."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Format(StrEnum):
    """Input formats."""

    AUTO = "auto"
    LIBSVM = "libsvm"
    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"


class RatingFormat(StrEnum):
    """Input formats of ratings; those of rows are among them."""

    AUTO = "auto"
    LIBSVM = "libsvm"
    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"
    MTX = "mtx"


class Duplicates(StrEnum):
    """What a repeated column index in a row means."""

    ERROR = "error"
    SUM = "sum"
    LAST = "last"


class RatingDuplicates(StrEnum):
    """What a user's second rating of an item means."""

    ERROR = "error"
    LAST = "last"


class Missing(StrEnum):
    """What an empty cell means."""

    ERROR = "error"
    ZERO = "zero"


@dataclass(frozen=True, kw_only=True)
class OutputOptions(ConfigurationOptions):
    """How a command talks."""

    json: Annotated[
        bool, typer.Option("--json", help="Print JSON: one object, or one a row; errors too.")
    ] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False
    verbose: Annotated[int, typer.Option("--verbose", "-v", count=True, help="Tell the steps.")] = 0
    progress: Annotated[
        bool | None,
        typer.Option(
            "--progress/--no-progress", help="Progress bar [default: if stderr is a terminal]."
        ),
    ] = None
    color: Annotated[Color, typer.Option("--color", help="Colour in tables.")] = Color.AUTO
    debug: Annotated[
        bool, typer.Option("--debug", help="Show a traceback on an error; it may show data.")
    ] = False

    def streams(self) -> Streams:
        return Streams(self.quiet, self.verbose, self.progress, str(self.color))


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """How the text of an input file is read."""

    delimiter: Annotated[
        str | None, typer.Option("--delimiter", metavar="CHAR", help="Delimiter of a CSV file.")
    ] = None
    header: Annotated[
        bool, typer.Option("--header/--no-header", help="Whether a CSV file begins with names.")
    ] = True
    encoding: Annotated[
        str, typer.Option("--encoding", metavar="NAME", help="Encoding of CSV.")
    ] = "utf-8"
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads", metavar="N", help="Threads; no result depends on it [default: all]."
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ReadingOptions(TextOptions):
    """How an input file of rows is read."""

    label: Annotated[
        str | None, typer.Option("--label", metavar="COLUMN", help="Target column (CSV, Parquet).")
    ] = None
    duplicates: Annotated[
        Duplicates, typer.Option("--duplicates", help="A column index repeated within a row.")
    ] = Duplicates.ERROR
    missing: Annotated[
        Missing, typer.Option("--missing", help="An empty cell: an error, or zero.")
    ] = Missing.ERROR


@dataclass(frozen=True, kw_only=True)
class StorageOptions:
    """Where records stand while a run lasts."""

    memory: Annotated[
        str | None,
        typer.Option("--memory", metavar="SIZE", help="Bound on memory: bytes, or KiB to TiB."),
    ] = None
    cache: Annotated[
        str | None,
        typer.Option("--cache", metavar="DIR", help="Hold the records in a nameless file there."),
    ] = None

    def storage(self) -> Storage:
        """What was asked for.

        Raises
        ------
        UsageError
            It is too little for anything.
        """
        memory = None if self.memory is None else bytes_of("--memory", self.memory)
        storage = Storage(memory, self.cache)
        storage.check(0)
        return storage


@dataclass(frozen=True, kw_only=True)
class BudgetOptions:
    """A privacy budget."""

    eps: Annotated[
        float | None,
        typer.Option("--eps", metavar="E", help="Epsilon; needs --delta, but for medians."),
    ] = None
    delta: Annotated[
        float | None, typer.Option("--delta", metavar="D", help="Delta, well below 1/rows.")
    ] = None
    rho: Annotated[
        float | None, typer.Option("--rho", metavar="R", help="Budget in zCDP instead.")
    ] = None
    mu: Annotated[
        float | None, typer.Option("--mu", metavar="M", help="Budget in Gaussian DP instead.")
    ] = None
    adjacency: Annotated[
        Adjacency, typer.Option("--adjacency", help="Neighbours: a record replaced, or zeroed out.")
    ] = Adjacency.REPLACE_ONE


@dataclass(frozen=True, kw_only=True)
class ChargeOptions:
    """Where a run is charged, and on which terms."""

    dataset: Annotated[
        str | None,
        typer.Option("--dataset", metavar="NAME", help="Name in the ledger [default: STEM]."),
    ] = None
    ledger: Annotated[
        str | None,
        typer.Option("--ledger", metavar="FILE", help="Ledger [default: STEM.ledger.json]."),
    ] = None
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse to take any fact from the data as public.")
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show charge, noise and settings; spend nothing.")
    ] = False
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", help="Reproducible noise. The result is NOT private."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class RunOptions(ChargeOptions):
    """What a run that is charged writes as well."""

    force: Annotated[bool, typer.Option("--force", help="Replace an existing model.")] = False
    non_private: Annotated[
        bool, typer.Option("--non-private", help="Fit without noise, by the same rules.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class LockOptions:
    """How long to wait for other processes."""

    lock_timeout: Annotated[
        float,
        typer.Option("--lock-timeout", metavar="SECONDS", help="Wait for a busy ledger."),
    ] = 30.0
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", help="End after so long, as SIGTERM does."),
    ] = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.lock_timeout <= _LONGEST_WAIT:
            raise UsageError("--lock-timeout must be a number of seconds, 0 or more")
        if self.timeout is not None and not 0.0 < self.timeout <= _LONGEST_WAIT:
            raise UsageError("--timeout must be a positive number of seconds")
