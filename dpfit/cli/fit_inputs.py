"""From the options of ``dpfit fit`` and its schema file to a checked request, reader and paths."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpfit.algorithms.outcome import Outcome
from dpfit.cli.collecting import check_cluster, check_keeping, kept_rows, rows_on
from dpfit.cli.row_inputs import RowInputs
from dpfit.cli.run_files import RunFiles
from dpfit.cli.streams import Streams
from dpfit.cli.tune_option import search_of
from dpfit.data.pipeline import cpu_count
from dpfit.errors import PrivacyError, UsageError
from dpfit.files.linear_model import LinearModel
from dpfit.fitting.algorithm_traits import ORIGINALS
from dpfit.fitting.kind_of_fit import kind_of_fit
from dpfit.fitting.linear_configuration import linear_request
from dpfit.fitting.linear_file import linear_model
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.plan import charge_ahead
from dpfit.fitting.request import FitRequest

if TYPE_CHECKING:
    from dpfit.cli.fit import FitOptions
    from dpfit.cli.model_options import ModelOptions
    from dpfit.privacy.workers import Workers


@dataclass(frozen=True)
class FitInputs:
    """What a fit works on and where it writes.

    Attributes
    ----------
    request : FitRequest
        Checked.
    rows : RowInputs
        What is read, and what was said about it.
    files : RunFiles
        Where the model and the charge go.
    other_files : tuple of str
        Schema and configuration.
    cluster : str or None
        Where workers read the rows; None: here.
    keeps_rows : bool
        Whether the cache is for later runs, too.
    """

    request: FitRequest
    rows: RowInputs
    files: RunFiles
    other_files: tuple[str, ...]
    cluster: str | None = None
    keeps_rows: bool = False

    @classmethod
    def from_options(cls, options: FitOptions) -> FitInputs:
        """Resolve options and schema; reads no data.

        Raises
        ------
        UsageError, StorageError
            Something is missing, contradicts itself or does not exist.
        """
        rows = RowInputs.from_options(options, options.inputs)
        files = RunFiles.from_options(options, ".model.json")
        check_cluster(options)
        check_keeping(options, rows.reader.paths)
        return cls(
            request=_request(options, rows, files.dataset),
            rows=rows,
            files=files,
            other_files=tuple(filter(None, (options.schema, options.config))),
            cluster=options.cluster,
            keeps_rows=options.keep_cache,
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
        self.files.check_apart_from([*self.rows.reader.paths, *self.other_files], writes=writes)
        self._check_strict()
        if self.cluster is not None and self.request.traits.in_one_place:
            raise UsageError(
                f"--cluster: --algo {self.request.algorithm} needs all rows in one process",
                hint="leave --cluster out, or choose another --algo",
            )
        self.files.ledger.check(charge_ahead(self.request))

    def _check_strict(self) -> None:
        """Name every missing fact at once, before the data are touched."""
        if not self.request.strict:
            return
        declared, loss = self.request.declared, self.request.loss
        wanted = [("--n-rows", declared.n_rows is not None)]
        kind, options = self.rows.reader.format, self.rows.reader.options
        if kind == "libsvm" and options.hash_bits is None:
            wanted.append(("--n-features", declared.n_features is not None))
            wanted.append(("--index-base", declared.index_base is not None))
        elif kind in ("csv", "tsv") and not options.header:
            wanted.append(("--n-features", declared.n_features is not None))
        if loss in (None, "logistic", "multinomial"):
            wanted.append(("--labels", bool(declared.labels or declared.target_range)))
        elif declared.target_range is None:
            wanted.append(("--target-range", False))
        if options.attribute_columns.get("weight") is not None:
            wanted.append(("--max-weight", declared.max_weight is not None))
        if self.request.unit is not None:
            wanted.append(("--n-units", declared.n_owners is not None))
        if self.request.exposed and loss == "poisson":
            wanted.append(("--max-exposure", declared.max_exposure is not None))
        missing = [option for option, given in wanted if not given]
        if missing:
            raise PrivacyError(
                f"--strict: not declared: {', '.join(missing)}",
                hint="each is a public fact, given as an option or in a --schema file",
            )

    def workers(self) -> AbstractContextManager[Workers | None]:
        """The cluster's, if the rows are read there."""
        if self.cluster is None:
            return nullcontext()
        from dpfit.cli.cluster import connected

        return connected(self.cluster)

    def load(self, streams: Streams, workers: Workers | None) -> LinearFit:
        """Read the rows and plan the run."""
        request, reader, source = self.request, self.rows.reader, self.files.source
        kind, layout = kind_of_fit(request), self.rows.layout
        if self.keeps_rows:
            rows = kept_rows(reader, request, source, streams)
            fitted = kind(request, rows, layout=layout, source=source)
        elif workers is not None:
            rows = rows_on(workers, reader, request, source, streams)
            fitted = kind(request, rows, layout=layout, source=source)
        else:
            fitted = kind.of(request, reader, layout=layout, source=source)
        # Of what was read, only the public number of rows may be told.
        streams.step(f"read {fitted.plan.facts.integer('rows')} rows")
        return fitted

    def model(self, fitted: LinearFit, outcome: Outcome) -> LinearModel:
        """The model document of a finished run."""
        reader = self.rows.reader
        columns = reader.feature_map
        return linear_model(
            fitted,
            outcome,
            feature_map=None if columns is None else columns.to_json(),
            hash_bits=reader.options.hash_bits if columns is None else None,
            label=reader.options.label_column,
            attributes=reader.options.attribute_columns,
        )


def _request(options: FitOptions, rows: RowInputs, dataset: str) -> FitRequest:
    return configured(
        options,
        rows,
        without_noise=options.non_private or options.algo in ORIGINALS,
        dataset=dataset,
        strict=options.strict,
        seed=options.seed,
        threads=options.threads or cpu_count(),
        storage=options.storage(),
        search=search_of(options),
    )


def configured(
    options: ModelOptions,
    rows: RowInputs | None,
    *,
    without_noise: bool,
    seed: int | None,
    **facts: Any,
) -> FitRequest:
    """The request that a configuration makes; ``facts`` are fields of it about the run.

    Parameters
    ----------
    options : ModelOptions
        The configuration.
    rows : RowInputs or None
        None where no input was named.
    without_noise, seed, **facts
        Of the request.
    """
    row_norm = options.row_norm
    if rows is not None:
        row_norm = rows.schema.row_norm if row_norm is None else row_norm
        facts.update(
            declared=rows.declared,
            exposed=rows.exposed,
            positive_label=rows.positive_label,
            unit=rows.reader.options.unit_column,
        )
    facts.update(max_rows_per_unit=options.max_rows_per_unit, unit_clip=options.unit_clip)
    return linear_request(
        options, row_norm=row_norm, without_noise=without_noise, seed=seed, **facts
    )
