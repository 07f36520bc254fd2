"""A public map of records to length one on chosen columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.grid import Grid
from dpfit.design.local import LocalDesign
from dpfit.design.rows_view import RowSpace
from dpfit.design.unit_view import UnitView

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_LONGEST_CENTRE: Final = 2.0  # in row norms: squares of integers stay below 2^53 with room


@dataclass(frozen=True)
class Centring:
    """A public map of records to length one: columns, what is taken off them, and a constant.

    Attributes
    ----------
    columns : int64 array, shape (k,)
        Sorted columns that stay.
    centre : float64 array, shape (k,)
        Taken off each of them, in units of the row norm K.
    constant : float
        Value of the constant column before the scaling, in units of K.
    """

    columns: Integers
    centre: Floats
    constant: float

    def space(self, grid: Grid) -> RowSpace:
        """What is public of the records as the map leaves them: a row of length one is K_int long.

        Its bound on ``|z|^2`` is one before the scaling, for the exactness of margins.
        """
        integers, constant = self._integers(grid)
        centre = int(np.ceil(np.sqrt(float(integers @ integers)))) + 1
        squared_norm = (grid.integer_norm + centre) ** 2 + constant**2
        return RowSpace(len(self.columns), squared_norm, 1.0 / grid.integer_norm)

    def view(self, design: LocalDesign, grid: Grid) -> UnitView:
        """The records as the map leaves them."""
        integers, constant = self._integers(grid)
        return UnitView(design.on_columns(self.columns), integers, constant, grid.integer_norm)

    def _integers(self, grid: Grid) -> tuple[Integers, int]:
        """Centre and constant on the rows' grid.

        Raises
        ------
        RuntimeError
            The centre is longer than twice a row can be, or the constant is no part of it: lengths
            would leave the exact integers on which the sensitivity rests.
        """
        length = float(np.linalg.norm(self.centre))
        if not (length <= _LONGEST_CENTRE and 0.0 < self.constant <= 1.0):
            raise RuntimeError("the centre or constant of the records is out of bounds")
        integers = np.rint(self.centre * grid.integer_norm).astype(np.int64)
        return integers, max(1, round(self.constant * grid.integer_norm))
