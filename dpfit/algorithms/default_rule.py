"""What a default rule may look at: public quantities only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpfit.privacy.adjacency import Adjacency


@dataclass(frozen=True)
class PublicScale:
    """The public size of a fitting problem.

    Attributes
    ----------
    n_rows, n_features : int
        n and d.
    loss : str
        Name of the loss.
    row_norm : float
        K.
    squared_mu : Fraction or None
        The whole budget as mu^2; None in a run without privacy.
    adjacency : Adjacency
        The relation under which the budget is meant.
    """

    n_rows: int
    n_features: int
    loss: str
    row_norm: float
    squared_mu: Fraction | None
    adjacency: Adjacency

    @property
    def rows_times_mu(self) -> float:
        """``n mu`` under replace-one: records against noise.

        Zeroing a record moves a sum half as far as replacing it, so add-remove counts double.
        """
        if self.squared_mu is None:
            return math.inf
        factor = 1.0 if self.adjacency is Adjacency.REPLACE_ONE else 2.0
        return factor * self.n_rows * math.sqrt(self.squared_mu)
