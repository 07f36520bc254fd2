"""What a default rule may look at: public quantities only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from dpfit.losses.names import OF_CLASSES
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget

_CONTRACTION: Final = 1.8
_LONGEST_E_OF_RATES: Final = 1e6
WIDE: Final = 10_000
"""More columns are text-like: none is shared by many rows, as those of tables are.

Census (123) and app-use data (5,378) diverge by rules for text.
"""


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
    budget : Budget or None
        None in a run without privacy that names none.
    adjacency : Adjacency
        The relation under which the budget is meant.
    record_length : float
        Bound on the length of a record in units of the row norm, its constant included.
    count_unit : float
        One count, over the top of the public range of counts; for the Poisson loss.
    """

    n_rows: int
    n_features: int
    loss: str
    row_norm: float
    budget: Budget | None
    adjacency: Adjacency
    record_length: float = 1.0
    count_unit: float = 1.0

    @property
    def classifies(self) -> bool:
        """Whether the target is a class."""
        return self.loss in OF_CLASSES

    @property
    def counts(self) -> bool:
        """Whether the target is a count."""
        return self.loss == "poisson"

    @property
    def value_clip(self) -> float:
        """tau for a target that is a value, of its range.

        Counts: a clip below one count would scale the rates of rare events down. One count cuts
        what larger ones add, 5 % of the total of motor claims.
        """
        return max(self.count_unit, 0.1) if self.counts else 0.2

    @property
    def contraction_of_rates(self) -> float | None:
        """eta times the curvature on rows of norm K, at most; None for what is no count."""
        return _CONTRACTION / self.row_norm**2 if self.counts else None

    def longest_plain_step(self, noise: float, steps: int) -> float:
        """The largest ``E = eta tau`` of T plain steps for a value.

        With the identity link a step is a contraction if eta is below 2 over the curvature, which
        is at most 1.01 on unit rows (with the intercept). For counts the noise N on a score is the
        only bound known ahead.

        Parameters
        ----------
        noise : float
            N, of the target's range or on the logarithm of a rate: ``N = 2 E T / (n mu)``.
        steps : int
            T.
        """
        if not self.counts:
            return _CONTRACTION * self.value_clip
        return min(noise * self.rows_times_mu / (2 * steps), _LONGEST_E_OF_RATES)

    def value_steps(self, noise: float, least: int, most: int) -> tuple[int, float]:
        """T and E of plain steps for a value: the noise on a score is N where T allows it.

        Parameters
        ----------
        noise : float
            N.
        least, most : int
            Bounds of T, which is the upper one for counts: their rates are learnt slowly.
        """
        if self.counts:
            return most, self.longest_plain_step(noise, most)
        longest = self.longest_plain_step(noise, most)
        steps = count_of_steps(noise * self.rows_times_mu / (2 * longest), least, most)
        return steps, min(noise * self.rows_times_mu / (2 * steps), longest)

    @property
    def rows_times_mu(self) -> float:
        """``n mu`` under replace-one: records against noise.

        Zeroing a record moves a sum half as far as replacing it, so add-remove counts double.
        """
        if self.mu is None:
            return math.inf
        factor = 1.0 if self.replaces else 2.0
        return factor * self.n_rows * self.mu

    @property
    def mu(self) -> float | None:
        """The whole budget as mu; None where Gaussian noise has no place."""
        if self.budget is None or self.budget.pure:
            return None
        return math.sqrt(self.budget.squared_mu)

    @property
    def replaces(self) -> bool:
        """Whether a neighbour has another record, not one less."""
        return self.adjacency is Adjacency.REPLACE_ONE


def count_of_steps(value: float, least: int, most: int) -> int:
    """``value`` rounded up, between the bounds; the upper one without noise."""
    return most if math.isinf(value) else min(max(math.ceil(value), least), most)
