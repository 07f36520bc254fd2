"""The noise that the papers print, and what it really costs.

Each printed noise is a multiple z of the largest share that one record can have: ``G = K tau`` of a
gradient sum, ``K_inf tau`` of one of its entries. The clipped residual makes the papers' constants
true: tau stands for their ``R + c1``, K for ``sigma_x sqrt(d)``, K_inf for ``sigma_x``.

What z buys is a matter of arithmetic, whatever the papers state: replacing a record moves a sum by
two shares, zeroing one by one (methods, sections 1.2, 2.2, 2.4, 2.5 and 5). Only settings, the
budget and the grid are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final, TypeAlias

from dpfit.design.grid import Grid
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.conversion import pure_rho
from dpfit.privacy.gaussian_release import squared_factor
from dpfit.privacy.laplace_release import l1_factor
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.quantity import Quantity

Multiple: TypeAlias = Callable[[PlannedRelease, float, float], float]


def dp_ight_theorem(planned: PlannedRelease, epsilon: float, delta: float) -> float:
    """``sigma^2 = T G^2 / (n^2 rho)``, ``rho = (sqrt(epsilon + L) - sqrt(L))^2``, L = log 1/delta.

    Wang and Gu (2019), Algorithm 1 and Theorem 5.2; methods, 1.2.
    """
    log_inverse = -math.log(delta)
    # epsilon over the sum of the roots is their difference, without cancellation.
    root_rho = epsilon / (math.sqrt(epsilon + log_inverse) + math.sqrt(log_inverse))
    return math.sqrt(planned.count) / root_rho


def dp_ight_corollary(planned: PlannedRelease, epsilon: float, delta: float) -> float:
    """``sigma^2 = T G^2 log(1/delta) / (n epsilon)^2``, for the logistic loss.

    Wang and Gu (2019), Corollary 5.8; methods, 1.2.
    """
    return math.sqrt(-planned.count * math.log(delta)) / epsilon


def dp_gd(planned: PlannedRelease, epsilon: float, delta: float) -> float:
    """``eta B sqrt(2 d log(2 T / delta)) T / (n epsilon)`` with ``B = 4 (R + c1) sigma_x``.

    Cai, Wang and Zhang (2020), Algorithm 1; methods, 2.2. A record's share of the step is
    ``eta (R + c1) sigma_x sqrt(d) / n``.
    """
    steps = planned.count
    return 4.0 * math.sqrt(2.0 * (math.log(2 * steps) - math.log(delta))) * steps / epsilon


def dp_iht(planned: PlannedRelease, epsilon: float, delta: float) -> float:
    """``b = lambda 2 sqrt(3 s log(T / delta)) T / epsilon`` with ``lambda = eta B / n``.

    Cai, Wang and Zhang (2020), Algorithms 3 and 4; methods, 2.4 and 2.5. One b for each round of
    peeling and for the values; lambda is four of a record's largest entries.
    """
    steps, rounds = planned.count, planned.chosen
    log_term = math.log(steps) - math.log(delta)
    return 4.0 * 2.0 * math.sqrt(3.0 * rounds * log_term) * steps / epsilon


def dp_fw(planned: PlannedRelease, epsilon: float, delta: float) -> float:
    """``b = G1 C sqrt(8 T log(1/delta)) / (n epsilon)``, G1 a record's largest entry.

    Talwar, Thakurta and Zhang (2015); methods, section 5.
    """
    return math.sqrt(-8.0 * planned.count * math.log(delta)) / epsilon


PRINTED: Final[dict[tuple[str, str], Multiple]] = {
    ("dp-ight", "paper"): dp_ight_theorem,
    ("dp-ight", "paper-corollary"): dp_ight_corollary,
    ("dp-gd", "paper"): dp_gd,
    ("dp-iht", "paper"): dp_iht,
    ("dp-fw", "paper"): dp_fw,
}
"""By algorithm and calibration: z of a planned release, from it, epsilon and delta."""


def real_cost(planned: PlannedRelease, grid: Grid, z: float, adjacency: Adjacency) -> Fraction:
    """What the release costs with noise of z times a record's largest share: mu^2, or twice rho.

    Parameters
    ----------
    planned : PlannedRelease
        A gradient with Gaussian noise, or a selection or partial gradient with Laplace's.
    grid : Grid
        The record map's integer bounds.
    z : float
        Gaussian standard deviation over ``K tau``, or Laplace scale over ``K_inf tau``.
    adjacency : Adjacency
        The neighbouring relation of the cost.
    """
    shares = 2 if adjacency is Adjacency.REPLACE_ONE else 1
    moved = shares / Fraction(z)  # by a neighbour, in units of the noise
    if planned.quantity is Quantity.GRADIENT and not planned.laplace:
        return planned.count * moved**2
    if not planned.laplace:
        raise ValueError(f"no paper prints a noise for {planned.quantity}")
    if planned.quantity is Quantity.SELECTION:
        return 2 * planned.count * planned.chosen * pure_rho(2 * moved)
    # Values: as the Laplace release itself is charged, with both norms in largest entries.
    entry = grid.largest_entry
    l1 = moved * l1_factor(grid, planned.chosen).add_remove / entry
    l2 = squared_factor(planned.quantity, grid, planned.chosen).add_remove
    return 2 * planned.count * min(moved**2 * l2 / (2 * entry**2), pure_rho(l1))
