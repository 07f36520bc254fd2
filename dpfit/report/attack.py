"""What a privacy curve allows the best attacker, whoever that is and whatever is known already.

The attacker knows two neighbouring data sets and guesses from all that was released which of them
was used. An (epsilon, delta)-differentially private release allows, at a false-alarm rate ``a``, a
detection rate of at most::

    min( delta + e^epsilon a,   1 - e^(-epsilon) (1 - delta - a) )

(Kairouz, Oh and Viswanath, 2015, theorem 2.1), and the whole curve the least of these over all
epsilons (Dong, Roth and Su, 2022, proposition 2.12). Here over a grid, so that what is shown may be
more than the truth, never less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from dpfit.privacy.accountant import Cost
from dpfit.report.chart import Axis, Chart, Series, at_most, percent_at_least, percent_at_most

DELTAS: Final = (1e-3, 1e-5, 1e-6, 1e-9)
FALSE_ALARMS: Final = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)
_GRID: Final = 400
_LARGEST_EPSILON: Final = 600.0  # beyond, its exponential would leave the floats
_LEAST_DELTA: Final = 1e-12  # what is shown


@dataclass(frozen=True)
class TradeOff:
    """The best attacker against a cost.

    Attributes
    ----------
    bounds : tuple of (float, float)
        Epsilons with a delta of each.
    """

    bounds: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, cost: Cost) -> TradeOff:
        """That of a cost."""
        ends = (cost.epsilon(_LEAST_DELTA), cost.epsilon(0.0), _LARGEST_EPSILON)
        top = min(end for end in ends if math.isfinite(end))
        grid = [top * place / _GRID for place in range(_GRID + 1)]
        return cls(tuple((epsilon, cost.delta(epsilon)) for epsilon in grid))

    def detection(self, false_alarm: float) -> float:
        """Chance to recognise the right data set, at a rate of false alarms in [0, 1]."""
        bounds = [1.0]
        for epsilon, delta in self.bounds:
            bounds.append(delta + math.exp(epsilon) * false_alarm)
            bounds.append(1.0 - math.exp(-epsilon) * (1.0 - delta - false_alarm))
        return max(min(bounds), false_alarm)

    @property
    def success(self) -> float:
        """Chance of a right guess if both data sets are equally likely: (1 + TV) / 2.

        The total variation distance TV of the two laws is at most the gap between detections and
        false alarms where the two bounds above meet; at epsilon 0 it is delta.
        """
        gaps = (math.tanh(epsilon / 2.0) * (1.0 - delta) + delta for epsilon, delta in self.bounds)
        return (1.0 + min(gaps)) / 2.0


def privacy_chart(run: Cost, in_ledger: tuple[str, Cost] | None, delta: float) -> Chart:
    """Epsilon against delta, of a run and of those in its ledger that count beside it.

    Parameters
    ----------
    run : Cost
    in_ledger : (str, Cost) or None
        What to call these, and their cost; a line that would lie under the run's is left out.
    delta : float
        One to list.
    """
    named = [("this run", run)]
    if in_ledger is not None and in_ledger[1] != run:
        named.append(in_ledger)
    drawn = [(name, _points(cost)) for name, cost in named]
    shown = [(name, points) for name, points in drawn if points]
    largest = max((epsilon for _, points in shown for epsilon, _ in points), default=1.0)
    deltas = sorted({*DELTAS, delta} - {0.0}, reverse=True)
    if any(math.isfinite(cost.epsilon(0.0)) for _, cost in named):
        deltas.append(0.0)
    return Chart(
        name="privacy-curve",
        title="Epsilon and delta",
        description="For each delta, on a logarithmic scale, the epsilon that is kept. "
        "The table below has the numbers.",
        x=Axis.linear("epsilon", 0.0, largest),
        y=Axis.decades("delta", -12, 0),
        series=tuple(Series(name, points) for name, points in shown),
        head=("delta", *(f"epsilon of {name}" for name, _ in named)),
        rows=tuple(
            (f"{delta:g}", *(at_most(cost.epsilon(delta)) for _, cost in named)) for delta in deltas
        ),
    )


def _points(cost: Cost) -> tuple[tuple[float, float], ...]:
    if cost.infinite:
        return ()
    deltas = [10.0 ** (-place / 4) for place in range(1, 4 * 12 + 1)]
    curve = [(0.0, cost.delta(0.0)), *((cost.epsilon(delta), delta) for delta in deltas)]
    return tuple(point for point in curve if 0.0 < point[0] < math.inf or point is curve[0])


def attack_chart(trade_off: TradeOff) -> Chart:
    """Errors of the best attacker: false alarms against missed detections."""
    alarms = sorted({place / 100 for place in range(101)} | {0.001, 0.002, 0.005})
    curve = tuple((alarm, 1.0 - trade_off.detection(alarm)) for alarm in alarms)
    return Chart(
        name="trade-off",
        title="The best attacker's errors",
        description="For each rate of false alarms (type I errors) the least rate of missed "
        "detections (type II errors) that any attacker can have. The closer to the diagonal, "
        "the closer to guessing. The table below has the numbers.",
        x=Axis.linear("false alarms (type I)", 0.0, 1.0, at_most=5),
        y=Axis.linear("missed (type II)", 0.0, 1.0, at_most=5),
        series=(
            Series("no attacker is below this", curve),
            Series("guessing without a look", ((0.0, 1.0), (1.0, 0.0))),
        ),
        head=("false alarms", "least missed", "most detected", "most right guesses"),
        rows=tuple(
            (
                f"{100.0 * alarm:g} %",
                percent_at_least(1.0 - trade_off.detection(alarm)),
                percent_at_most(trade_off.detection(alarm)),
                percent_at_most((1.0 - alarm + trade_off.detection(alarm)) / 2.0),
            )
            for alarm in FALSE_ALARMS
        ),
    )
