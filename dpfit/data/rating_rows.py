"""What the readers of ratings hand on, and how a file's columns mean users, items and values."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfit.data.encode import CodedText
from dpfit.data.text_blocks import TextBlock
from dpfit.errors import DataError


@dataclass(frozen=True)
class RatingBlock:
    """Consecutive ratings of one file, in file order.

    Attributes
    ----------
    user : int64 array, shape (n,)
        Code in the reader's table of users.
    item : int64 array, shape (n,)
        Code in the reader's table of items.
    value : float64 array, shape (n,), or None
        Finite. None where no value was asked for.
    path : str
        The file, for errors.
    first_record : int or None
        Number of the first rating within the file, from 1; None if some were left out.
    first_line : int or None
        Line of the first rating, where each has one line of its own; else None.
    """

    user: NDArray[np.int64]
    item: NDArray[np.int64]
    value: NDArray[np.float64] | None
    path: str
    first_record: int | None
    first_line: int | None

    def __len__(self) -> int:
        return len(self.user)

    def part(self, start: int, stop: int) -> RatingBlock:
        """The ratings from ``start`` to before ``stop``, counted from 0."""
        return RatingBlock(
            self.user[start:stop],
            self.item[start:stop],
            None if self.value is None else self.value[start:stop],
            self.path,
            None if self.first_record is None else self.first_record + start,
            None if self.first_line is None else self.first_line + start,
        )

    def fault(self, at: int, message: str, hint: str) -> DataError:
        """What is wrong with a rating, counted from 0: with its line or else its number."""
        if self.first_line is not None:
            return DataError(message, path=self.path, line=self.first_line + at, hint=hint)
        if self.first_record is not None:
            message = f"{message} (rating {self.first_record + at})"
        return DataError(message, path=self.path, hint=hint)


@dataclass(frozen=True)
class CodedRatings:
    """Ratings of one block of a file, before users and items have their codes.

    Attributes
    ----------
    users, items : CodedText
    values : float64 array, shape (n,), or None
    first_line : int or None
        Line of the first rating, where each has one line of its own; else None.
    """

    users: CodedText
    items: CodedText
    values: NDArray[np.float64] | None
    first_line: int | None = None


def line_of_first(block: TextBlock, n_ratings: int) -> int | None:
    """The line of a block's first rating, if every line of the block holds one."""
    return block.first_line if block.n_lines == n_ratings else None


@dataclass(frozen=True)
class ItemRule:
    """Which items may occur.

    Attributes
    ----------
    known : container of str or None
        None allows all.
    predicting : bool
        Whether ``known`` are a model's, not the declared ones.
    """

    known: Container[str] | None = None
    predicting: bool = False

    def allows(self, text: str) -> bool:
        return self.known is None or text in self.known

    @property
    def message(self) -> str:
        """Why an item is refused; reads on after 'the item'."""
        whose = "one of the model" if self.predicting else "among those declared"
        return f"is not {whose}"

    @property
    def hint(self) -> str:
        return "see --ignore-new-items" if self.predicting else "correct the file of --items"
