"""An audit: what a configuration claims, and what an attack on it shows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from dpfit.audit.bounds import Estimate, LowerBound, epsilon_bound, mu_bound, mu_estimate, share
from dpfit.audit.models import check_learnable
from dpfit.audit.stand_ins import Floats
from dpfit.audit.trial_keys import TrialKeys
from dpfit.audit.two_worlds import black_box_scores, white_box_scores
from dpfit.errors import UsageError
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.matrix_fit import MatrixFit
from dpfit.privacy.accountant import Cost, compose
from dpfit.privacy.conversion import gaussian_epsilon

Worlds: TypeAlias = tuple[LinearFit, LinearFit] | tuple[MatrixFit, MatrixFit]

Attack: TypeAlias = Callable[[Any, int, TrialKeys, Callable[[int], None]], tuple[Floats, Floats]]
ATTACKS: Final[dict[str, Attack]] = {"white-box": white_box_scores, "black-box": black_box_scores}
THRESHOLDS: Final = {"white-box": 0.0}
"""Of a likelihood ratio it is known: where both worlds are as likely."""
_FEWEST_TRIALS: Final = 20
_PILOTS: Final = 8


def check_trials(trials: int) -> None:
    """Refuse too few trials to show anything."""
    if trials < _FEWEST_TRIALS:
        raise UsageError(f"--trials must be at least {_FEWEST_TRIALS}")


@dataclass(frozen=True)
class Finding:
    """The outcome of an audit.

    Attributes
    ----------
    claimed : Cost
        What the charge of the configuration says.
    delta : float
        At which epsilon is meant.
    epsilon, mu : LowerBound
        Measured; each holds with the confidence of the audit.
    estimate : Estimate
        Of mu.
    """

    claimed: Cost
    delta: float
    epsilon: LowerBound
    mu: LowerBound
    estimate: Estimate

    @property
    def claimed_epsilon(self) -> float:
        """At :attr:`delta`."""
        return self.claimed.epsilon(self.delta)

    @property
    def epsilon_by_mu(self) -> float | None:
        """What :attr:`mu` says about epsilon, if every release has Gaussian noise."""
        if self.claimed.noise is None or self.claimed.pure != 0 or self.claimed.doublings:
            return None
        return gaussian_epsilon(self.mu.value, self.delta) if self.delta else None

    @property
    def tightness(self) -> float:
        """The largest share of its claim that a measured bound shows; above 1 where it exceeds."""
        by_mu = self.epsilon_by_mu or 0.0
        epsilon = share(max(self.epsilon.value, by_mu), self.claimed_epsilon)
        return max(epsilon, share(self.mu.value, self.claimed.mu()))

    @property
    def refuted(self) -> bool:
        """Whether a measured bound exceeds its claim."""
        return self.epsilon.value > self.claimed_epsilon or self.mu.value > self.claimed.mu()


class Audit:
    """An attack on a configuration, ready to run.

    Parameters
    ----------
    worlds : pair of planned fits
        Neighbouring; without and with the canary.
    attack : str or None
        What it is called; None takes the white-box one.
    scores : callable, optional
        The attack, where it is none of these.
    trials : int
        Runs in each world.
    delta : float
        At which epsilon is meant.
    confidence : float
        Of every bound.
    seed : int or None
        None takes fresh keys from the operating system.

    Raises
    ------
    UsageError
        The trials are too few to show anything, or the model has too many numbers for a learner.
    """

    def __init__(
        self,
        worlds: Worlds,
        *,
        attack: str | None = None,
        scores: Attack | None = None,
        trials: int,
        delta: float,
        confidence: float = 0.95,
        seed: int | None = None,
    ) -> None:
        check_trials(trials)
        self._worlds, self._delta, self._confidence = worlds, delta, confidence
        self.algorithm = worlds[0].request.algorithm
        self.attack = attack or "white-box"
        self._attack: Attack = scores or ATTACKS[self.attack]
        if self._attack is black_box_scores:
            check_learnable(worlds[0])
        self.trials = trials
        self._seed = seed

    @property
    def steps(self) -> int:
        """How many runs there are in both worlds, for a progress bar."""
        return 2 * self.trials

    def seconds(self) -> float:
        """How long it may take, from a few runs that do not count."""
        start = time.perf_counter()
        self._attacked(_PILOTS, None, lambda done: None)
        return (time.perf_counter() - start) / _PILOTS * self.trials

    def run(self, report_progress: Callable[[int], None]) -> Finding:
        """Attack, and bound what it shows.

        Parameters
        ----------
        report_progress : callable
            Called with the number of runs done.
        """
        scores = self._attacked(self.trials, self._seed, report_progress)
        world = self._worlds[0]
        claimed = compose(world.events, world.request.adjacency)
        return Finding(
            claimed,
            self._delta,
            epsilon_bound(scores, self._delta, self._confidence),
            mu_bound(scores, self._confidence, threshold=THRESHOLDS.get(self.attack)),
            mu_estimate(scores, self._confidence),
        )

    def _attacked(
        self, trials: int, seed: int | None, show: Callable[[int], None]
    ) -> tuple[Floats, Floats]:
        return self._attack(self._worlds, trials, TrialKeys(seed), show)
