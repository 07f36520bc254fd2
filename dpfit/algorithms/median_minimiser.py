"""Median regressions that release one minimiser: their settings, their run, their last release."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Final

from dpfit.algorithms.base import Setting
from dpfit.algorithms.median import CENTRE, sparse_outcome
from dpfit.algorithms.outcome import Outcome
from dpfit.privacy.curator import Curator
from dpfit.privacy.events import MinimiserLaw
from dpfit.privacy.objective import Objective
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.quantity import Quantity

MINIMISER: Final = "minimiser"
ON_GRID: Final = Fraction(1, 100)
"""Of the whole, for the noise that makes the last digits of a minimiser private."""


@dataclass(frozen=True)
class MinimiserSettings(ABC):
    """The settings of a smoothed median regression with a ridge.

    Attributes
    ----------
    sparsity : int or None
        Coefficients to keep at the end.
    quantile : float
        A half is the median.
    smoothing : float
        Where the loss turns into a line, of the target's range.
    ridge : float
        In records: the penalty is ``(ridge / 2) |w|^2`` beside the sum of the losses.
    noise : str
        Law of the random vector: ``l2``, ``l1`` or ``gaussian``.
    """

    sparsity: int | None
    quantile: float
    smoothing: float
    ridge: float
    noise: str

    steps = 1

    def settings(self) -> Mapping[str, Setting]:
        """All settings, the smoothing by a name that tells its unit; a part of zero is left out."""
        values = asdict(self)
        named = {"smoothing_share": values.pop("smoothing"), **values}
        return {name: value for name, value in named.items() if value != 0.0}

    @property
    @abstractmethod
    def objective(self) -> Objective:
        """What is minimised."""

    def run(self, curator: Curator, report_progress: Callable[[int], None]) -> Outcome:
        """Centre, minimise; keep the largest coefficients, if asked."""
        report_progress(0)
        centre = curator.target_quantile(CENTRE.label, self.quantile)
        point = curator.minimiser(MINIMISER, self.objective, centre)
        report_progress(1)
        return sparse_outcome(point, self.sparsity)


def on_grid(law: MinimiserLaw, objective: Objective) -> PlannedRelease:
    """The release of a noisy minimiser's integers: pure where its law is."""
    laplace = law is not MinimiserLaw.GAUSSIAN
    return PlannedRelease(
        MINIMISER,
        Quantity.MINIMISER,
        1,
        Fraction(0) if laplace else ON_GRID**2,
        pure_part=ON_GRID if laplace else Fraction(0),
        laplace=laplace,
        objective=objective,
    )
