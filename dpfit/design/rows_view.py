"""How the Curator sees the rows: as the record map left them, or centred and of length one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.grid import Grid
from dpfit.design.integer_point import IntegerPoint
from dpfit.design.local import LocalDesign

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class RowSpace:
    """What is public of a view of the rows.

    Attributes
    ----------
    n_features : int
        Number of columns.
    squared_norm : int
        Bound on a row's squared integer norm, its constant included.
    unit : float
        The real length of one integer of a gradient, where multipliers are one.
    """

    n_features: int
    squared_norm: int
    unit: float

    @classmethod
    def of_grid(cls, grid: Grid, n_features: int) -> RowSpace:
        """The space of rows as the record map left them."""
        return cls(n_features, grid.squared_norm, grid.unit)


class RowsView(Protocol):
    """Rows of a design with what a gradient over them needs."""

    def limits(self, unit: int) -> int | Integers:
        """The largest multiplier of a record, or of each, within the charge, shape (n,)."""
        ...

    def real_margins(self, point: IntegerPoint, bits: int) -> Floats:
        """Margins at a point in units of 2^-bits, shape (n,) or (n, k)."""
        ...

    def gradient(self, residuals: Integers) -> Integers:
        """Sums of the rows times their multipliers, exact modulo 2^64; the constant's come last."""
        ...


class GridView:
    """The rows as the record map left them.

    Parameters
    ----------
    design : LocalDesign
        Rows with ``|xq|^2 + b^2 <= K2``.
    grid : Grid
        Their record map.
    """

    def __init__(self, design: LocalDesign, grid: Grid) -> None:
        self._design = design
        self._unit = grid.unit

    def limits(self, unit: int) -> int:
        return unit

    def real_margins(self, point: IntegerPoint, bits: int) -> Floats:
        return self._design.margins(point).astype(np.float64) * math.ldexp(self._unit, -bits)

    def gradient(self, residuals: Integers) -> Integers:
        return self._design.gradient(residuals)
