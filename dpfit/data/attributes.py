"""What a record carries beside its features and its target: a weight, an offset, an exposure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ATTRIBUTES = ("weight", "offset", "exposure")


@dataclass(frozen=True)
class AttributeColumn:
    """A column of a table that holds an attribute of its records.

    Attributes
    ----------
    role : str
        ``weight``, ``offset`` or ``exposure``.
    name : str
    position : int
        Its place in the file.
    """

    role: str
    name: str
    position: int

    def refused(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of finite numbers are out of bounds: weights below 0, exposures not above it."""
        if self.role == "weight":
            return values < 0
        return values <= 0 if self.role == "exposure" else np.zeros(len(values), dtype=np.bool_)

    @property
    def bound(self) -> str:
        """Why a number is refused; reads on after the column's name."""
        if self.role == "weight":
            return "is negative: a weight is 0 or more"
        return "is not positive: an exposure is above 0"


def offset_and_weight(
    columns: Mapping[str, NDArray[np.float64]],
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
    """Offset and weight of each record; None where no column tells.

    The natural logarithm of an exposure is an offset, and two offsets add up: a rate times its
    exposure is a count. The logarithm of a positive float lies between -745 and 710.

    Parameters
    ----------
    columns : mapping of str to float64 array, shape (n_rows,)
        Checked numbers by role.
    """
    offset = columns.get("offset")
    if "exposure" in columns:
        logarithm = np.log(columns["exposure"])
        offset = logarithm if offset is None else offset + logarithm
    return offset, columns.get("weight")
