"""How far one record moves a logistic gradient at a public point: less than twice its clip.

Let ``z`` be a record with its constant column, ``|z| <= rho = sqrt(K2)``, theta a point without
offset, ``M = rho |theta|`` and ``sigm`` the sigmoid. With y = 0 a record's gradient is
``sigm(z.theta) z``, and with y = 1 it is ``-sigm(-z.theta) z``, the one of ``-z`` with y = 0. So
all gradients lie in ``F = {sigm(w.theta) w : |w| <= rho}``, whose diameter is ``rho S(M)``
(methods, 1.2 C3) with

    S(M) = max over 0 <= l <= M of 2 sigm(l) sqrt(1 - l^2 / M^2).

Proof. Write two elements of F as ``p w`` and ``-q w'`` with ``p = sigm(w.theta)`` and
``q = sigm(-w'.theta)``. For given p and q the parts of w and w' across theta are free, and the
distance is largest when they are parallel and longest, so ``|w| = |w'| = rho``. Then
``c = (w + w') / 2`` and ``d = (w - w') / 2`` are orthogonal, ``|c|^2 + |d|^2 = rho^2``, and

    D^2 = |p w + q w'|^2 = (p + q)^2 |c|^2 + (p - q)^2 |d|^2.

Put k = c.theta, l = d.theta, A = cosh l, B = cosh k, s = sinh l, t = tanh(l / 2) = s / (A + 1).
Then ``p + q = 1 + s / (A + B)``, ``|p - q| = sinh |k| / (A + B)``, and ``|d|^2 >= X rho^2`` with
``X = l^2 / M^2``. For l <= 0 both factors are at most 1, and so is D / rho <= S(0) = 1.

For l > 0, since p + q > |p - q|, ``D^2 / rho^2 <= E(B) = (p + q)^2 (1 - X) + (p - q)^2 X``, where
``E(1) = (1 + t)^2 (1 - X) <= S(M)^2`` because ``1 + t = 2 sigm(l)``.

- If ``E(1) >= 1``, that is ``X <= (1 - X) t (2 + t)``, then ``E(B) <= E(1)``: the difference has
  the sign of ``X (A + 1) (B + 1) / (A + B) - (1 - X) s (2 + t + s / (A + B))``, and
  ``(B + 1) / (A + B) <= 1``.
- If ``E(1) < 1``, then ``E(B) <= 1``: ``(A + B)^2 (E(B) - 1)`` is linear in B, negative at B = 1,
  and does not rise, since ``1 - X < (1 + t)^-2 = (A + 1) / (2 A + 2 s) <= A / (A + s)``.

A clipped residual only shortens a gradient, and zero is in F, so clipped gradients lie in the
convex hull of F, whose diameter is that of F. Rounding a residual to an integer moves a record's
part by at most half a unit; two records and the float errors make ``1.01 rho`` (exactness,
section 7).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dpfit.design.grid import Grid
from dpfit.design.integer_point import IntegerPoint
from dpfit.losses.base import Loss
from dpfit.losses.logistic import Logistic
from dpfit.privacy.adjacency import PerAdjacency
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.quantity import Quantity

_LOGISTIC: Final = Logistic()
_CELLS: Final = 4096
_SATURATED: Final = 40.0  # the sigmoid is 1 to the last bit
_SMALLEST: Final = 2.0**-20  # S does not fall with M, so a larger M is on the safe side
_ROUNDING: Final = 1.01  # in units of the residual, of two records
_OUTWARD: Final = 1e-9  # outweighs the float errors of a formula
_OF_A_NORM: Final = 1e-6  # outweighs those of a sum of up to 2^32 squares


def may_refine(planned: PlannedRelease, loss: Loss) -> bool:
    """Whether a step of the release can be worth less than twice its clip; public quantities only.

    S is at least 1, so a clip up to 1/2 gains nothing.
    """
    if planned.quantity is not Quantity.GRADIENT or planned.residual_clip is None:
        return False
    return loss.name == _LOGISTIC.name and planned.residual_clip > 0.5


def largest_margin(point: IntegerPoint, bits: int, grid: Grid) -> float:
    """M: a bound on ``|z.theta|`` for every record on the grid, rounded up.

    Parameters
    ----------
    point : IntegerPoint
        theta in units of 2^-bits, as the margins use it.
    bits : int
        The point's precision.
    grid : Grid
        The record map; without its constant column the intercept is no part of a margin.
    """
    intercept = float(point.intercept) if grid.intercept_integer else 0.0
    squares = float(np.sum(point.values.astype(np.float64) ** 2)) + intercept**2
    length = math.sqrt(grid.squared_norm) * math.ldexp(grid.unit, -bits)
    return math.sqrt(squares) * length * (1.0 + _OF_A_NORM)


def diameter(margin: float) -> float:
    """S(M) of the module's text, rounded up by at most 3e-4.

    The sigmoid rises and the root falls, so between two values of l their product is at most that
    of the sigmoid at the upper and of the root at the lower one: no maximum is searched for.

    Parameters
    ----------
    margin : float
        M >= 0.
    """
    margin = max(margin, _SMALLEST)
    ends = np.linspace(0.0, min(margin, _SATURATED), _CELLS + 1)
    roots = np.sqrt(np.fmax(1.0 - (ends / margin) ** 2, 0.0))
    sigmoids = np.append(_LOGISTIC.mean(ends[1:]), 1.0)
    return float(np.max(2.0 * sigmoids * roots)) * (1.0 + _OUTWARD)


def refined_step(
    margin: float, clip: float, unit: int, squared_factor: PerAdjacency[int], squared_norm: int
) -> tuple[float, int]:
    """The clip and the unit of one step: the least noise for what was charged.

    No residual is larger than ``sigm(M)``, so a clip there changes none. The unit then may grow
    until either number of the charge is reached: ``rho (unit S / clip + 1.01)`` under replace-one,
    and under add-remove ``rho unit``, which the integer clip of the residuals enforces.

    Parameters
    ----------
    margin : float
        M, a bound on every record's ``|margin|`` at the step's point.
    clip : float
        tau, as the algorithm wishes.
    unit : int
        As charged; it is never too large, whatever the point.
    squared_factor : PerAdjacency of int
        Charged squared sensitivity in units of ``unit ** 2``.
    squared_norm : int
        K2.

    Returns
    -------
    tuple of float and int
        ``clip / unit`` is at most what it was.
    """
    clip = min(clip, float(_LOGISTIC.mean(np.array([margin]))[0]))
    replaced = math.isqrt(squared_factor.replace_one * unit**2 // squared_norm)
    zeroed = math.isqrt(squared_factor.add_remove * unit**2 // squared_norm)
    finest = (replaced - _ROUNDING) * clip / diameter(margin) * (1.0 - _OUTWARD)
    return clip, max(unit, min(int(finest), zeroed))
