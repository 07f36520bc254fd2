"""More ratings than memory holds, by user: sorted run by run on disk, put together part by part."""

from __future__ import annotations

import bisect
import mmap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfit.data.id_table import IdTable
from dpfit.data.ratings import RatingBlock, RatingReader
from dpfit.data.ratings_by_user import RatingsByUser, grouped, repeated_pair
from dpfit.files.nameless import NamelessFile

_NONE: Final = np.zeros(0, np.int64)
_KINDS: Final = (np.int64, np.int64, np.float64, np.int64)  # user, item, value, place in the input


@dataclass(frozen=True)
class _Run:
    """Consecutive ratings of the input, sorted by user."""

    offset: int
    n_ratings: int

    def columns(self, mapping: mmap.mmap) -> list[NDArray[Any]]:
        size = 8 * self.n_ratings
        return [
            np.frombuffer(mapping, kind, self.n_ratings, self.offset + i * size)
            for i, kind in enumerate(_KINDS)
        ]


class RatingRuns:
    """All ratings of an input, in a nameless file.

    Parameters
    ----------
    reader : RatingReader
        Its table of users is new. It is read to its end.
    folder : str
        Where there is room for 32 bytes a rating.
    length : int
        So many ratings, or those of one user, are in memory at a time.

    Attributes
    ----------
    items : IdTable
        The reader's, if that is fixed; else those that occur, in canonical order.
    n_users : int
        Users with and without ratings.

    Raises
    ------
    DataError, StorageError
        What reading raises; the disk is full or fails.
    """

    def __init__(self, reader: RatingReader, folder: str, length: int) -> None:
        self._length = length
        self._duplicates = reader.options.duplicates
        self._file = NamelessFile(folder)
        self._runs: list[_Run] = []
        self._heads: list[RatingBlock] = []  # of the blocks, for what is wrong with a rating
        self._starts: list[int] = []
        self._read(reader)
        self._mapping = self._file.mapped()
        self._file.close()
        self.n_users = len(reader.users)
        self.items: IdTable = reader.items
        self._new_code: NDArray[np.int64] | None = None
        if not reader.items.fixed:
            self.items, self._new_code = reader.items.canonical()

    def _read(self, reader: RatingReader) -> None:
        place, waiting = 0, list[RatingBlock]()
        for block in reader:
            self._heads.append(replace(block, user=_NONE, item=_NONE, value=None))
            self._starts.append(place)
            place += len(block)
            waiting.append(block)
            if sum(map(len, waiting)) >= self._length:
                self._put(waiting, place)
                waiting = []
        if waiting:
            self._put(waiting, place)

    def _put(self, blocks: list[RatingBlock], end: int) -> None:
        user = np.concatenate([block.user for block in blocks])
        order = np.argsort(user, kind="stable")
        self._runs.append(_Run(self._file.length, len(user)))
        self._file.write(user[order].view(np.uint8).data)
        item = np.concatenate([block.item for block in blocks])
        self._file.write(item[order].view(np.uint8).data)
        value = np.concatenate([block.value for block in blocks if block.value is not None])
        self._file.write(value[order].view(np.uint8).data)
        self._file.write((order + (end - len(user))).view(np.uint8).data)

    def parts(self) -> Iterator[RatingsByUser]:
        """The ratings of consecutive users at a time, all users in order.

        Raises
        ------
        DataError
            For a repeated pair of user and item, once all were seen.
        """
        mapping = self._mapping
        runs = [run.columns(mapping) for run in self._runs]
        wrong: list[int] = []
        for first, stop in self._users(runs):
            slices = [np.searchsorted(run[0], (first, stop)) for run in runs]
            pieces = [
                [column[a:b] for column in run] for run, (a, b) in zip(runs, slices, strict=True)
            ]
            user, item, value, place = map(np.concatenate, zip(*pieces, strict=True))
            mapping.madvise(mmap.MADV_DONTNEED)
            if self._new_code is not None:
                item = self._new_code[item]
            part, later = grouped(user - first, item, value, stop - first)
            wrong.extend(place[later].tolist() if self._duplicates == "error" else ())
            yield replace(part, first_user=first)
        if wrong:
            at = min(wrong)
            number = bisect.bisect_right(self._starts, at) - 1
            raise repeated_pair(self._heads[number], at - self._starts[number])

    def _users(self, runs: list[list[NDArray[Any]]]) -> Iterator[tuple[int, int]]:
        """Ranges of users with as many ratings as may be in memory."""
        counts = np.zeros(self.n_users + 1, np.int64)
        for user, *_ in runs:
            counts[1:] += np.bincount(user, minlength=self.n_users)
            self._mapping.madvise(mmap.MADV_DONTNEED)
        ends = np.cumsum(counts)
        first = 0
        while first < self.n_users:
            stop = int(np.searchsorted(ends, ends[first] + self._length, side="right")) - 1
            stop = min(max(stop, first + 1), self.n_users)
            yield first, stop
            first = stop
