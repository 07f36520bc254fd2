"""The one entry point for ratings: any input, as blocks of user, item and value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final

from dpfit.data.id_table import UNKNOWN, IdTable
from dpfit.data.open import EXTENSIONS, expand_inputs, format_of
from dpfit.data.rating_inputs import make_rating_input
from dpfit.data.rating_options import RatingOptions
from dpfit.data.rating_rows import CodedRatings, ItemRule, RatingBlock
from dpfit.errors import DataError, UsageError

__all__ = ["RatingBlock", "RatingOptions", "RatingReader"]

RATING_EXTENSIONS: Final = {**EXTENSIONS, ".mtx": "mtx"}
RATING_FORMATS: Final = tuple(dict.fromkeys(RATING_EXTENSIONS.values()))


class RatingReader:
    """Ratings of one or several files, in order.

    Making a reader opens nothing. Files may be read again by a second iteration, standard input
    may not. Identifiers of users never appear in an error.

    Parameters
    ----------
    paths : sequence of str
        Operands as for `expand_inputs`.
    options : RatingOptions
    stdin : binary file, optional
        What ``-`` means; the process's standard input if omitted.
    users, items : IdTable, optional
        Tables to number by; new ones if omitted. An item that is not in a fixed table is an error,
        unless the options leave it out.

    Attributes
    ----------
    users, items : IdTable
        What has been read so far. A user whose every rating was left out is there, too.

    Raises
    ------
    UsageError, StorageError, DataError
        While made, for operands and formats; while iterated, for what the files hold.
    """

    def __init__(
        self,
        paths: Sequence[str],
        options: RatingOptions,
        stdin: BinaryIO | None = None,
        *,
        users: IdTable | None = None,
        items: IdTable | None = None,
    ) -> None:
        self.paths = expand_inputs(paths)
        self.options = options
        self.users = IdTable() if users is None else users
        self.items = IdTable() if items is None else items
        self.format = self._common_format()
        self._stdin = stdin
        known = self.items if self.items.fixed and not options.ignore_new_items else None
        self._rule = ItemRule(known, options.predicting)
        make_rating_input(self.format, options, self._rule)  # refuses options that do not fit

    def _common_format(self) -> str:
        declared = self.options.format
        formats = [format_of(path, declared, RATING_EXTENSIONS) for path in self.paths]
        for path, found in zip(self.paths, formats, strict=True):
            if found != formats[0]:
                raise UsageError(
                    f"{path}: this file is {found}, the first one {formats[0]}",
                    hint="give --format, or read files of one format at a time",
                )
        return formats[0]

    @property
    def is_grouped(self) -> bool:
        """Whether the ratings of a user stand together by the rules of the format."""
        return self.format == "libsvm"

    def __iter__(self) -> Iterator[RatingBlock]:
        n_ratings = 0
        source = make_rating_input(self.format, self.options, self._rule)
        for path in self.paths:
            first: int | None = 1
            for coded in source.open(path, self._stdin):
                block = self._numbered(coded, path, first)
                n_ratings += len(block)
                first = None if block.first_record is None else block.first_record + len(block)
                if len(block):
                    yield block
        if not n_ratings:
            raise DataError("the input holds no ratings", path=self.paths[0])

    def _numbered(self, coded: CodedRatings, path: str, first: int | None) -> RatingBlock:
        user, item = self.users.codes(coded.users), self.items.codes(coded.items)
        value = coded.values
        known = item != UNKNOWN
        if known.all():
            return RatingBlock(user, item, value, path, first, coded.first_line)
        value = None if value is None else value[known]
        return RatingBlock(user[known], item[known], value, path, None, None)
