"""An audit by a single run: many canaries, each there by a coin of its own, are guessed at.

Each record is a canary with a column of its own, filled to the bound on rows. A coin decides its
label, or under add-remove whether it is there at all. The white-box attacker adds up the evidence
of each column and guesses the coins of those that show most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.audit.bounds import one_run_epsilon, share
from dpfit.audit.trial_keys import TrialKeys
from dpfit.audit.witness import Witness
from dpfit.audit.worlds import SOURCE, declared_facts, highest_target
from dpfit.data.rows import RowBlock
from dpfit.errors import UsageError
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.request import FitRequest
from dpfit.privacy.accountant import Cost, compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.declared_facts import Layout

Coins: TypeAlias = NDArray[np.bool_]

ABLE: Final = ("dp-gd", "dp-ight", "median-cd")
"""Those that release gradients on all columns."""
_COIN_BITS: Final = 30
_SECONDS: Final = 2e-6  # of a step and a canary, on a slow machine
_SHARE: Final = 5  # of the canaries one in that many is guessed at, fixed before the run


@dataclass(frozen=True)
class Guesses:
    """The outcome of an audit by one run.

    Attributes
    ----------
    claimed : Cost
        What the charge says.
    delta : float
        At which epsilon is meant.
    canaries, guesses, correct : int
        Of how many canaries, on how many a guess was made, and how many were right.
    epsilon : float
        Lower bound.
    """

    claimed: Cost
    delta: float
    canaries: int
    guesses: int
    correct: int
    epsilon: float

    @property
    def claimed_epsilon(self) -> float:
        """At :attr:`delta`."""
        return self.claimed.epsilon(self.delta)

    @property
    def tightness(self) -> float:
        """Bound over claim."""
        return share(self.epsilon, self.claimed_epsilon)

    @property
    def refuted(self) -> bool:
        """Whether the bound exceeds the claim."""
        return self.epsilon > self.claimed_epsilon


class OneRun:
    """One run of a configuration with many canaries.

    Parameters
    ----------
    request : FitRequest
        The configuration; its loss is named.
    canaries : int
        m, the records and their columns.
    delta, confidence, seed
        As of :class:`~dpfit.audit.audit.Audit`.

    Raises
    ------
    UsageError
        The algorithm does not release gradients on all columns.
    """

    attack = "one-run"

    def __init__(
        self,
        request: FitRequest,
        canaries: int,
        *,
        delta: float,
        confidence: float,
        seed: int | None,
    ) -> None:
        if request.algorithm not in ABLE or request.loss == "multinomial":
            raise UsageError(
                "--attack one-run needs gradients on all columns, of one score",
                hint=f"choose {' or '.join(ABLE)}",
            )
        self._request = replace(request, declared=declared_facts(request, canaries + 1, canaries))
        self.algorithm = request.algorithm
        self._canaries, self._delta, self._confidence = canaries, delta, confidence
        self._keys = TrialKeys(seed)

    def run(self, report_progress: Callable[[int], None]) -> Guesses:
        """Toss the coins, run once, guess.

        Parameters
        ----------
        report_progress : callable
            Of the run.
        """
        m = self._canaries
        coins = self._keys.noise().integers(_COIN_BITS, m, 0) >= 0
        none, every, actual = (
            self._world(there) for there in (np.zeros(m, bool), np.ones(m, bool), coins)
        )
        witness: Any = Witness((none, every), actual, self._keys.noise(), columns=m)
        actual.plan.algorithm.run(witness, report_progress)
        evidence = witness.by_column
        guesses = max(1, m // _SHARE)
        sure = np.argsort(-np.abs(evidence), kind="stable")[:guesses]
        correct = int(np.count_nonzero((evidence[sure] > 0.0) == coins[sure]))
        epsilon = one_run_epsilon(
            correct, guesses, canaries=m, delta=self._delta, confidence=self._confidence
        )
        claimed = compose(actual.events, self._request.adjacency)
        return Guesses(claimed, self._delta, m, guesses, correct, epsilon)

    trials = 1

    def seconds(self) -> float:
        """How long it may take: a run of few milliseconds for each step."""
        return self.steps * self._canaries * _SECONDS

    @property
    def steps(self) -> int:
        """How often the run reports progress."""
        return self._world(np.ones(self._canaries, bool)).steps

    def _world(self, coins: Coins) -> LinearFit:
        """The canaries as their coins have it, and an empty record that is always there."""
        columns, target = np.arange(len(coins)), coins * highest_target(self._request)
        if self._request.adjacency is Adjacency.ADD_REMOVE:
            columns, target = columns[coins], target[coins]
        n = len(columns)
        block = RowBlock(
            indptr=np.minimum(np.arange(n + 2), n).astype(np.int64),
            indices=columns.astype(np.int32),
            values=np.full(n, self._request.row_norm),
            target=np.append(target, 0.0),
        )
        return LinearFit.of(self._request, [block], layout=Layout, source=SOURCE)
