"""A search for the best of declared settings: random stopping, charged as one.

A secret, random number of runs, each of a candidate drawn with equal chances; each fits, and scores
what it fitted, under the budget of one run. Only the best leaves this room: how many runs there
were, and what the others found, is never told (Papernot and Steinke, 2021).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpfit.algorithms.outcome import Outcome
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.plan import FitPlan, plan_fit
from dpfit.fitting.search import ETA, SCORE_PART, Search, Value
from dpfit.fitting.search_score import SearchScore, search_score
from dpfit.losses.base import Loss
from dpfit.privacy.canonical_json import Json
from dpfit.privacy.curator import Curator
from dpfit.privacy.events import Event, NonPrivateEvent
from dpfit.privacy.gaussian_release import GaussianRelease, plan_release
from dpfit.privacy.mechanisms.noise import Noise, SearchNoise, prepare_noise
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.point import Point
from dpfit.privacy.public_facts import PublicFacts
from dpfit.privacy.quantity import Quantity

SCORE = PlannedRelease("score", Quantity.SCORE, 1, Fraction(1))


@dataclass(frozen=True)
class Best:
    """What a search releases, beside the model.

    Attributes
    ----------
    settings : mapping
        The candidate's.
    score : float
        Noisy; chosen for being low, and so on average lower than another score of it would be.
    """

    settings: dict[str, Value]
    score: float


class TunedFit(LinearFit):
    """A search whose rows were read and whose plan is fixed; nothing was spent yet.

    Its request has a search. Parameters are those of :class:`LinearFit`.

    Attributes
    ----------
    plan : FitPlan
        Of the first candidate, with the whole search for its charge; after the run that of the
        best.
    best : Best or None
        None before the run.
    """

    best: Best | None = None

    def _planned(self, facts: PublicFacts, loss: Loss, target_span: float) -> FitPlan:
        search = self.search
        self.plans = [
            plan_fit(request, facts, loss, target_span=target_span)
            for request in search.requests(self.request)
        ]
        if any(plan.grid != self.plans[0].grid for plan in self.plans):
            raise RuntimeError("candidates of a search must share the grid of the records")
        self.score_release = self._score_release(self.plans[0])
        largest = 1.0 if self.target_range is None else self.target_range[1]
        self.score: SearchScore = search_score(loss, largest)
        events: Sequence[Event] = [NonPrivateEvent(label="search")]
        if self.request.private:
            events = [search.event([self.events_of_run(plan) for plan in self.plans])]
        self.plans = [replace(plan, events=events) for plan in self.plans]
        return self.plans[0]

    @property
    def search(self) -> Search:
        """What is searched."""
        assert self.request.search is not None
        return self.request.search

    @property
    def rho_of_run(self) -> Fraction:
        """What each run may spend."""
        assert self.request.budget is not None
        return self.search.rho_of_run(self.request.budget, self.request.adjacency)

    def events_of_run(self, plan: FitPlan) -> list[Event]:
        """What one run of a candidate releases."""
        return [*(one.event() for one in plan.releases), self.score_release.event()]

    def _score_release(self, plan: FitPlan) -> GaussianRelease:
        return plan_release(
            SCORE,
            plan.grid,
            unit_bits=20,
            squared_mu=2 * self.rho_of_run * SCORE_PART,
            adjacency=self.request.adjacency,
        )

    def _check(self, source: str) -> None:
        for plan in self.plans:
            self._records.check(plan.releases, plan.loss.n_scores, plan.grid, source)

    @property
    def steps(self) -> int:
        """One, whatever the number of runs: a progress bar would tell it."""
        return 1

    def run(
        self, reserve: Callable[[Json], None], report_progress: Callable[[int], None]
    ) -> Outcome:
        """Charge the whole search, then run it."""
        prepare_noise()
        reserve(self.description())
        noise = SearchNoise(self.request.seed)
        candidates, best = self.search.candidates(), None
        for _ in range(noise.draws.number_of_runs(ETA, self.search.gamma)):
            number = noise.draws.below(len(candidates))
            outcome, score = self._run_once(number, noise.of_next_run(), report_progress)
            if best is None or score < best[0]:  # of equal scores the first stays
                best = score, number, outcome
        assert best is not None
        score, number, outcome = best
        self.best = Best(candidates[number], score)
        self.plan = self.plans[number]
        return outcome

    def _run_once(
        self, number: int, noise: Noise, report_progress: Callable[[int], None]
    ) -> tuple[Outcome, float]:
        plan = self.plans[number]
        curator = Curator(
            records=self._records,
            loss=plan.loss,
            grid=plan.grid,
            n_rows=plan.facts.integer("rows"),
            releases=[*plan.releases, self.score_release],
            noise=noise,
        )
        outcome = plan.algorithm.run(curator, lambda done: report_progress(0))
        point = self._point(outcome)
        score = self.score
        found = curator.score(SCORE.label, score.metrics, score.which, point, outcome.centring)
        return outcome, found

    def _point(self, outcome: Outcome) -> Point:
        """The model on all columns, or on those of its centring."""
        if outcome.centring is not None:
            return Point(outcome.values, outcome.intercept, outcome.offset)
        n_features = self.plan.facts.integer("features")
        coefficients = np.zeros((n_features, *outcome.values.shape[1:]))
        coefficients[outcome.columns] = outcome.values
        return Point(coefficients, outcome.intercept, outcome.offset)

    def description(self) -> Json:
        """What the ledger says: before the run nothing of the best; afterwards the model's own."""
        said = dict(super().description())
        search = self.search
        tuning: dict[str, object] = {
            "grid": {name: list(values) for name, values in search.grid.items()},
            "expected_runs": search.runs,
            "gamma": str(search.gamma),
            "rho_of_run": float(self.rho_of_run),
            "score": self.score.name,
        }
        if self.best is None:
            said["settings"] = {}
        else:
            tuning |= {"chosen": self.best.settings, "chosen_score": self.best.score}
        return said | {"tuning": tuning}
