"""The minimiser of an objective over private records, as close as a certificate says.

Un-noised: only the Curator may look at it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.grid import Grid
from dpfit.design.local import LocalDesign
from dpfit.losses.smoothed import Smoothed
from dpfit.privacy.minimiser_error import gradient_error
from dpfit.privacy.objective import Objective
from dpfit.privacy.point import Point, quantised

Floats: TypeAlias = NDArray[np.float64]

_MOST_STEPS: Final = 400
_REWEIGHTINGS: Final = 2  # more help e = 0.05 a little and harm Huber's loss
_WIDE: Final = 0.05  # smoothing, of the range; with less, Newton's steps know too few records
_NARROWER: Final = 0.5
_SOLVED: Final = 1e-4  # of a step's residual; the next step mends the rest
_MOST_PRODUCTS: Final = 1000
_BISECTIONS: Final = 60
_PARTS: Final = 2
_FLOATS: Final = 2.0**-50  # relative, of the float sums of ridge, linear term and gradient


@dataclass(frozen=True)
class Minimum:
    """A point near the minimiser.

    Attributes
    ----------
    point : float64 array, shape (d + 1,)
        w, the constant column's last.
    distance : float
        A bound on its l2 distance from the minimiser, rounding errors included.
    """

    point: Floats
    distance: float


@dataclass(frozen=True)
class FittedRecords:
    """What is fitted.

    Attributes
    ----------
    design : LocalDesign
        Rows on the grid.
    grid : Grid
        Their record map.
    target : float64 array, shape (n,)
        y, without the centre.
    shares : float64 array, shape (n,), or None
        Weights over the largest one.
    """

    design: LocalDesign
    grid: Grid
    target: Floats
    shares: Floats | None


def minimise(
    records: FittedRecords, objective: Objective, term: Floats, *, bits: int, within: float
) -> Minimum:
    """Minimise the objective plus ``term.w``.

    The first steps are reweighted least squares, which come from anywhere; with little smoothing
    they begin with more. The others are Newton's, which end in few steps: Huber's objective is a
    parabola between its kinks. Each is cut where the objective stops falling. Gradients are exact
    integer sums over scores of ``2 bits`` bits, so the certificate ``|w - w*| <= |gradient| /
    ridge``, by strong convexity, holds for the real minimiser whatever solver and floats did.

    Parameters
    ----------
    records : FittedRecords
        The private records.
    objective : Objective
        Strongly convex by its ridge.
    term : float64 array, shape (d + 1,)
        The linear term.
    bits : int
        Half the bits of a score: ``n K_int 2^bits`` must stay below 2^62.
    within : float
        Distance to reach.

    Returns
    -------
    Minimum
        Its ``distance`` is above ``within`` if that was not reached.
    """
    problem = _Problem(records, objective, term, bits)
    point = np.zeros(len(term))
    step = 0
    while True:
        errors, cut = problem.errors(point)
        gradient = problem.gradient(point, errors, objective.loss)
        distance = (float(np.linalg.norm(gradient)) + problem.gradient_error) / objective.ridge
        # Scores are those of a point as far away as was cut off; the ridge's part is not.
        distance += 2.0 * cut + _FLOATS * float(np.linalg.norm(point))
        if distance <= within or step == _MOST_STEPS:
            return Minimum(point, distance)
        loss = _wider(objective.loss, step)
        if loss != objective.loss:
            gradient = problem.gradient(point, errors, loss)
        bend = loss.weight if step < _REWEIGHTINGS else loss.curvature
        direction = problem.solve(bend(errors), -gradient)
        point = point + problem.length(point, errors, direction, loss) * direction
        step += 1


def _wider(loss: Smoothed, step: int) -> Smoothed:
    """The loss with more smoothing at first: the minimiser moves little from one to the next."""
    width = _WIDE * _NARROWER**step
    return replace(loss, width=width) if width > loss.width else loss


class _Problem:
    """The objective over the records, as the steps of a solver see it."""

    def __init__(
        self, records: FittedRecords, objective: Objective, term: Floats, bits: int
    ) -> None:
        self._records, self._objective, self._term, self._bits = records, objective, term, bits
        grid = records.grid
        self._rows = records.design.as_floats(grid.integer_norm)
        self._constant = grid.intercept_integer / grid.integer_norm
        n_rows = records.design.n_rows
        squares = self._rows.power(2).sum(axis=0)
        self._squares = np.append(squares, n_rows * self._constant**2)
        self.gradient_error = gradient_error(objective.loss, grid, n_rows, bits)

    def errors(self, point: Floats) -> tuple[Floats, float]:
        """Each record's error at a point, from exact products with its two parts, and what is cut.

        Margins of 53 bits leave a coefficient 33, so what is cut off makes a second point. The
        length of what that leaves grows with the number of columns.
        """
        errors, grid = self._records.target.copy(), self._records.grid
        for _ in range(_PARTS):
            integers, bits = quantised(Point(point[:-1], float(point[-1])), grid.squared_norm)
            margins = self._records.design.margins(integers).astype(np.float64)
            errors -= margins * np.ldexp(1.0 / grid.integer_norm, -bits)
            point = point.copy()
            point[integers.support] -= np.ldexp(integers.values.astype(np.float64), -bits)
            point[-1] -= np.ldexp(float(integers.intercept), -bits)
        return errors, float(np.linalg.norm(point))

    def gradient(self, point: Floats, errors: Floats, loss: Smoothed) -> Floats:
        """The gradient from exact sums: a score is an integer of ``2 bits`` bits, in two parts."""
        bits = self._bits
        share = self._weighted(loss.score(errors)) / float(loss.largest_score)
        integers = np.rint(np.ldexp(share, 2 * bits)).astype(np.int64)
        high, low = integers >> bits, integers & ((1 << bits) - 1)
        design = self._records.design
        sums = np.ldexp(design.gradient(high).astype(np.float64), bits)
        sums += design.gradient(low)
        unit = float(loss.largest_score) / self._records.grid.integer_norm
        return self._objective.ridge * point + self._term - np.ldexp(sums * unit, -2 * bits)

    def solve(self, bend: Floats, right: Floats) -> Floats:
        """The step of weighted least squares, nearly."""
        from scipy.sparse.linalg import LinearOperator, cg  # loaded before the charge, if needed

        weights = self._weighted(bend)
        diagonal = self._squares * weights.mean() + self._objective.ridge
        shape = (len(right), len(right))
        direction, _ = cg(
            LinearOperator(shape, matvec=lambda v: self._curved(weights, v), dtype=np.float64),
            right,
            rtol=_SOLVED,
            maxiter=_MOST_PRODUCTS,
            M=LinearOperator(shape, matvec=lambda v: v / diagonal, dtype=np.float64),
        )
        return np.asarray(direction)

    def length(self, point: Floats, errors: Floats, direction: Floats, loss: Smoothed) -> float:
        """1, or less where the objective rises before: a point at which it still falls."""
        along = self._rows @ direction[:-1] + self._constant * direction[-1]
        ridge = self._objective.ridge

        def slope(t: float) -> float:
            scores = self._weighted(loss.score(errors - t * along))
            penalty = float(direction @ (ridge * (point + t * direction) + self._term))
            return penalty - float(scores @ along)

        start = abs(slope(0.0))
        if slope(1.0) <= _SOLVED * start:
            return 1.0
        low, high = 0.0, 1.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2.0
            value = slope(middle)
            low, high = (low, middle) if value > 0.0 else (middle, high)
            if -0.5 * start <= value <= 0.0:
                break
        return low

    def _curved(self, weights: Floats, vector: Floats) -> Floats:
        """The product with ``Z^T W Z + ridge I``."""
        vector = np.asarray(vector).ravel()
        scaled = weights * (self._rows @ vector[:-1] + self._constant * vector[-1])
        product = np.append(self._rows.T @ scaled, self._constant * scaled.sum())
        return product + self._objective.ridge * vector

    def _weighted(self, values: Floats) -> Floats:
        shares = self._records.shares
        return values if shares is None else values * shares
