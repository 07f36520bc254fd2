"""Budget spent over time, from the entries of a ledger."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from dpfit.privacy.accountant import NOTHING, Cost
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.ledger_document import LedgerDocument
from dpfit.report.chart import Axis, Chart, Series, Ticks, at_most
from dpfit.report.elements import shortened
from dpfit.report.protected import Protected, SpentOnEach

_MOST_POINTS: Final = 200
_LONGEST_TABLE: Final = 8  # runs with a row of their own
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"
_DAY: Final = 86400.0
_MINUTES: Final = 120.0  # seconds; in less, begin, middle and end may be in one minute
_TWO_SECONDS: Final = 2.0


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
        Runs so far and epsilon spent; of a long ledger some runs only, the last ones among them.
    on_each : SpentOnEach
        What was spent on whom: the epsilons here are of all runs, whatever they protect.
    """

    adjacency: Adjacency
    delta: float
    cap: float | None
    times: tuple[str, ...]
    after: tuple[tuple[int, float], ...]
    on_each: SpentOnEach

    @classmethod
    def of(cls, document: LedgerDocument, adjacency: Adjacency, delta: float) -> Spending:
        """That of a ledger, all parts of it."""
        times, charged = list[str](), list[tuple[Protected, Cost]]()
        for entry, cost in document.charges(adjacency):
            times.append(str(entry.get("time")))
            charged.append((Protected.by(entry), cost))
        count = len(charged)
        totals = [*itertools.accumulate((cost for _, cost in charged), initial=NOTHING)]
        every = -(-count // _MOST_POINTS) or 1
        last = range(max(0, count - _LONGEST_TABLE), count + 1)
        runs = sorted({*range(0, count, every), *last})
        cap = document.cap
        return cls(
            adjacency=adjacency,
            delta=delta,
            cap=cap.epsilon if cap is not None and cap.delta == delta else None,
            times=tuple(times),
            after=tuple((run, totals[run].epsilon(delta)) for run in runs),
            on_each=SpentOnEach.of_charges(charged, adjacency),
        )

    @property
    def spent(self) -> float:
        return self.after[-1][1]

    def sentence(self) -> str:
        """The sum of all runs in words."""
        cap = "there is no cap" if self.cap is None else f"the cap is {self.cap:g}"
        runs = "1 run" if len(self.times) == 1 else f"{len(self.times):,} runs"
        spent = f"spent {self._epsilon(self.spent)}"
        if math.isinf(self.spent):
            spent = "spent without bound, since a run that is not private is among them"
        return f"{runs} {spent}; {cap}"

    def shares(self) -> list[str]:
        """What was spent on whom where records differ, as ``dpfit budget`` has it."""
        if not self.on_each.mixed:
            return []
        said = [f"this sum protects {self.on_each.of_total}"]
        for share in self.on_each.shares():
            spent = self._epsilon(share.spent.cost.epsilon(self.delta))
            names = "" if share.names is None else f" ({share.names})"
            others = f"; {share.others}" if share.others else ""
            said.append(f"spent on {share.on}{names}: {spent} by {share.counted} runs{others}")
        return said

    def _epsilon(self, epsilon: float) -> str:
        return f"epsilon {at_most(epsilon)} at delta {self.delta:g} ({self.adjacency})"

    def chart(self) -> Chart | None:
        """Steps that rise with each run, against the cap; None if no epsilon is to be shown."""
        if len(self.after) < 2 or math.isinf(self.after[1][1]):
            return None
        places, axis = self._places()
        steps = [(places[run], epsilon) for run, epsilon in self.after if math.isfinite(epsilon)]
        if math.isfinite(self.spent):
            steps.append((axis.high, self.spent))
        by_all = " by all runs" if self.on_each.mixed else ""
        spent = Series(f"spent{by_all}", tuple(steps), steps=True)
        series, top = [spent], max(epsilon for _, epsilon in steps)
        if self.cap is not None:
            series.append(Series("cap", ((axis.low, self.cap), (axis.high, self.cap))))
            top = max(top, self.cap)
        return Chart(
            name="spending",
            title=f"Budget spent{by_all}",
            description=f"Epsilon spent after each run: {self.sentence()}.",
            x=axis,
            y=Axis.linear(f"epsilon at delta {self.delta:g}", 0.0, 1.05 * top or 1.0, at_most=5),
            series=tuple(series),
            head=("after run", "time", f"epsilon spent{by_all}"),
            rows=tuple(self._rows()),
        )

    def _rows(self) -> list[tuple[str, ...]]:
        """The last runs, and before them in one row what all earlier ones came to."""
        rows = list[tuple[str, ...]]()
        for run, epsilon in self.after[-_LONGEST_TABLE - 1 :]:
            earlier = run == len(self.times) - _LONGEST_TABLE
            named = f"1 to {run}, together" if earlier and run > 1 else str(run)
            if run:
                rows.append((named, _shown(self.times[run - 1]), at_most(epsilon)))
        return rows

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
        label = "time (UTC)" if last - first >= _MINUTES else f"time (UTC) from {_day(first)}"
        axis = Axis(label, first - lead, last + lead, _dates(first, last))
        return [first - lead, *known], axis


def _seconds(time: str) -> float | None:
    try:
        return datetime.strptime(time, _TIME).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _shown(time: str) -> str:
    return shortened(time) if _seconds(time) is None else time[:16].replace("T", " ")


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")


def _dates(first: float, last: float) -> Ticks:
    """Begin, middle and end, as coarse as tells them apart."""
    span = last - first
    shown = "%Y-%m-%d" if span > 3 * _DAY else "%d %b %H:%M" if span >= _MINUTES else "%H:%M:%S"
    places = (0.0, 0.5, 1.0) if span >= _TWO_SECONDS else (0.0, 1.0)
    moments = [first + span * place for place in places]
    return tuple((at, datetime.fromtimestamp(at, UTC).strftime(shown)) for at in moments)
