"""The common currency of the readers: blocks of rows, as read, before any bound is applied."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dpfit.data.encode import CodedText


@dataclass(frozen=True)
class RowBlock:
    """Consecutive records of one input, in file order, in compressed sparse row form.

    Column indices are sorted and unique within each row. They are *raw*: the index base of a LIBSVM
    file has not been subtracted yet, because it may only be known once every block was read.

    Attributes
    ----------
    indptr : int64 array, shape (n_rows + 1,)
        Row ``i`` owns the entries ``indptr[i]:indptr[i + 1]``; ``indptr[0] == 0``.
    indices : int32 array, shape (nnz,)
        Raw column index of each entry, >= 0.
    values : float64 array, shape (nnz,)
        Finite values. Explicit zeros may occur.
    target : float64 or object array, shape (n_rows,), or None
        Labels: floats, or ``str`` objects for a textual label column. None when the input has none
        (allowed in prediction only).
    offset : float64 array, shape (n_rows,), or None
        Finite number to be added to each record's score: the offset column, the natural logarithm
        of the exposure column, or the sum of both. None when the input has neither.
    weight : float64 array, shape (n_rows,), or None
        Finite weight of each record, >= 0. None when the input has none, and in prediction.
    owner : CodedText, or None
        Identifier of the privacy unit that each record belongs to, never empty. None when a record
        is a unit of its own.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float64]
    target: NDArray[np.float64] | NDArray[np.object_] | None
    offset: NDArray[np.float64] | None = None
    weight: NDArray[np.float64] | None = None
    owner: CodedText | None = None

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    def at(self, rows: NDArray[np.int64]) -> RowBlock:
        """Some of the rows; of the identifiers of units only theirs."""
        lengths = np.diff(self.indptr)[rows]
        indptr = np.append(np.zeros(1, np.int64), np.cumsum(lengths))
        entries = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], lengths)
        return replace(
            self,
            indptr=indptr,
            indices=self.indices[entries],
            values=self.values[entries],
            target=None if self.target is None else self.target[rows],
            offset=None if self.offset is None else self.offset[rows],
            weight=None if self.weight is None else self.weight[rows],
            owner=None if self.owner is None else self.owner.at(rows),
        )
