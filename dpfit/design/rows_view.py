"""How the Curator sees the rows: as the record map left them, or centred and of length one."""

from __future__ import annotations

import math
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.grid import Grid
from dpfit.design.integer_point import IntegerPoint
from dpfit.design.local import LocalDesign

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


class RowsView(Protocol):
    """Rows of a design with what a gradient over them needs."""

    @property
    def n_features(self) -> int:
        """The public number of columns."""
        ...

    @property
    def squared_norm(self) -> int:
        """Bound on a row's squared integer norm, its constant included."""
        ...

    @property
    def unit(self) -> float:
        """The real length of one integer of a gradient, where multipliers are one."""
        ...

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
        self.n_features = design.n_features
        self.squared_norm = grid.squared_norm
        self.unit = grid.unit

    def limits(self, unit: int) -> int:
        return unit

    def real_margins(self, point: IntegerPoint, bits: int) -> Floats:
        return self._design.margins(point).astype(np.float64) * math.ldexp(self.unit, -bits)

    def gradient(self, residuals: Integers) -> Integers:
        return self._design.gradient(residuals)
