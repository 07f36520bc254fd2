"""The score attack of Cai, Wang and Zhang (2020): is a record among those a model was fitted to?

Records come from a model beta that the attacker knows. The score of a record z = (x, y) against a
released model M is ``<s_beta(z), M - beta> = (y - mean_beta(x)) (M(x) - beta(x))``, where M(x) and
beta(x) are the scores that the models give the row: zero on average for a record that M never saw,
positive for one that it was fitted to. The attack is on typical records, not on the worst ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dpfit.algorithms.outcome import Outcome
from dpfit.audit.stand_ins import Floats
from dpfit.audit.trial_keys import TrialKeys
from dpfit.audit.worlds import declared_facts, dense_fit
from dpfit.errors import NotConvergedError, UsageError
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.request import FitRequest
from dpfit.losses.exponential import exponential
from dpfit.privacy.adjacency import Adjacency

_BITS: Final = 30
_LONGEST: Final = 3.0  # beta of two classes
_SPREAD: Final = 0.1  # of a target in [0, 1] around its mean


class ScoreAttack:
    """Typical records, two worlds that differ in the last one, and its score.

    Parameters
    ----------
    request : FitRequest
        The configuration; its loss is named, and has one score.
    rows, features : int
        Public size.
    seed : int or None
        Of the records.

    Attributes
    ----------
    worlds : pair of LinearFit
        With another record from the same model in the canary's place, or without it, and with it.

    Raises
    ------
    UsageError
        The loss has several scores, or is of counts.
    """

    def __init__(self, request: FitRequest, rows: int, features: int, *, seed: int | None) -> None:
        if request.loss in ("multinomial", "poisson"):
            raise UsageError(f"--attack score does not know --loss {request.loss}")
        request = replace(request, declared=declared_facts(request, rows, features))
        noise = TrialKeys(seed).noise()
        draws = np.ldexp(
            noise.integers(_BITS, (rows + 1) * (features + 1), 0).astype(float), -_BITS
        )
        X, luck = np.split(draws.reshape(rows + 1, features + 1), [features], axis=1)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        self._row = X[-1]
        self._beta = np.ones(features) / np.sqrt(features)
        if request.loss == "logistic":
            self._beta *= _LONGEST
            # Normal luck makes a probit model; the logistic one of 1.7 times its score is close.
            target = (X @ self._beta / 1.7 + luck[:, 0] > 0.0).astype(float)
            self._surprise = target[-1] - 1.0 / (1.0 + float(exponential(-X[-1:] @ self._beta)[0]))
        else:
            self._beta *= _SPREAD
            mean = 0.5 + X @ self._beta
            target = np.clip(mean + _SPREAD * luck[:, 0], 0.0, 1.0)
            self._surprise = float(target[-1] - mean[-1])
        self._row_norm = request.row_norm
        present = np.append(np.arange(rows - 1), rows)
        absent = np.arange(rows if request.adjacency is Adjacency.REPLACE_ONE else rows - 1)
        self.worlds = (
            dense_fit(request, X[absent], target[absent]),
            dense_fit(request, X[present], target[present]),
        )

    def scores(
        self,
        worlds: Any,
        trials: int,
        keys: TrialKeys,
        report_progress: Callable[[int], None],
    ) -> tuple[Floats, Floats]:
        """The canary's score against the model of each trial in each world; nothing is learned."""
        scores = np.zeros((2, trials))
        for number in range(trials):
            for which, world in enumerate(worlds):
                curator = world.curator(keys.noise())
                try:
                    model = world.plan.algorithm.run(curator, lambda done: None)
                except NotConvergedError:
                    continue
                scores[which, number] = self._surprise * self._margin(model, world)
            report_progress(2 * number + 2)
        return scores[0], scores[1]

    def _margin(self, model: Outcome, world: LinearFit) -> float:
        """M(x) less beta(x)."""
        row = self._row[model.columns]
        if model.centring is None:
            constant = world.plan.grid.intercept_value
            score = row @ model.values * self._row_norm + model.intercept * constant
        else:
            centred = np.append(row - model.centring.centre, model.centring.constant)
            score = centred @ np.append(model.values, model.intercept) / np.linalg.norm(centred)
        return float(score + model.offset - self._row @ self._beta)
