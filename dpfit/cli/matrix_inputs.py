"""From the options of ``dpfit complete-matrix`` to a checked request, reader and paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpfit.algorithms.factor_outcome import FactorOutcome
from dpfit.cli.rating_reading import rating_options, stored_columns
from dpfit.cli.run_files import RunFiles
from dpfit.cli.streams import Streams
from dpfit.data.id_table import IdTable, read_ids
from dpfit.data.open import STDIN
from dpfit.data.rating_runs import RatingRuns
from dpfit.data.ratings import RatingReader
from dpfit.data.ratings_by_user import AllRatings, collect_ratings
from dpfit.errors import PrivacyError, UsageError
from dpfit.files.factor_model import FactorModel
from dpfit.fitting.factor_file import factor_model
from dpfit.fitting.matrix_fit import MatrixFit
from dpfit.fitting.matrix_plan import charge_ahead
from dpfit.fitting.matrix_request import ORIGINALS, MatrixRequest
from dpfit.fitting.requested_budget import requested_budget

if TYPE_CHECKING:
    from dpfit.cli.complete_matrix import CompleteMatrixOptions
    from dpfit.cli.matrix_options import MatrixOptions


@dataclass(frozen=True)
class MatrixInputs:
    """What a completion works on and where it writes.

    Attributes
    ----------
    request : MatrixRequest
        Checked.
    reader : RatingReader
        Opened when iterated; its table of items is fixed if they are declared.
    files : RunFiles
        Where the model and the charge go.
    other_files : tuple of str
        List of items and configuration.
    """

    request: MatrixRequest
    reader: RatingReader
    files: RunFiles
    other_files: tuple[str, ...]

    @classmethod
    def from_options(cls, options: CompleteMatrixOptions) -> MatrixInputs:
        """Resolve options and read the list of items; reads no ratings.

        Raises
        ------
        UsageError, StorageError, DataError
            Something is missing, contradicts itself or does not exist.
        """
        files = RunFiles.from_options(options, ".factors.parquet")
        if options.items == STDIN and STDIN in options.inputs:
            raise UsageError("--items and the ratings cannot both be standard input")
        items = IdTable(read_ids(options.items), fixed=True) if options.items else None
        return cls(
            request=_request(options, files.dataset, None if items is None else len(items)),
            reader=RatingReader(options.inputs, rating_options(options), items=items),
            files=files,
            other_files=tuple(filter(None, (options.items, options.config))),
        )

    def check_before_reading(self, *, writes: bool) -> None:
        """Refuse now what would be refused after hours of reading; spends nothing.

        Parameters
        ----------
        writes : bool
            Whether the run will write a model and a charge; a dry run does not.

        Raises
        ------
        UsageError, StorageError, PrivacyError
            An output is out of bounds, a fact that ``--strict`` wants is missing, or the cap does
            not allow the run.
        """
        self.files.check_apart_from([*self.reader.paths, *self.other_files], writes=writes)
        wanted = {"--n-users": self.request.n_users, "--items": self.request.n_items}
        missing = [option for option, given in wanted.items() if given is None]
        if self.request.strict and missing:
            raise PrivacyError(
                f"--strict: not declared: {', '.join(missing)}",
                hint="each is a public fact, given as an option",
            )
        self.files.ledger.check(charge_ahead(self.request))

    def load(self, streams: Streams) -> tuple[MatrixFit, IdTable]:
        """Read the ratings and plan the run; also the items, in an order that is public."""
        ratings: AllRatings
        storage = self.request.storage
        if storage.folder is None:
            table = collect_ratings(self.reader)
            items, ratings = table.items, table.ratings
        else:
            ratings = RatingRuns(self.reader, storage.folder, storage.chunk_entries)
            items = ratings.items
        n_items = len(items)
        fitted = MatrixFit(self.request, ratings, n_items=n_items, source=self.files.source)
        # Of what was read, only the public numbers may be told.
        users = fitted.plan.facts.integer("users")
        streams.step(f"read the ratings of {users} users for {n_items} items")
        return fitted, items

    def model(self, fitted: MatrixFit, items: IdTable, outcome: FactorOutcome) -> FactorModel:
        """The model document of a finished run.

        It carries the charge but neither time nor run number, so that equal runs give equal bytes.
        """
        events = [event.to_json() for event in fitted.events]
        return factor_model(
            outcome,
            provenance={**fitted.description(), "events": events},
            private=self.request.private,
            columns=stored_columns(self.reader),
            items=items.texts,
        )


def _request(options: CompleteMatrixOptions, dataset: str, n_items: int | None) -> MatrixRequest:
    if options.range is None:
        raise no_range()
    without_noise = options.non_private or options.algo in ORIGINALS
    return configured(
        options,
        value_range=options.range,
        budget=requested_budget(options, seed=options.seed, without_noise=without_noise),
        dataset=dataset,
        algorithm=options.algo,
        without_noise=without_noise,
        noise=options.noise,
        loss=options.loss,
        huber_threshold=options.huber_threshold,
        n_items=n_items,
        strict=options.strict,
        budget_report=options.budget_report,
        seed=options.seed,
        storage=options.storage(),
    )


def no_range() -> UsageError:
    """There is no default."""
    return UsageError(
        "the bounds of a rating are not declared",
        hint="give --range LOW HIGH, such as --range 1 5",
    )


def configured(options: MatrixOptions, **others: Any) -> MatrixRequest:
    """The request that a configuration makes; ``others`` are the fields that it does not name."""
    return MatrixRequest(
        huber_knee=options.huber_knee,
        rank=options.rank,
        sweeps=options.sweeps,
        passes=options.passes,
        max_per_user=options.max_per_user,
        adjacency=options.adjacency,
        n_users=options.n_users,
        **others,
    )
