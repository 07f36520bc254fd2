"""From the errors of an attacker to lower bounds on what a mechanism really gives away.

A test that tells two neighbouring data sets apart with false positive rate f and true positive rate
t shows ``e^epsilon >= (t - delta) / f``, and under Gaussian differential privacy
``mu >= Phi^-1(t) - Phi^-1(f)`` (Dong, Roth and Su, 2022). Rates are known from trials only, so each
enters by its Clopper-Pearson bound, at known of the error that the confidence allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc, betaincinv, ndtri

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_THRESHOLDS: Final = 500
_LARGEST_EPSILON: Final = 50.0
_PRECISION: Final = 1e-6
_LEARNING: Final = 4  # one trial in that many


def learning(trials: int) -> int:
    """How many trials, the first ones, thresholds and projections are chosen on."""
    return max(1, trials // _LEARNING)


@dataclass(frozen=True)
class LowerBound:
    """A measured lower bound.

    Attributes
    ----------
    value : float
        Holds with the confidence of the audit; never below zero.
    threshold : float
        Of the score, chosen on other trials than those that were counted.
    false_positives, true_positives : int
        Trials at or above the threshold, without and with the canary.
    trials : int
        Counted in each world.
    """

    value: float
    threshold: float
    false_positives: int
    true_positives: int
    trials: int


def upper_rate(count: Integers, trials: int, error: float) -> Floats:
    """Clopper-Pearson upper bound on a rate, which fails with at most that chance.

    Parameters
    ----------
    count : int array
        Successes.
    trials : int
        Of how many.
    error : float
        Chance.
    """
    count = np.asarray(count)
    inside = np.minimum(count, trials - 1)
    bound = betaincinv(inside + 1.0, trials - inside, 1.0 - error)
    return np.asarray(np.where(count >= trials, 1.0, bound))


def epsilon_of_rates(wrong: Floats, missed: Floats, delta: float) -> Floats:
    """Epsilon at least, from upper bounds on the false positive and the false negative rate."""
    odds = np.maximum((1.0 - missed - delta) / wrong, (1.0 - wrong - delta) / missed)
    return np.log(np.maximum(odds, 1.0))


def mu_of_rates(wrong: Floats, missed: Floats) -> Floats:
    """mu at least, from the same."""
    return np.asarray(np.maximum(-ndtri(wrong) - ndtri(missed), 0.0))


def epsilon_bound(scores: tuple[Floats, Floats], delta: float, confidence: float) -> LowerBound:
    """Lower bound on epsilon at ``delta``, from scores of trials without and with the canary.

    Parameters
    ----------
    scores : pair of float64 arrays, shape (trials,)
        Of the two worlds; larger ones speak for the second.
    delta : float
        0 for pure differential privacy.
    confidence : float
        That the bound holds.
    """
    known = learning(len(scores[0]))
    candidates = np.unique(np.concatenate([one[:known] for one in scores]))
    picked = np.linspace(0, len(candidates) - 1, min(len(candidates), _THRESHOLDS)).astype(int)
    candidates = candidates[picked]
    return _bound(scores, confidence, lambda f, m: epsilon_of_rates(f, m, delta), candidates)


def mu_bound(scores: tuple[Floats, Floats], confidence: float) -> LowerBound:
    """Lower bound on mu of Gaussian differential privacy, likewise.

    The threshold is the middle of the two mean scores, which is best between normal ones.
    """
    known = learning(len(scores[0]))
    middle = (scores[0][:known].mean() + scores[1][:known].mean()) / 2.0
    return _bound(scores, confidence, mu_of_rates, np.array([middle]))


def _bound(
    scores: tuple[Floats, Floats],
    confidence: float,
    of_rates: Callable[[Floats, Floats], Floats],
    candidates: Floats,
) -> LowerBound:
    """The threshold comes from the first trials, the rates from the rest."""
    without, present = scores
    known = learning(len(without))
    error = (1.0 - confidence) / 2.0

    def counted(part: slice, thresholds: Floats) -> tuple[Integers, Integers, Floats]:
        n = len(without[part])
        wrong = n - np.searchsorted(np.sort(without[part]), thresholds)
        found = n - np.searchsorted(np.sort(present[part]), thresholds)
        rates = (upper_rate(wrong, n, error), upper_rate(n - found, n, error))
        return wrong, found, of_rates(*rates)

    best = candidates[[int(np.argmax(counted(slice(known), candidates)[2]))]]
    wrong, found, value = counted(slice(known, None), best)
    trials = len(without) - known
    return LowerBound(float(value[0]), float(best[0]), int(wrong[0]), int(found[0]), trials)


@dataclass(frozen=True)
class Estimate:
    """An estimate of mu with its confidence interval.

    Attributes
    ----------
    value, low, high : float
        The interval holds if scores are normal, as those of Gaussian releases are.
    """

    value: float
    low: float
    high: float


def mu_estimate(scores: tuple[Floats, Floats], confidence: float) -> Estimate:
    """mu as the distance of the mean scores of two worlds in standard deviations.

    The standard error is that of a standardised mean difference (Hedges, 1981).

    Parameters
    ----------
    scores, confidence
        As of :func:`epsilon_bound`; every trial counts, as no threshold is chosen.
    """
    without, present = scores
    n = len(without)
    deviation = math.sqrt((without.var(ddof=1) + present.var(ddof=1)) / 2.0)
    distance = float(present.mean() - without.mean())
    value = distance / deviation if deviation > 0.0 else 0.0
    reach = -float(ndtri((1.0 - confidence) / 2.0)) * math.sqrt(2.0 / n + value**2 / (4.0 * n))
    return Estimate(value, value - reach, value + reach)


def one_run_epsilon(
    correct: int, guesses: int, *, canaries: int, delta: float, confidence: float
) -> float:
    """Lower bound on epsilon from one run with many canaries, each there by a fair coin of its own.

    Under (epsilon, delta) the number of right guesses is hardly more than binomial with the chance
    ``e^epsilon / (1 + e^epsilon)`` (Steinke, Nasr and Jagielski, 2023, theorem 5.2, whose part of
    delta is taken twice, as there in the general case).

    Parameters
    ----------
    correct, guesses : int
        v of r; about the other canaries nothing was said.
    canaries : int
        m.
    delta : float
        At which epsilon is meant.
    confidence : float
        That the bound holds.
    """

    def p_value(epsilon: float) -> float:
        chance = 1.0 / (1.0 + math.exp(-epsilon))
        # P[W = v - 1], P[W = v - 2], ...: how much delta can help to reach v.
        below = np.arange(correct - 1, -1, -1)
        mass = np.diff(bdtr(np.arange(guesses + 1), guesses, chance), prepend=0.0)
        steps = np.arange(1, correct + 1)
        alpha = float(np.max(np.cumsum(mass[below]) / steps, initial=0.0))
        beta = float(bdtrc(correct - 1, guesses, chance)) if correct else 1.0
        return beta + alpha * delta * 2 * canaries

    low, high = 0.0, _LARGEST_EPSILON
    if p_value(low) > 1.0 - confidence:
        return 0.0
    while high - low > _PRECISION:
        middle = (low + high) / 2.0
        low, high = (middle, high) if p_value(middle) <= 1.0 - confidence else (low, middle)
    return low
