"""Rows by privacy unit on a cluster: those of a unit are brought together on one worker.

A unit's part of a sum is shrunk as a whole, so its rows must not be divided. Which worker gets them
is a public hash of the unit's identifier. In each round every worker reads on in its files, divides
what it read and takes up what all have read for it: a row travels once, and few do at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.data.rows import RowBlock
from dpfit.errors import StorageError
from dpfit.privacy.collected_records import CollectedRecords
from dpfit.privacy.owner_choice import words_of
from dpfit.privacy.stays_here import StaysHere

if TYPE_CHECKING:
    from dpfit.data.encode import CodedText
    from dpfit.privacy.workers import Workers

Integers: TypeAlias = NDArray[np.int64]
Share: TypeAlias = list[RowBlock]

_ROUNDS_OF_CHUNK: Final = 2  # what is sent and what has come stand beside a chunk that is made


class UnitExchange(StaysHere):
    """One worker's side: what it reads, and what it has got.

    Each round changes it, once: rounds have numbers, so that a task which Dask ran again fails
    instead of losing rows or counting them twice.

    Parameters
    ----------
    blocks : iterator of RowBlock
        What this worker reads.
    collected : CollectedRecords
        Takes up the rows of this worker's units.
    entries : int
        After how many entries and rows a round ends.
    n_workers : int
        How many take part.
    """

    def __init__(
        self,
        blocks: Iterator[RowBlock],
        collected: CollectedRecords,
        *,
        entries: int,
        n_workers: int,
    ) -> None:
        self._blocks = blocks
        self._collected = collected
        self._entries = max(1, entries // _ROUNDS_OF_CHUNK)
        self._n_workers = n_workers
        self._read = self._taken = 0  # rounds
        self._ended = False

    def read(self, number: int) -> list[Share]:
        """What this worker reads in a round, a share for each worker."""
        _require(number == self._read)
        self._read += 1
        shares: list[Share] = [[] for _ in range(self._n_workers)]
        size = 0
        while size < self._entries and not self._ended:
            block = next(self._blocks, None)
            if block is None:
                self._ended = True
                break
            size += len(block.indices) + block.n_rows
            for share, part in zip(shares, divided(block, self._n_workers), strict=True):
                share.append(part)
        return shares

    def take(self, number: int, *shares: Share) -> bool:
        """Have what every worker read for this one; whether this one has more to read."""
        _require(number == self._taken)
        self._taken += 1
        self._collected.collect(block for block in chain(*shares) if block.n_rows)
        return not self._ended

    def whole(self, rounds: int) -> CollectedRecords:
        """What this worker has after all rounds."""
        _require(rounds == self._taken)
        return self._collected


def exchanged(workers: Workers, exchanges: Sequence[Any]) -> list[Any]:
    """Futures of each worker's collected records, every unit's on one of them.

    Parameters
    ----------
    workers : Workers
        Who take part.
    exchanges : sequence of futures of UnitExchange
        One a worker.

    Raises
    ------
    DpfitError
        What a worker met when it read, or it is gone.
    """
    number, unread = 0, True
    while unread:
        same = [number] * len(workers)
        read = workers.each(UnitExchange.read, exchanges, same)
        by_receiver = [workers.each(_share, read, [j] * len(workers)) for j in range(len(workers))]
        by_sender = zip(*by_receiver, strict=True)
        taken = workers.each(UnitExchange.take, exchanges, same, *by_sender)
        unread = any(workers.results(taken))
        number += 1
    return workers.each(UnitExchange.whole, exchanges, [number] * len(workers))


def divided(block: RowBlock, n_workers: int) -> list[RowBlock]:
    """The rows of a block for each worker, all rows of a unit for the same one."""
    assert block.owner is not None
    holders = _holders(block.owner, n_workers)
    return [block.at(np.flatnonzero(holders == worker)) for worker in range(n_workers)]


def _holders(owner: CodedText, n_workers: int) -> Integers:
    """Which worker shall have each row; by the identifier alone, so everywhere the same."""
    return (words_of(owner.texts) % np.uint64(n_workers)).astype(np.int64)[owner.codes]


def _share(shares: list[Share], receiver: int) -> Share:
    return shares[receiver]


def _require(right: bool) -> None:
    if not right:
        raise StorageError(
            "a worker of the cluster was started again, and has lost its rows",
            hint="start the run again; what the ledger says was charged stays charged",
        )
