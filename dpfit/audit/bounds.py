"""From the errors of an attacker to lower bounds on what a mechanism really gives away.

A test that tells two neighbouring data sets apart with false positive rate f and true positive rate
t shows ``e^epsilon >= (t - delta) / f``, and under Gaussian differential privacy
both errors together are at least ``2 Phi(-mu / 2)`` (Dong, Roth and Su, 2022). Rates are known from
trials only, so they enter by Clopper-Pearson bounds.
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
        Of the score, chosen before the trials or on others than those that were counted.
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


def mu_of_errors(rate: Floats) -> Floats:
    """mu at least, from an upper bound on the mean of both rates."""
    return np.asarray(np.maximum(-2.0 * ndtri(rate), 0.0))


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
    first, rest = slice(known), slice(known, None)
    candidates = np.unique(np.concatenate([one[first] for one in scores]))
    picked = np.linspace(0, len(candidates) - 1, min(len(candidates), _THRESHOLDS)).astype(int)
    candidates = candidates[picked]
    error = (1.0 - confidence) / 2.0

    def values(part: slice, thresholds: Floats) -> Floats:
        wrong, missed, n = _errors(scores, part, thresholds)
        return epsilon_of_rates(upper_rate(wrong, n, error), upper_rate(missed, n, error), delta)

    best = float(candidates[int(np.argmax(values(first, candidates)))])
    return _bound(scores, rest, best, lambda thresholds: values(rest, thresholds))


def mu_bound(
    scores: tuple[Floats, Floats], confidence: float, *, threshold: float | None = None
) -> LowerBound:
    """Lower bound on mu of Gaussian differential privacy, likewise.

    It bounds both errors at once: their number is a sum of independent trials, and of all such sums
    with that mean the binomial one falls short of it most (Hoeffding, 1956, theorem 4).

    Parameters
    ----------
    scores, confidence
        As of :func:`epsilon_bound`.
    threshold : float or None
        Known before the trials, all of which then count. None takes the middle of the two mean
        scores of the first ones, which is best between normal ones.
    """
    rest = slice(0, None)
    if threshold is None:
        known = learning(len(scores[0]))
        rest = slice(known, None)
        threshold = float(scores[0][:known].mean() + scores[1][:known].mean()) / 2.0

    def values(thresholds: Floats) -> Floats:
        wrong, missed, n = _errors(scores, rest, thresholds)
        return mu_of_errors(upper_rate(wrong + missed, 2 * n, 1.0 - confidence))

    return _bound(scores, rest, threshold, values)


def _errors(
    scores: tuple[Floats, Floats], part: slice, thresholds: Floats
) -> tuple[Integers, Integers, int]:
    """False positives and false negatives at each threshold, and of how many trials."""
    without, present = (np.sort(one[part]) for one in scores)
    n = len(without)
    return n - np.searchsorted(without, thresholds), np.searchsorted(present, thresholds), n


def _bound(
    scores: tuple[Floats, Floats],
    part: slice,
    threshold: float,
    values: Callable[[Floats], Floats],
) -> LowerBound:
    wrong, missed, n = _errors(scores, part, np.array([threshold]))
    value = float(values(np.array([threshold]))[0])
    return LowerBound(value, threshold, int(wrong[0]), n - int(missed[0]), n)


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


def share(bound: float, claim: float) -> float:
    """Bound over claim; 0 where nothing was shown, or nothing finite is claimed."""
    if not bound:
        return 0.0
    return bound / claim if claim else math.inf
