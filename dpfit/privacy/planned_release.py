"""How an algorithm divides its budget: what it will ask of the Curator, planned ahead."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpfit.privacy.events import MinimiserLaw
from dpfit.privacy.objective import Objective
from dpfit.privacy.quantity import Quantity


@dataclass(frozen=True)
class PlannedRelease:
    """What will be released, how often, and for which part of the budget.

    Attributes
    ----------
    label : str
        Its name in the ledger.
    quantity : Quantity
        What is released.
    count : int
        How many times.
    budget_part : Fraction
        Of the whole: of mu^2 when everything is Gaussian, of rho when something is selected.
    chosen : int
        Columns of a selection or a partial gradient.
    laplace : bool
        Whether the noise is Laplace's: a selection by peeling, a gradient or a minimiser.
    residual_clip : float, optional
        tau of a gradient, where its charge may depend on it.
    pure_part : Fraction
        Of the whole epsilon, or of rho, what is spent as pure epsilon; the other parts are of what
        all of these leave.
    objective : Objective, optional
        Whose minimiser is released.
    law : MinimiserLaw, optional
        Of the random vector in or on a minimiser. On the release of the minimiser itself: it has
        no random vector, and its own noise follows this law.
    """

    label: str
    quantity: Quantity
    count: int
    budget_part: Fraction
    chosen: int = 0
    laplace: bool = False
    residual_clip: float | None = None
    pure_part: Fraction = Fraction(0)
    objective: Objective | None = None
    law: MinimiserLaw | None = None

    @property
    def selects(self) -> bool:
        """Whether columns are chosen, instead of sums released."""
        return self.quantity in (Quantity.SELECTION, Quantity.VOTES, Quantity.TARGET_RANKS)

    @property
    def charges(self) -> int:
        """How often one record is charged."""
        return self.quantity.charges(self.count)
