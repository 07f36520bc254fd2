"""Budget spent over time, from the entries of a ledger."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from dpfit.privacy.accountant import NOTHING
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.ledger_document import LedgerDocument
from dpfit.report.chart import Axis, Chart, Series, Ticks, at_most
from dpfit.report.elements import shortened

_MOST_POINTS: Final = 200
_LONGEST_TABLE: Final = 8
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"
_DAY: Final = 86400.0


@dataclass(frozen=True)
class Spending:
    """What the runs of a ledger had spent together after each of them.

    Attributes
    ----------
    adjacency : Adjacency
    delta : float
        Where epsilons are stated.
    cap : float or None
        Epsilon of the cap at that delta.
    times : tuple of str
        Of each run, as the ledger says.
    after : tuple of (int, float)
        Runs so far and epsilon spent; of a long ledger some runs only, the last among them.
    """

    adjacency: Adjacency
    delta: float
    cap: float | None
    times: tuple[str, ...]
    after: tuple[tuple[int, float], ...]

    @classmethod
    def of(cls, document: LedgerDocument, adjacency: Adjacency, delta: float) -> Spending:
        """That of a ledger, all parts of it."""
        charged = [(str(e.get("time")), cost) for e, cost in document.charges(adjacency)]
        totals = [*itertools.accumulate((cost for _, cost in charged), initial=NOTHING)]
        every = -(-len(charged) // _MOST_POINTS) or 1
        runs = sorted({*range(0, len(charged), every), len(charged)})
        cap = document.cap
        return cls(
            adjacency=adjacency,
            delta=delta,
            cap=cap.epsilon if cap is not None and cap.delta == delta else None,
            times=tuple(time for time, _ in charged),
            after=tuple((run, totals[run].epsilon(delta)) for run in runs),
        )

    @property
    def spent(self) -> float:
        return self.after[-1][1]

    def sentence(self) -> str:
        """The sum in words."""
        cap = "there is no cap" if self.cap is None else f"the cap is {self.cap:g}"
        runs = "1 run" if len(self.times) == 1 else f"{len(self.times):,} runs"
        spent = f"spent epsilon {at_most(self.spent)} at delta {self.delta:g} ({self.adjacency})"
        if math.isinf(self.spent):
            spent = "spent without bound, since a run that is not private is among them"
        return f"{runs} {spent}; {cap}"

    def chart(self) -> Chart | None:
        """Steps that rise with each run, against the cap; None if no epsilon is to be shown."""
        if len(self.after) < 2 or math.isinf(self.after[1][1]):
            return None
        places, axis = self._places()
        steps = [(places[run], epsilon) for run, epsilon in self.after if math.isfinite(epsilon)]
        if math.isfinite(self.spent):
            steps.append((axis.high, self.spent))
        spent = Series("spent", tuple(steps), steps=True)
        series, top = [spent], max(epsilon for _, epsilon in steps)
        if self.cap is not None:
            series.append(Series("cap", ((axis.low, self.cap), (axis.high, self.cap))))
            top = max(top, self.cap)
        return Chart(
            name="spending",
            title="Budget spent",
            description=f"Epsilon spent after each run: {self.sentence()}.",
            x=axis,
            y=Axis.linear(f"epsilon at delta {self.delta:g}", 0.0, 1.05 * top or 1.0, at_most=5),
            series=tuple(series),
            head=("after run", "time", "epsilon spent"),
            rows=tuple(self._rows()),
        )

    def _rows(self) -> list[tuple[str, ...]]:
        """The last runs, and what all before them came to."""
        runs = [(run, epsilon) for run, epsilon in self.after if run]
        return [
            (str(run), _shown(self.times[run - 1]), at_most(epsilon))
            for run, epsilon in runs[-_LONGEST_TABLE:]
        ]

    def _places(self) -> tuple[Sequence[float], Axis]:
        """Where each number of runs stands: in time, or by number if times do not tell runs apart.

        A clock that was set back, and a text that is no time, leave the numbers.
        """
        moments = [_seconds(time) for time in self.times]
        known = [moment for moment in moments if moment is not None]
        ordered = known == sorted(known) and len(known) == len(moments)
        if not ordered or len(set(known)) < len(known) or len(known) < 2:
            runs = len(moments)  # the first lies between 0 and 1, and so on
            return [0, *range(runs)], Axis.linear("runs", 0.0, float(runs), at_most=min(runs, 6))
        first, last = known[0], known[-1]
        lead = (last - first) / 20  # so that the first run rises from nothing
        axis = Axis("time (UTC)", first - lead, last + lead, _dates(first, last))
        return [first - lead, *known], axis


def _seconds(time: str) -> float | None:
    try:
        return datetime.strptime(time, _TIME).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _shown(time: str) -> str:
    return shortened(time) if _seconds(time) is None else time[:16].replace("T", " ")


def _dates(first: float, last: float) -> Ticks:
    shown = "%Y-%m-%d" if last - first > 3 * _DAY else "%d %b %H:%M"
    moments = [first + (last - first) * place / 2 for place in range(3)]
    return tuple((at, datetime.fromtimestamp(at, UTC).strftime(shown)) for at in moments)
