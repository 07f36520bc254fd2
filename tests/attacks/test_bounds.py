"""The laws of the bounds that an audit states."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from dpfit.audit.bounds import (
    epsilon_bound,
    epsilon_of_rates,
    mu_bound,
    mu_estimate,
    mu_of_errors,
    one_run_epsilon,
    upper_rate,
)
from dpfit.privacy.conversion import gaussian_delta


@pytest.mark.parametrize("count", [0, 1, 7, 49, 50])
def test_upper_rate_is_where_so_few_become_unlikely(count: int) -> None:
    """Clopper-Pearson: at the bound, no more than ``count`` successes have just that chance."""
    bound = float(upper_rate(np.array(count), 50, 0.025))
    assert bound == 1.0 if count == 50 else binom.cdf(count, 50, bound) == pytest.approx(0.025)


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
def test_known_rates_give_the_true_parameters(mu: float) -> None:
    """With the exact rates of a Gaussian mechanism no bound passes it, and mu is met by the
    threshold in the middle."""
    from scipy.stats import norm

    thresholds = np.linspace(-3.0, 3.0 + mu, 50)
    wrong, missed = norm.sf(thresholds), norm.cdf(thresholds - mu)
    of_errors = mu_of_errors((wrong + missed) / 2.0)
    assert of_errors.max() <= mu * (1.0 + 1e-12)
    middle = np.array(norm.sf(mu / 2.0))
    assert mu_of_errors(middle) == pytest.approx(mu)
    for delta in (0.0, 1e-5, 0.01):
        for epsilon in epsilon_of_rates(wrong, missed, delta):
            assert epsilon == 0.0 or gaussian_delta(mu, epsilon) >= delta * (1.0 - 1e-9)


def test_equal_scores_show_nothing_and_separate_ones_all_that_trials_can() -> None:
    """From 0 to what n trials without an error prove at that confidence."""
    same = np.zeros(400)
    assert epsilon_bound((same, same), 0.0, 0.95).value == 0.0
    assert mu_bound((same, same), 0.95).value == 0.0
    apart = epsilon_bound((same, same + 1.0), 0.0, 0.95)
    rate = float(upper_rate(np.array(0), 300, 0.025))
    assert apart.value == pytest.approx(np.log((1.0 - rate) / rate))
    assert (apart.false_positives, apart.true_positives, apart.trials) == (0, 300, 300)


@pytest.mark.parametrize("threshold", [None, 0.5, 0.0, 1.0])
def test_bounds_hold_as_often_as_stated(threshold: float | None) -> None:
    """Of many audits of a known mechanism at most the stated share passes it, by a margin of luck
    that has a chance below 1e-9; thresholds cost nothing, as their trials do not count, nor does
    one that makes unequal errors."""
    rng = np.random.default_rng(0)
    audits, mu = 400, 1.0
    failures = estimates = 0
    for _ in range(audits):
        scores = rng.standard_normal(80), rng.standard_normal(80) + mu
        failures += mu_bound(scores, 0.8, threshold=threshold).value > mu
        estimate = mu_estimate(scores, 0.8)
        estimates += not estimate.low <= mu <= estimate.high
    most = binom.isf(1e-9, audits, 0.2)
    assert failures <= most
    assert estimates <= most


@pytest.mark.parametrize(("correct", "guesses"), [(0, 10), (5, 10), (95, 100), (100, 100)])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_one_run_bound_is_where_so_many_become_unlikely(
    correct: int, guesses: int, delta: float
) -> None:
    """At the bound the chance of so many right guesses, by randomised response and by what delta
    adds, is the error that was allowed; written out term by term."""
    canaries = 1000
    epsilon = one_run_epsilon(correct, guesses, canaries=canaries, delta=delta, confidence=0.95)
    chance = 1.0 / (1.0 + np.exp(-epsilon))
    beta = binom.sf(correct - 1, guesses, chance)
    sums = np.cumsum([binom.pmf(correct - i, guesses, chance) for i in range(1, correct + 1)])
    alpha = max((total / i for i, total in enumerate(sums, 1)), default=0.0)
    p_value = beta + 2 * canaries * delta * alpha
    if epsilon > 0.0:
        assert p_value == pytest.approx(0.05, rel=1e-3)
    else:
        assert p_value > 0.05
