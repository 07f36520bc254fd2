"""Error to expect at each epsilon, before anything is spent: from public numbers alone.

In the setting of Cai, Wang and Zhang (2020): columns on a scale of one, so that a row has a norm of
about the square root of d, residuals within 1, a well conditioned design. One release of the mean
gradient that spends the whole mu has noise of scale ``2 sqrt(d) / (n mu)`` on each column when a
row is replaced, half of that when one is left out, and a descent in many steps, whose noise
averages out, can do no better. The squared error of the coefficients is then about::

    dense:   d / n        +  d  scale^2
    sparse:  s log d / n  +  2 s log d  scale^2      (noise of the s largest of d columns)

The yardstick is what no private method can beat by more than constants and powers of log n
(theorems 1, 3, 5 and 6 there)::

    dense:   d / n        +  d^2 log(1/delta) / (n epsilon)^2
    sparse:  s log d / n  +  (s log d)^2 log(1/delta) / (n epsilon)^2

The sparse yardstick is reached where noise falls on the chosen columns alone; a threshold on a
gradient of all columns pays for the norm of the whole row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import gaussian_scale
from dpfit.privacy.conversion import gaussian_mu
from dpfit.report.chart import Axis, Chart, Series, decades_around, number

MOST: Final = 1 << 40  # rows or columns
LEAST_DELTA: Final = 1e-302  # what a budget can ask for
EPSILONS: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_NEAR: Final = 0.01  # an epsilon that a run certifies is a little below what was asked
_DRAWN: Final = tuple(0.1 * 10.0 ** (place / 20) for place in range(41))  # to 10


@dataclass(frozen=True)
class Plan:
    """Public numbers of a fit that may come.

    Attributes
    ----------
    rows, features : int
        n and d, at least 1.
    sparsity : int or None
        s; None for as many coefficients as columns.
    delta : float
    adjacency : Adjacency
    """

    rows: int
    features: int
    sparsity: int | None
    delta: float
    adjacency: Adjacency

    def expected(self, epsilon: float) -> float:
        """Squared error of the coefficients that follows from the noise scale."""
        mu = gaussian_mu(epsilon, self.delta)
        sensitivity = self._bound * math.sqrt(self.features) / self.rows
        scale = gaussian_scale(sensitivity, Fraction(mu) ** 2, 1)
        noisy = self.features if self.sparsity is None else 2.0 * self._dimension
        return self._dimension / self.rows + noisy * scale**2

    @property
    def _bound(self) -> int:
        """Longest parts of a row by which a neighbour moves a sum."""
        return 2 if self.adjacency is Adjacency.REPLACE_ONE else 1

    def yardstick(self, epsilon: float) -> float:
        """The minimax rate, without its constants."""
        n, d = self.rows, self._dimension
        return d / n + d**2 * -math.log(self.delta) / (n * epsilon) ** 2

    @property
    def _dimension(self) -> float:
        """d, or s log d."""
        if self.sparsity is None:
            return float(self.features)
        return self.sparsity * max(math.log(self.features), 1.0)

    def formulas(self) -> str:
        """What :meth:`expected` and :meth:`yardstick` compute, in words."""
        noise, rate = "d/n + d scale²", "d/n + d² log(1/delta)/(n epsilon)²"
        if self.sparsity is not None:
            noise = "s log d/n + 2 s log d scale²"
            rate = "s log d/n + (s log d)² log(1/delta)/(n epsilon)²"
        return (
            f"Expected from the noise: {noise}, with scale = {self._bound} sqrt(d)/(n mu), the "
            "noise of one mean gradient that spends the whole mu. "
            f"Minimax rate: {rate} (Cai, Wang and Zhang)."
        )

    def sentence(self) -> str:
        """The numbers in words."""
        chosen = "" if self.sparsity is None else f", {self.sparsity:,} coefficients"
        return (
            f"{self.rows:,} rows, {self.features:,} columns{chosen}, delta {self.delta:g}, "
            f"{self.adjacency}"
        )

    def epsilons(self, marked: float | None) -> list[float]:
        """Those of the table, a marked one among them."""
        if marked is None:
            return [*EPSILONS]
        others = (epsilon for epsilon in EPSILONS if abs(epsilon / marked - 1.0) > _NEAR)
        return sorted([*others, marked])

    def chart(self, marked: float | None = None) -> Chart:
        """Both against epsilon; ``marked`` is the positive epsilon of a run."""
        epsilons = self.epsilons(marked)
        drawn = sorted({*_DRAWN, *epsilons})
        expected = tuple((epsilon, self.expected(epsilon)) for epsilon in drawn)
        rate = tuple((epsilon, self.yardstick(epsilon)) for epsilon in drawn)
        series = [Series("expected from the noise", expected), Series("minimax rate", rate)]
        if marked is not None:
            series.append(Series("this epsilon", ((marked, self.expected(marked)),)))
        across = decades_around(drawn, least=-9, most=6)
        up = decades_around([y for line in (expected, rate) for _, y in line], least=-9, most=9)
        return Chart(
            name="plan",
            title="Expected error",
            description=f"Squared error of the coefficients against epsilon, for "
            f"{self.sentence()}. Above 1 nothing is learnt. The table below has the numbers.",
            x=Axis.decades("epsilon", *across),
            y=Axis.decades("squared error of the coefficients", *up),
            series=tuple(series),
            head=("epsilon", "expected error", "minimax rate"),
            rows=tuple(
                (number(e), number(self.expected(e)), number(self.yardstick(e))) for e in epsilons
            ),
        )
