"""The default settings of matrix completion, from public quantities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from dpfit.algorithms.complete_matrix import CompleteMatrix

_MOST_RANK: Final = 8


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
        Whether the budget is a pure epsilon: then sweeps and passes cost in proportion.
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
    """Settings as measured best over films and jokes.

    With ``xi = n_items / (n_users mu)``: for xi > 1 biases and local features only; else a rank of
    ``clip(sqrt(n_users mu) / 12, 1, 8)``, and ``clip(.6 xi, .15, .9)`` of the budget to the biases.
    Without noise sweeps cost nothing.

    Parameters
    ----------
    scale : MatrixScale
        Public size of the problem.
    huber : bool
        Whether the users' loss is Huber's; its threshold is a quarter of the range.
    """
    passes, sweeps, growth = (1, 3, 2.0) if scale.pure else (8, 8, 1.7)
    xi = scale.scarcity
    rank = _MOST_RANK
    if scale.mu is None:
        sweeps = 15
    elif xi > 1.0:
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
        growth=growth,
        residual_clip=(1.0 if huber else 2.0) * scale.unit,
        huber_threshold=scale.unit if huber else None,
    )
