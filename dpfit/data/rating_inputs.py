"""One kind of rating input each: opens files in order, yields their ratings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Protocol

from dpfit.data.rating_options import RatingOptions
from dpfit.data.rating_rows import CodedRatings, ItemRule


class RatingInput(Protocol):
    """An input of one format; files are opened in order."""

    def open(self, path: str, stdin: BinaryIO | None) -> Iterator[CodedRatings]:
        """Read what tells the columns, and return the ratings to come."""


def make_rating_input(kind: str, options: RatingOptions, rule: ItemRule) -> RatingInput:
    """The input of a format, one of `dpfit.data.ratings.RATING_FORMATS`."""
    if kind in ("libsvm", "mtx"):
        from dpfit.data.rating_matrices import LibsvmRatings, MatrixRatings

        return (LibsvmRatings if kind == "libsvm" else MatrixRatings)(options, rule)
    from dpfit.data.rating_tables import DelimitedRatings, ParquetRatings

    if kind == "parquet":
        return ParquetRatings(options, rule)
    return DelimitedRatings(options, rule, kind)
