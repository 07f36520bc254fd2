"""Private records that stay on the workers of a cluster; only sums over them come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from distributed import get_worker
from numpy.typing import NDArray

from dpfit.data.reader import Reader, ReadOptions, no_records
from dpfit.data.rows import RowBlock
from dpfit.design.grid import Grid
from dpfit.design.storage import Storage
from dpfit.errors import UsageError
from dpfit.privacy.centring import Centring
from dpfit.privacy.charged_releases import Release
from dpfit.privacy.collected_records import CollectedRecords, RecordMap
from dpfit.privacy.private_records import PrivateRecords, check_number
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.questions import Question
from dpfit.privacy.summary import Summary
from dpfit.privacy.unit_exchange import UnitExchange, exchanged

if TYPE_CHECKING:
    from dpfit.privacy.workers import Workers

Integers: TypeAlias = NDArray[np.int64]


class ClusterCollected:
    """Records as they were read, those of a privacy unit on one worker.

    Parameters
    ----------
    workers : Workers
        Where they are.
    collected : sequence of futures of CollectedRecords
        One a worker.

    Raises
    ------
    DataError, StorageError
        What a worker met when it read.
    """

    def __init__(self, workers: Workers, collected: Sequence[Any]) -> None:
        self._workers = workers
        self._collected = collected
        self._summaries = workers.results(workers.each(_summary, collected))

    @classmethod
    def read(
        cls,
        workers: Workers,
        paths: Sequence[str],
        options: ReadOptions,
        grid: Grid,
        source: str,
        *,
        storage: Storage,
    ) -> ClusterCollected:
        """Have files read, each worker a run of them of about equal number.

        Parameters
        ----------
        workers : Workers
            The readers.
        paths : sequence of str
            As the workers find them.
        options : ReadOptions
            For all files.
        grid : Grid
            The record map at its finest.
        source : str
            What to call the input in messages.
        storage : Storage
            Of each worker.

        Raises
        ------
        DataError, StorageError
            What a worker met when it read; or no file holds a record.
        """
        shares = [part.tolist() for part in np.array_split(np.array(paths), len(workers))]
        place: dict[str, Any] = {
            "options": options,
            "grid": grid,
            "source": source,
            "storage": storage,
        }
        if options.unit_column is None:
            collected = workers.each(partial(_read, **place), shares)
        else:
            begun = partial(_begun, n_workers=len(workers), **place)
            collected = exchanged(workers, workers.each(begun, shares))
        found = cls(workers, collected)
        if not found.summary().n_rows:
            raise no_records(paths[0])
        return found

    def summary(self) -> Summary:
        """What is read off all records."""
        return Summary.of_all(self._summaries)

    def records(self, record_map: RecordMap) -> ClusterRecords:
        """The private records, where they were read."""
        counts = [summary.n_rows for summary in self._summaries]
        firsts = [sum(counts[:number]) for number in range(len(counts))]
        maps = [record_map] * len(counts)
        futures = self._workers.each(CollectedRecords.records, self._collected, maps, firsts)
        summary = self.summary()
        return ClusterRecords(
            self._workers,
            futures,
            summary.n_rows,
            record_map.n_features,
            summary.offset is not None,
        )


@dataclass(frozen=True)
class ClusterRecords:
    """Futures of each worker's private records.

    Attributes
    ----------
    workers : Workers
        Where they are.
    parts : sequence of futures of PrivateRecords
        One a worker.
    n_rows : int
        Of all.
    n_features : int
        The public number of columns.
    has_offset : bool
        Whether scores have an offset column.
    """

    workers: Workers
    parts: Sequence[Any]
    n_rows: int
    n_features: int
    has_offset: bool

    def on_grid(self, grid: Grid) -> ClusterRecords:
        """These records, their rows as the record map left them."""
        return replace(self, parts=self._asked(PrivateRecords.on_grid, grid))

    def centred(self, centring: Centring, grid: Grid) -> ClusterRecords:
        """These records, their rows centred and of length one."""
        return replace(self, parts=self._asked(PrivateRecords.centred, centring, grid))

    def total(self, question: Question) -> Integers:
        """The answer over all records, added up on the workers."""
        return self.workers.total(self._asked(PrivateRecords.total, question))

    def _asked(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        repeated = ([argument] * len(self.parts) for argument in arguments)
        return self.workers.each(function, self.parts, *repeated)

    def check(self, releases: Sequence[Release], n_scores: int, grid: Grid, source: str) -> None:
        """Refuse, before the charge, what would fail after it.

        Raises
        ------
        UsageError
            The algorithm needs all rows in one process.
        DataError
            There are too many records.
        """
        for release in releases:
            if release.quantity in (Quantity.MINIMISER, Quantity.VOTES):
                raise UsageError("--cluster: this algorithm needs all rows in one process")
            check_number(release, self.n_rows, grid, source)
        self.workers.results(self._asked(PrivateRecords.check, releases, n_scores, grid, source))

    def here(self) -> PrivateRecords:
        """Refused: rows do not leave their worker."""
        raise RuntimeError("the rows are on the workers of a cluster")


def _read(paths: list[str], **place: Any) -> CollectedRecords:
    blocks, collected = _opened(paths, **place)
    collected.collect(blocks)
    return collected


def _begun(paths: list[str], *, n_workers: int, storage: Storage, **place: Any) -> UnitExchange:
    blocks, collected = _opened(paths, storage=storage, **place)
    entries = storage.chunk_entries
    return UnitExchange(blocks, collected, entries=entries, n_workers=n_workers)


def _opened(
    paths: list[str], *, options: ReadOptions, grid: Grid, source: str, storage: Storage
) -> tuple[Iterator[RowBlock], CollectedRecords]:
    """What a worker reads, and what takes it up."""
    threads = get_worker().state.nthreads
    collected = CollectedRecords(grid, source, threads=threads, storage=storage)
    if not paths:
        return iter(()), collected
    return Reader(paths, replace(options, threads=threads)).blocks(), collected


def _summary(collected: CollectedRecords) -> Summary:
    return collected.summary()
