"""A private search over declared settings: which runs it draws from, and what each may spend."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from dpfit.errors import UsageError
from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.conversion import round_down
from dpfit.privacy.events import Event, RandomStoppingEvent, ZcdpEvent
from dpfit.privacy.random_stopping import gamma_for

if TYPE_CHECKING:
    from dpfit.fitting.request import FitRequest

Value = int | float | str
ETA: Final = Fraction(0)  # of -3/4 to 1, the law that misses least at equal noise (README)
SCORE_PART: Final = Fraction(1, 20)  # of a run's rho
MOST_CANDIDATES: Final = 200
LABEL: Final = "search"
_BISECTIONS: Final = 60
_REMEMBERED: Final = 16  # searches: checks, plan and ledger of one all ask


@dataclass(frozen=True)
class Search:
    """What to search, and how often to expect a run.

    Attributes
    ----------
    grid : mapping of str to tuple
        Values of each setting; every combination is a candidate.
    expected_runs : float or None
        E K; None: as many as there are candidates.
    """

    grid: Mapping[str, tuple[Value, ...]]
    expected_runs: float | None = None

    def __post_init__(self) -> None:
        for name, values in self.grid.items():
            if len(set(values)) != len(values):
                raise UsageError(f"--tune {name.replace('_', '-')} names a value twice")
        if not 2 <= len(self.candidates()) <= MOST_CANDIDATES:
            raise UsageError(f"--tune needs 2 to {MOST_CANDIDATES} combinations of values")

    def candidates(self) -> list[dict[str, Value]]:
        """Every combination of values."""
        names = list(self.grid)
        combined = itertools.product(*self.grid.values())
        return [dict(zip(names, values, strict=True)) for values in combined]

    @property
    def runs(self) -> float:
        """E K, as asked or by default."""
        return float(len(self.candidates())) if self.expected_runs is None else self.expected_runs

    @property
    def gamma(self) -> Fraction:
        """Of the law of the number of runs."""
        return gamma_for(ETA, self.runs)

    def event(self, runs: Sequence[Sequence[Event]]) -> RandomStoppingEvent:
        """The charge of the whole search over runs that release these events."""
        return _event(self.gamma, runs)

    def rho_of_run(self, budget: Budget, adjacency: Adjacency) -> Fraction:
        """The largest rho of one run at which the whole search keeps the budget.

        Raises
        ------
        UsageError
            The budget is no epsilon with a delta.
        """
        if budget.epsilon is None or budget.delta is None:
            raise UsageError(
                "--tune needs --eps and --delta",
                hint="the best of a random number of runs has no budget in rho or mu",
            )
        rho = _largest_rho(self.gamma, budget.epsilon, budget.delta, adjacency)
        if rho == 0:
            raise UsageError(
                "the budget is too small for a search", hint="ask for fewer --tune-runs"
            )
        return rho

    def requests(self, request: FitRequest) -> list[FitRequest]:
        """Each candidate as a fit of its own, under what its score leaves of a run's budget."""
        assert request.budget is not None
        rho = self.rho_of_run(request.budget, request.adjacency) * (1 - SCORE_PART)
        budget = Budget(rho=round_down(rho), delta=request.budget.delta)
        return [
            replace(request, search=None, budget=budget, **one)  # type: ignore[arg-type]
            for one in self.candidates()
        ]


def _event(gamma: Fraction, runs: Sequence[Sequence[Event]]) -> RandomStoppingEvent:
    different = dict.fromkeys(tuple(run) for run in runs)
    return RandomStoppingEvent(label=LABEL, eta=ETA, gamma=gamma, runs=tuple(different))


@lru_cache(_REMEMBERED)
def _largest_rho(gamma: Fraction, epsilon: float, delta: float, adjacency: Adjacency) -> Fraction:
    """By bisection on the accountant itself, from below; 0 where nothing keeps the budget."""
    low, high = Fraction(0), Budget(epsilon=epsilon, delta=delta).total_rho
    for _ in range(_BISECTIONS):
        middle = Fraction(float((low + high) / 2))
        run = ZcdpEvent(label="run", rho=PerAdjacency(middle, middle))
        cost = compose([_event(gamma, [[run]])], adjacency)
        if cost.epsilon(delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low
