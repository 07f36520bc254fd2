"""The one entry point: any input, as blocks of rows."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import BinaryIO

from dpfit.data.features import FeatureMap
from dpfit.data.inputs import make_input
from dpfit.data.open import expand_inputs, format_of
from dpfit.data.options import ReadOptions
from dpfit.data.rows import RowBlock
from dpfit.errors import DataError, UsageError

__all__ = ["ReadOptions", "Reader"]


class Reader:
    """Rows of one or several files, in order.

    Making a reader opens nothing. Iterating yields `RowBlock` objects; files may be read again by a
    second iteration, standard input may not.

    Parameters
    ----------
    paths : sequence of str
        Operands as for `expand_inputs`.
    options : ReadOptions
    stdin : binary file, optional
        What ``-`` means; the process's standard input if omitted.

    Raises
    ------
    UsageError, StorageError, DataError
        While made, for operands and formats; while iterated, for what the files hold.
    """

    def __init__(
        self, paths: Sequence[str], options: ReadOptions, stdin: BinaryIO | None = None
    ) -> None:
        self.paths = expand_inputs(paths)
        self.options = options
        self.format = self._common_format()
        self._stdin = stdin
        self._input = make_input(self.format, options)
        self._opened: Iterator[RowBlock] | None = None
        self._header_read = False

    def _common_format(self) -> str:
        formats = [format_of(path, self.options.format) for path in self.paths]
        for path, found in zip(self.paths, formats, strict=True):
            if found != formats[0]:
                raise UsageError(
                    f"{path}: this file is {found}, the first one {formats[0]}",
                    hint="give --format, or read files of one format at a time",
                )
        return formats[0]

    @property
    def feature_map(self) -> FeatureMap | None:
        """How columns became features; None for sparse formats. May read the first header."""
        if self.format != "libsvm" and not self._header_read:
            self._opened = self._open(0)
        return self._input.feature_map

    def labels_are_text(self) -> bool | None:
        """Whether the labels of a table are text, as declared or by the first records.

        For who reads some of the files alone. None for LIBSVM, and where there are no records.
        """
        if self.format == "libsvm" or self.options.textual is not None:
            return self.options.textual
        with closing(self.blocks()) as blocks:
            for block in blocks:
                return block.target is not None and block.target.dtype == object
        return None

    @property
    def index_base(self) -> int | None:
        """Base of the indices in the blocks; None for LIBSVM when it is not declared."""
        if self.options.hash_bits is not None or self.feature_map is not None:
            return 0
        if self.options.index_base is None and self.format == "parquet":
            return 0
        return self.options.index_base

    def _open(self, number: int) -> Iterator[RowBlock]:
        rows = self._input.open(self.paths[number], self._stdin)
        self._header_read = True
        return rows

    def __iter__(self) -> Iterator[RowBlock]:
        n_rows = 0
        for block in self.blocks():
            n_rows += block.n_rows
            yield block
        if not n_rows:
            raise no_records(self.paths[0])

    def blocks(self) -> Generator[RowBlock, None, None]:
        """The rows of files that are a part of the input, and so may hold none."""
        first, self._opened = self._opened, None
        for i in range(len(self.paths)):
            rows = first if i == 0 and first is not None else self._open(i)
            for block in rows:
                if block.n_rows:
                    yield block


def no_records(path: str) -> DataError:
    """What to say of an input without rows, by its first file."""
    return DataError(
        "the input holds no records", path=path, hint="is it the right file, written to its end?"
    )
