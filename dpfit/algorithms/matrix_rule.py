"""The default settings of matrix completion, from public quantities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from dpfit.algorithms.complete_matrix import CompleteMatrix

_MOST_RANK: Final = 8
SWEEPS: Final = 8
"""Where factors pay."""


@dataclass(frozen=True)
class MatrixScale:
    """The public size of a matrix to complete.

    Attributes
    ----------
    n_users, n_items : int
        Its shape.
    value_range : (float, float)
        Bounds of a rating.
    mu : float or None
        Of Gaussian noise that is as large as the run's noise; None in a run without.
    pure : bool
        Whether the budget is a pure epsilon, which is charged in the l1 norm.
    """

    n_users: int
    n_items: int
    value_range: tuple[float, float]
    mu: float | None
    pure: bool = False

    @property
    def unit(self) -> float:
        """A quarter of the range of ratings."""
        return (self.value_range[1] - self.value_range[0]) / 4.0

    @property
    def scarcity(self) -> float:
        """``n_items / (n_users mu)``; above one, factors cost more than they bring."""
        return 0.0 if self.mu is None else self.n_items / (self.n_users * self.mu)


def default_rule(scale: MatrixScale, *, huber: bool) -> CompleteMatrix:
    """Settings as measured best over films and jokes (matrix completion, section 3).

    With ``xi = n_items / (n_users mu)``: for xi > 1 biases and local features only; else a rank of
    ``clip(sqrt(n_users mu) / 12, 1, 8)``, and ``clip(.6 xi, .15, .9)`` of the budget to the biases.
    A pure epsilon never pays for factors: at 20 they still lose on 100 items and 5,000 users.
    Without noise sweeps cost nothing, and nothing is saved by giving up.

    Parameters
    ----------
    scale : MatrixScale
        Public size of the problem.
    huber : bool
        Whether the users' loss is Huber's; its threshold is a quarter of the range.
    """
    passes = 3 if scale.pure else 8
    sweeps = SWEEPS
    xi = scale.scarcity
    rank = _MOST_RANK
    if scale.mu is None:
        sweeps = 15
    elif xi > 1.0 or scale.pure:
        rank = sweeps = 0
    else:
        wished = round(math.sqrt(scale.n_users * scale.mu) / 12.0)
        rank = min(max(wished, 1), _MOST_RANK)
    return CompleteMatrix(
        rank=min(rank, scale.n_items),
        sweeps=sweeps,
        passes=passes,
        max_per_user=20.0,
        bias_share=min(max(0.6 * xi, 0.15), 0.9),
        growth=1.7,
        residual_clip=(1.0 if huber else 2.0) * scale.unit,
        huber_threshold=scale.unit if huber else None,
        may_fall_back=scale.mu is not None,
    )
