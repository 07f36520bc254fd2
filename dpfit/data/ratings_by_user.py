"""Ratings by user: all of an input in memory, or user by user as they stand in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpfit.data.id_table import IdTable
from dpfit.data.ratings import RatingBlock, RatingReader
from dpfit.errors import DataError


@dataclass(frozen=True)
class RatingsByUser:
    """Ratings of consecutive users of a reader's table, in compressed sparse row form.

    Attributes
    ----------
    first_user : int
        Code of the first of them.
    indptr : int64 array, shape (n_users + 1,)
        User ``first_user + i`` owns the entries ``indptr[i]:indptr[i + 1]``.
    items : int32 array, shape (nnz,)
        Codes, sorted and unique for each user.
    values : float64 array, shape (nnz,)
        Finite.
    """

    first_user: int
    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    values: NDArray[np.float64]

    @property
    def n_users(self) -> int:
        return len(self.indptr) - 1

    @property
    def rows(self) -> NDArray[np.int64]:
        """Of each entry, which of the users it belongs to, from 0; shape (nnz,)."""
        return np.repeat(np.arange(self.n_users), np.diff(self.indptr))

    def parts(self) -> Iterator[RatingsByUser]:
        """All of them, at once."""
        yield self

    def part(self, start: int, stop: int) -> RatingsByUser:
        """Those of the users from ``start`` to before ``stop``, counted from 0."""
        indptr = self.indptr[start : stop + 1]
        entries = slice(indptr[0], indptr[-1])
        return RatingsByUser(
            self.first_user + start, indptr - indptr[0], self.items[entries], self.values[entries]
        )


class AllRatings(Protocol):
    """The ratings of all users, wherever they stand."""

    @property
    def n_users(self) -> int: ...

    def parts(self) -> Iterator[RatingsByUser]:
        """Those of consecutive users at a time."""
        ...


@dataclass(frozen=True)
class RatingTable:
    """All ratings of an input.

    Attributes
    ----------
    users : IdTable
        Private: who they are, in the order of the input.
    items : IdTable
        The reader's, if that is fixed; else those that occur, in canonical order.
    ratings : RatingsByUser
        Of all users.
    """

    users: IdTable
    items: IdTable
    ratings: RatingsByUser


def collect_ratings(reader: RatingReader) -> RatingTable:
    """All ratings of an input, by user.

    A repeated pair of user and item is an error, or the later one counts: see ``duplicates`` of
    `RatingOptions`. Memory is that of the ratings.

    Raises
    ------
    DataError
        What reading raises, and for a repeated pair.
    """
    blocks = list(reader)
    items = reader.items
    if not items.fixed:
        items, new_code = items.canonical()
        blocks = [replace(block, item=new_code[block.item]) for block in blocks]
    ratings = _by_user(blocks, 0, len(reader.users), reader.options.duplicates)
    return RatingTable(reader.users, items, ratings)


def rating_parts(reader: RatingReader, *, grouped: bool = False) -> Iterator[RatingsByUser]:
    """The ratings of all users, in parts: streamed where they stand by user, else collected.

    Parameters
    ----------
    reader : RatingReader
        Its table of users is new, its table of items fixed.
    grouped : bool
        Whether the user says that the ratings of each user stand together; in a LIBSVM file they
        do.

    Raises
    ------
    DataError
        As `collect_ratings` and `stream_ratings`.
    """
    if grouped or reader.is_grouped:
        yield from stream_ratings(reader)
    else:
        yield collect_ratings(reader).ratings


def stream_ratings(reader: RatingReader) -> Iterator[RatingsByUser]:
    """Ratings user by user, of an input where those of a user stand together.

    Memory is that of a block and of one user's ratings. The reader's table of users must be new and
    its table of items fixed.

    Raises
    ------
    DataError
        What reading raises, for a repeated pair, and for a user who comes back.
    """
    held: list[RatingBlock] = []
    first = 0
    for block in reader:
        _check_grouped(block, held[-1] if held else None)
        # Users have their codes by first appearance: those below the last one are complete.
        last = int(block.user[-1])
        complete = int(np.searchsorted(block.user, last))
        if last > first:
            ended = [*held, block.part(0, complete)]
            yield _by_user(ended, first, last - first, reader.options.duplicates)
            held, first = [], last
        held.append(block.part(complete, len(block)))
    yield _by_user(held, first, len(reader.users) - first, reader.options.duplicates)


def _check_grouped(block: RatingBlock, before: RatingBlock | None) -> None:
    previous = np.append(block.user[0] if before is None else before.user[-1], block.user[:-1])
    back = block.user < previous
    if back.any():
        at = int(np.argmax(back))
        raise block.fault(at, "a user comes back after another one", "leave --grouped out")


def _by_user(blocks: list[RatingBlock], first: int, n_users: int, duplicates: str) -> RatingsByUser:
    user = np.concatenate([block.user for block in blocks]) - first
    item = np.concatenate([block.item for block in blocks])
    value = np.concatenate([_values(block) for block in blocks])
    ratings, later = grouped(user, item, value, n_users)
    if len(later) and duplicates == "error":
        raise _repeated(blocks, int(later.min()))
    return replace(ratings, first_user=first)


def grouped(
    user: NDArray[np.int64], item: NDArray[np.int64], value: NDArray[np.float64], n_users: int
) -> tuple[RatingsByUser, NDArray[np.int64]]:
    """Ratings by user, users counted from 0, and which ones repeat a pair; the last counts."""
    # Stable, and nearly no work for ratings that stand by user already.
    order = np.argsort(user * (int(item.max(initial=0)) + 1) + item, kind="stable")
    user, item, value = user[order], item[order], value[order]
    repeated = (user[1:] == user[:-1]) & (item[1:] == item[:-1])
    later = order[1:][repeated]
    if len(later):
        kept = np.append(~repeated, True)
        user, item, value = user[kept], item[kept], value[kept]
    indptr = np.zeros(n_users + 1, np.int64)
    np.cumsum(np.bincount(user, minlength=n_users), out=indptr[1:])
    return RatingsByUser(0, indptr, item.astype(np.int32), value), later


def _values(block: RatingBlock) -> NDArray[np.float64]:
    assert block.value is not None
    return block.value


def _repeated(blocks: list[RatingBlock], at: int) -> DataError:
    for block in blocks:
        if at < len(block):
            return repeated_pair(block, at)
        at -= len(block)
    raise AssertionError("no such rating")


def repeated_pair(block: RatingBlock, at: int) -> DataError:
    """What is wrong with a rating of a block."""
    return block.fault(at, "a user rates an item for the second time", "see --duplicates last")
