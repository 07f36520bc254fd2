"""Rows on some columns, centred and brought to length one: a view, never a dense matrix.

With public integers m (the centre) and b (the constant column) a record becomes
``z = (xq_S - m, b)``, and its share of a gradient is ``a z`` with an integer ``a`` of the record's
own. So sums stay sparse: ``sum a (xq_S - m) = X_S^T a - m sum(a)``, all in exact integers.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.integer_point import IntegerPoint
from dpfit.design.local import LocalDesign

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_SHY = 1.0 - 2.0**-40  # outweighs the three roundings of unit * K_int / sqrt(|z|^2)


class UnitView:
    """Centred rows of length one over some columns of a design.

    Parameters
    ----------
    design : LocalDesign
        Rows with ``|xq| <= K_int`` on the chosen columns alone, without an intercept column.
    centre : int64 array, shape (d,)
        Public m, on the rows' grid.
    constant : int
        Public b > 0, which keeps every record away from length zero.
    integer_norm : int
        K_int.

    Attributes
    ----------
    lengths : float64 array, shape (n,)
        ``|z|`` of each record: the root of an exact integer.
    """

    def __init__(
        self, design: LocalDesign, centre: Integers, constant: int, integer_norm: int
    ) -> None:
        self._design = design
        self._centre = centre
        self._constant = constant
        self._integer_norm = integer_norm
        nowhere = np.zeros((), np.int64)
        along = IntegerPoint(np.flatnonzero(centre), centre[centre != 0], nowhere)
        squared = design.squared_row_norms() + int(centre @ centre) + constant**2
        squared -= 2 * design.margins(along)
        self.lengths: Floats = np.sqrt(squared.astype(np.float64))

    def limits(self, unit: int) -> Integers:
        """The largest integer ``a`` of each record with ``|a z| <= unit K_int``, shape (n,).

        IEEE square root, division and product are each off by at most one part in 2^53, which the
        factor ``1 - 2^-40`` outweighs before the floor: the bound holds with certainty.
        """
        return np.floor((unit * self._integer_norm) / self.lengths * _SHY).astype(np.int64)

    def margins(self, point: IntegerPoint) -> Integers:
        """``z . theta_q`` of each record, exact modulo 2^64; divide by ``lengths``.

        Shape (n,), or (n, k) for k classes.
        """
        shift = self._constant * point.intercept - self._centre[point.support] @ point.values
        return self._design.margins(point) + shift

    def real_margins(self, point: IntegerPoint, bits: int) -> Floats:
        """Margins of the rows of length one at a point in units of 2^-bits."""
        margins = self.margins(point).astype(np.float64) * math.ldexp(1.0, -bits)
        return np.asarray((margins.T / self.lengths).T)

    def gradient(self, residuals: Integers) -> Integers:
        """``sum a z``, exact modulo 2^64; the constant column's sums come last.

        Parameters
        ----------
        residuals : int64 array, shape (n,) or (n, k)
            The records' integers a.

        Returns
        -------
        int64 array, shape (d + 1,) or (d + 1, k)
        """
        total = self._design.gradient(residuals)
        summed = residuals.sum(axis=0, keepdims=True)
        total[:-1] -= np.multiply.outer(self._centre, summed[0])
        total[-1:] = summed * np.int64(self._constant)
        return total
