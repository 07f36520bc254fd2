"""Releases of a minimiser: random vectors in or on it, and its integers.

The ideal release is a real vector: the minimiser w* of an objective with a random linear term, or
w* plus a random vector. What is computed, a float vector v, is a function of the records and of the
exact randomness that is within a public radius E of the ideal one: the solver proves its distance
(:mod:`.minimise`), and the random floats are within a known distance of exact variables
(:mod:`.mechanisms.real_vectors`). After the ideal release, v is the answer to a second question,
whose answers under neighbours are at most 2 E apart given the first. So v is put on a grid of step
h and released with exact integer noise for ``2 E / h`` and the rounding: what floats do is paid
for, and nothing is assumed about them. (methods, 3.2 O4, carried over from the solver's error to
all of them.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

from dpfit.design.grid import Grid
from dpfit.errors import PrivacyError
from dpfit.losses.smoothed import HuberSmoothed
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.conversion import log1p_up, round_up, sqrt_up
from dpfit.privacy.events import GaussianEvent, LaplaceEvent, MinimiserEvent, MinimiserLaw
from dpfit.privacy.gaussian_release import GaussianRelease
from dpfit.privacy.laplace_release import LaplaceRelease
from dpfit.privacy.minimiser_error import distance_to_reach, record_length
from dpfit.privacy.objective import Objective
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.quantity import Quantity

GridRelease: TypeAlias = GaussianRelease | LaplaceRelease

_COARSEST: Final = 1 << 10  # a coordinate's sensitivity on the grid, so that rounding is a trifle
_ROUNDING: Final = Fraction(3, 2)  # of two coordinates: halves, and a quarter for floats below 2^50
_SCALE_BITS: Final = range(6, 55)


@dataclass(frozen=True)
class VectorRelease:
    """A random real vector: the linear term of an objective, or added to its minimiser.

    Attributes
    ----------
    label : str
        As the ledger calls it.
    quantity : Quantity
        ``OBJECTIVE_TERM`` or ``MINIMISER_SHIFT``.
    law : MinimiserLaw
        Of the vector.
    sensitivity : PerAdjacency of Fraction
        What neighbours move, in the law's norm.
    scale : Fraction
        Of the law.
    jacobian : PerAdjacency of Fraction
        Ratio of determinants less one.
    objective : Objective
        Whose minimiser all of this is about.
    """

    label: str
    quantity: Quantity
    law: MinimiserLaw
    sensitivity: PerAdjacency[Fraction]
    scale: Fraction
    jacobian: PerAdjacency[Fraction]
    objective: Objective

    count = 1

    @property
    def noise_multiplier(self) -> float:
        """The law's scale over the most that one record can add."""
        return float(self.scale / self.sensitivity.add_remove)

    @property
    def moves(self) -> Fraction:
        """The scale by which the vector moves the minimiser."""
        in_objective = self.quantity is Quantity.OBJECTIVE_TERM
        return self.scale / Fraction(self.objective.ridge) if in_objective else self.scale

    def event(self) -> MinimiserEvent:
        """The charge."""
        return MinimiserEvent(
            label=self.label,
            law=self.law,
            sensitivity=self.sensitivity,
            scale=self.scale,
            jacobian=self.jacobian,
        )


@dataclass(frozen=True)
class MinimiserRelease:
    """Integers of a minimiser with exact noise.

    Attributes
    ----------
    noise : GaussianRelease or LaplaceRelease
        The mechanism on the grid; its unit is 1.
    step : float
        h, the grid's step.
    radius : float
        E: how near the ideal point the computed one must be.
    objective : Objective
        Whose minimiser is released.
    alone : bool
        Whether the noise on the grid protects it; otherwise a random vector must, which is charged
        beside this release.
    bits : int
        Half the bits of a score, see :func:`.minimise.minimise`.
    """

    noise: GridRelease
    step: float
    radius: float
    objective: Objective
    alone: bool
    bits: int

    quantity = Quantity.MINIMISER
    count = 1

    @property
    def label(self) -> str:
        return self.noise.label

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation of the noise over what neighbours move when one record is zeroed."""
        return self.noise.noise_multiplier

    def event(self) -> GaussianEvent | LaplaceEvent:
        """The charge."""
        return self.noise.event()


def plan_vector(
    planned: PlannedRelease,
    grid: Grid,
    *,
    n_features: int,
    squared_mu: Fraction | None,
    epsilon: Fraction | None,
    adjacency: Adjacency,
) -> VectorRelease:
    """The smallest scale that keeps the budget.

    In an objective (methods, 3.2 O1 to O3): scores within S make the terms that give one minimiser
    at most ``S |z|`` apart when a record is zeroed and twice that when it is replaced; the
    determinants differ by a factor of at most ``1 + |z|^2 / (g ridge)``. On a minimiser (3.3): that
    moves by ``S |z| / ridge``, or twice that.

    Parameters
    ----------
    planned : PlannedRelease
        With objective and law.
    grid : Grid
        The record map.
    n_features : int
        d.
    squared_mu, epsilon : Fraction or None
        For Gaussian noise, and for a pure law and the determinants; both None without noise.
    adjacency : Adjacency
        The relation under which the budget is meant.

    Raises
    ------
    PrivacyError
        The determinants alone take the whole epsilon.
    """
    objective, law = planned.objective, planned.law
    assert objective is not None
    assert law is not None
    if planned.quantity is Quantity.OBJECTIVE_TERM:
        zeroed, jacobian = _largest_gradient(objective, grid), determinant_ratio(objective, grid)
    else:
        zeroed, jacobian = _largest_move(objective, grid), Fraction(0)
    if law is MinimiserLaw.L1:
        zeroed *= Fraction(sqrt_up(Fraction(n_features + 1)))
    sensitivity = PerAdjacency(replace_one=2 * zeroed, add_remove=zeroed)
    scale = Fraction(1)
    if epsilon is not None:
        left = epsilon - log1p_up(jacobian)
        gaussian = law is MinimiserLaw.GAUSSIAN
        if left < 0 or (left == 0 and not gaussian):
            raise _too_steep(epsilon, objective, grid)
        moved = sensitivity.under(adjacency)
        if gaussian:
            assert squared_mu is not None
            scale = Fraction(sqrt_up(moved**2 / squared_mu))
        else:
            scale = Fraction(round_up(moved / left))
    return VectorRelease(
        planned.label,
        planned.quantity,
        law,
        sensitivity,
        scale,
        PerAdjacency(replace_one=jacobian, add_remove=jacobian),
        objective,
    )


def _largest_gradient(objective: Objective, grid: Grid) -> Fraction:
    """``S |z|``, in the l2 norm: what one record adds to the gradient."""
    return objective.loss.largest_score * record_length(grid)


def _largest_move(objective: Objective, grid: Grid) -> Fraction:
    """``S |z| / ridge``, in the l2 norm: how far one record moves the minimiser."""
    return _largest_gradient(objective, grid) / Fraction(objective.ridge)


def determinant_ratio(objective: Objective, grid: Grid) -> Fraction:
    """q of an objective with Huber's smoothing: ``|z|^2 / (g ridge)`` (methods, 3.2)."""
    assert isinstance(objective.loss, HuberSmoothed)
    squared = Fraction(grid.squared_norm, grid.integer_norm**2)
    return squared * objective.loss.largest_curvature / Fraction(objective.ridge)


def _too_steep(epsilon: Fraction, objective: Objective, grid: Grid) -> PrivacyError:
    curvature = float(determinant_ratio(objective, grid)) * objective.ridge
    all_of_it, half = (curvature / math.expm1(float(epsilon) / part) for part in (1.0, 2.0))
    return PrivacyError(
        "--smoothing and --ridge are so small that curvature alone spends the epsilon",
        hint=f"with this smoothing --ridge must be above {all_of_it:.3g}; "
        f"{half:.3g} leaves half of the epsilon for noise",
    )


def plan_minimiser(
    planned: PlannedRelease,
    grid: Grid,
    *,
    n_rows: int,
    n_features: int,
    unit_bits: int,
    vector: VectorRelease | None,
    squared_mu: Fraction | None,
    epsilon: Fraction | None,
    adjacency: Adjacency,
) -> MinimiserRelease:
    """The finest grid on which exact integer noise keeps the budget.

    Without a random vector before it, the release itself has noise for what neighbours move a
    minimiser: ``S |z| / ridge``, or twice that (methods, 3.3).

    Parameters
    ----------
    planned : PlannedRelease
        With an objective.
    grid : Grid
        The record map.
    n_rows, n_features : int
        n and d.
    unit_bits : int
        Half the bits of a score, see :func:`.minimise.minimise`.
    vector : VectorRelease or None
        The random vector in or on the minimiser; without one the noise on the grid protects it.
    squared_mu, epsilon : Fraction or None
        One of them for Gaussian or Laplace noise; both None without noise.
    adjacency : Adjacency
        The relation under which the budget is meant.
    """
    objective, size, alone = planned.objective, n_features + 1, vector is None
    assert objective is not None
    noise = vector.moves if vector is not None else Fraction(0)
    radius = distance_to_reach(objective, grid, n_rows, unit_bits, noise, size)
    radius = Fraction(round_up(radius))
    zeroed = _largest_move(objective, grid) if alone else Fraction(0)
    moved = PerAdjacency(replace_one=2 * zeroed + 2 * radius, add_remove=zeroed + 2 * radius)
    root = Fraction(sqrt_up(Fraction(size)))
    rounding = _ROUNDING * root
    if squared_mu is None and epsilon is None:
        scale_bits, step = 0, radius
    elif planned.laplace:
        assert epsilon is not None
        scale_bits, most = _integers(epsilon, _COARSEST * size)
        step = root * moved.under(adjacency) / (most - root * rounding)
    else:
        assert squared_mu is not None
        share = 1 / Fraction(sqrt_up(1 / squared_mu))
        scale_bits, most = _integers(share, _COARSEST * math.isqrt(size))
        step = moved.under(adjacency) / (most - rounding)
    step = Fraction(round_up(step))
    reach = moved.mapped(lambda distance: distance / step + rounding)
    # Distances between integer vectors are integers, squared or in the l1 norm: rounded down.
    squared = reach.mapped(lambda distance: math.floor(distance**2))
    law: GridRelease
    if planned.laplace:
        l1 = reach.mapped(lambda distance: math.floor(root * distance))
        law = LaplaceRelease(planned.label, l1, squared, 1, scale_bits, 1, 0, Quantity.MINIMISER)
    else:
        law = GaussianRelease(planned.label, Quantity.MINIMISER, squared, 1, scale_bits, 1)
    return MinimiserRelease(law, float(step), float(radius), objective, alone, unit_bits)


def _integers(share: Fraction, least: int) -> tuple[int, int]:
    """A scale 2^s and ``floor(share 2^s)``, the smallest with that many steps or more.

    Raises
    ------
    PrivacyError
        The budget leaves no number grid.
    """
    for scale_bits in _SCALE_BITS:
        most = math.floor(share * (1 << scale_bits))
        if most >= least:
            return scale_bits, most
    raise PrivacyError("the budget is too small for this release", hint="ask for a larger epsilon")
