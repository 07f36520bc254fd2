"""Attacks that run a configuration many times in each of two neighbouring worlds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dpfit.audit.bounds import learning
from dpfit.audit.models import numbers_of
from dpfit.audit.stand_ins import Floats
from dpfit.audit.trial_keys import TrialKeys
from dpfit.audit.witness import Witness
from dpfit.errors import NotConvergedError
from dpfit.fitting.linear_fit import LinearFit
from dpfit.privacy.mechanisms.noise import Noise

_RIDGE: Final = 1e-3


def white_box_scores(
    worlds: Sequence[Any], trials: int, keys: TrialKeys, report_progress: Callable[[int], None]
) -> tuple[Floats, Floats]:
    """The log-likelihood ratios of everything released, of each trial in each world.

    Parameters
    ----------
    worlds : pair of planned fits
        Without and with the canary.
    trials : int
        In each world.
    keys : TrialKeys
        Of the noise.
    report_progress : callable
        Called with the number of runs done.
    """
    scores = np.zeros((2, trials))
    for number in range(trials):
        for actual, world in enumerate(worlds):
            witness = Witness(worlds, world, keys.noise())
            world.plan.algorithm.run(witness, _ignore)
            scores[actual, number] = witness.log_ratio
        report_progress(2 * number + 2)
    return scores[0], scores[1]


def black_box_scores(
    worlds: Sequence[Any], trials: int, keys: TrialKeys, report_progress: Callable[[int], None]
) -> tuple[Floats, Floats]:
    """A learned projection of the released model, of each trial in each world.

    It is learned on the trials that bounds do not count.

    Parameters
    ----------
    worlds, trials, keys, report_progress
        As of :func:`white_box_scores`.
    """
    models: tuple[list[Floats | None], list[Floats | None]] = ([], [])
    for number in range(trials):
        for seen, world in zip(models, worlds, strict=True):
            seen.append(_model(world, keys.noise()))
        report_progress(2 * number + 2)
    without, present = _stacked(models[0]), _stacked(models[1])
    known = learning(trials)
    project = _learned(without[:known], present[:known])
    return project(without), project(present)


def _stacked(models: Sequence[Floats | None]) -> Floats:
    """One row a trial; the first number tells whether there was a model."""
    size = max((len(model) for model in models if model is not None), default=0)
    missing = np.zeros(size + 1)
    return np.array([missing if one is None else np.append(1.0, one) for one in models])


def _model(world: Any, noise: Noise) -> Floats | None:
    """The released numbers; None where the run ended without a model."""
    curator = world.curator(noise)
    n_features = world.plan.facts.integer("features") if isinstance(world, LinearFit) else 0
    try:
        return numbers_of(world.plan.algorithm.run(curator, _ignore), n_features)
    except NotConvergedError:
        return None


def _learned(without: Floats, present: Floats) -> Callable[[Floats], Floats]:
    """Fisher's linear discriminant of ranks within the learner's trials.

    Ranks, because noisy models have heavy tails; a number that never moved is left out by them.
    """
    sorted_ = np.sort(np.concatenate([without, present]), axis=0)
    size = len(sorted_)

    def ranked(models: Floats) -> Floats:
        columns = zip(sorted_.T, models.T, strict=True)
        places = [
            (np.searchsorted(known, seen) + np.searchsorted(known, seen, "right")) / 2.0
            for known, seen in columns
        ]
        return np.transpose(places) / size - 0.5

    a, b = ranked(without), ranked(present)
    spread = np.cov(a, rowvar=False) + np.cov(b, rowvar=False)
    ridge = _RIDGE * np.eye(a.shape[1])
    weights = np.linalg.solve(np.atleast_2d(spread) + ridge, b.mean(axis=0) - a.mean(axis=0))
    return lambda models: np.asarray(ranked(models) @ weights)


def _ignore(done: int) -> None:
    pass
