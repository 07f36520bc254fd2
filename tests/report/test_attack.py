"""The best attacker against a cost: bounds that hold, and that are tight where the law is known."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import pytest

from dpfit.privacy.accountant import INFINITE, NOTHING, Cost, compose, gaussian_cost
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.events import GaussianEvent, PureEvent
from dpfit.report.attack import FALSE_ALARMS, TradeOff, attack_chart, privacy_chart
from dpfit.report.chart import percent_at_least, percent_at_most

NORMAL = NormalDist()


def pure(epsilon: Fraction) -> Cost:
    event = PureEvent(label="one bit", epsilon=PerAdjacency(epsilon, epsilon))
    return compose([event], Adjacency.REPLACE_ONE)


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 3.0, 8.0])
def test_gaussian_noise_has_its_known_curve(mu: float) -> None:
    """Phi(Phi^-1(a) + mu) is the best power against Gaussian noise: never less, hardly more."""
    trade_off = TradeOff.of(gaussian_cost(Fraction(mu) ** 2))
    for alarm in (1e-4, *FALSE_ALARMS, 0.9, 0.999):
        exact = NORMAL.cdf(NORMAL.inv_cdf(alarm) + mu)
        assert exact - 1e-12 <= trade_off.detection(alarm) <= exact + 1e-3
    assert trade_off.success == pytest.approx(NORMAL.cdf(mu / 2), abs=1e-8)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5)])
def test_randomized_response_is_within_its_bound(epsilon: Fraction) -> None:
    """It reaches the curve of a pure epsilon, so no power below its own may be shown."""
    trade_off = TradeOff.of(pure(epsilon))
    truth = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    corner = (1.0 - truth, truth)  # false alarms and power of believing the answer
    assert trade_off.detection(corner[0]) >= corner[1] - 1e-9
    assert trade_off.detection(corner[0]) <= corner[1] * 1.01
    assert trade_off.success >= (1.0 + corner[1] - corner[0]) / 2.0 - 1e-9


@pytest.mark.parametrize(
    "cost", [NOTHING, pure(Fraction(2)), gaussian_cost(Fraction(900)), INFINITE]
)
def test_power_is_a_curve_between_guessing_and_certainty(cost: Cost) -> None:
    """Never below the false alarms, never above 1, never falling."""
    trade_off = TradeOff.of(cost)
    powers = [trade_off.detection(place / 50) for place in range(51)]
    assert powers == sorted(powers)
    assert all(place / 50 <= power <= 1.0 for place, power in enumerate(powers))
    assert 0.5 <= trade_off.success <= 1.0


def test_success_is_the_best_mean_of_both_errors() -> None:
    """(1 + TV) / 2 is what the best point of the curve gives at even odds."""
    trade_off = TradeOff.of(gaussian_cost(Fraction(1)))
    best = max(1.0 - a / 2000 + trade_off.detection(a / 2000) for a in range(2001)) / 2.0
    assert best == pytest.approx(trade_off.success, abs=1e-4)


def test_success_is_bounded_where_delta_is_known_beyond_an_epsilon_only() -> None:
    """An (epsilon, delta) pair alone bounds TV by tanh(epsilon / 2) (1 - delta) + delta."""
    trade_off = TradeOff(((0.0, 1.0), (1.0, 0.01)))
    best = max(1.0 - a / 2000 + trade_off.detection(a / 2000) for a in range(2001)) / 2.0
    assert trade_off.success == pytest.approx(best, abs=1e-4)
    assert trade_off.success >= best - 1e-12


def test_shown_numbers_round_against_the_promise() -> None:
    """What is shown as a bound is one, however it is rounded."""
    assert percent_at_most(0.54731) == "54.8 %"
    assert percent_at_least(0.54789) == "54.7 %"
    assert percent_at_most(0.00012345) == "0.0124 %"
    event = GaussianEvent(label="g", squared_sensitivity=PerAdjacency(4, 1), scale=7, count=3)
    cost = compose([event], Adjacency.REPLACE_ONE)
    chart = privacy_chart(cost, ("all", cost + cost), 1e-6)
    for delta, run, total in chart.rows:
        assert float(run) >= cost.epsilon(float(delta))
        assert float(total) >= (cost + cost).epsilon(float(delta))
    for alarm, missed, detected, right in attack_chart(TradeOff.of(cost)).rows:
        a, m, d, r = (
            float(text.removesuffix(" %")) / 100 for text in (alarm, missed, detected, right)
        )
        exact = NORMAL.cdf(NORMAL.inv_cdf(a) + cost.mu())
        assert d >= exact
        assert m <= 1.0 - exact
        assert r >= (1.0 - a + exact) / 2.0


def test_a_ledger_of_one_run_has_no_line_of_its_own() -> None:
    """It would lie under that of the run, and stand in the legend alone."""
    cost = gaussian_cost(Fraction(1))
    chart = privacy_chart(cost, ("all", gaussian_cost(Fraction(1))), 1e-6)
    assert [series.name for series in chart.series] == ["this run"]
    assert chart.head == ("delta", "epsilon of this run")


def test_an_unbounded_ledger_draws_no_curve() -> None:
    """Its epsilons are shown in words."""
    chart = privacy_chart(gaussian_cost(Fraction(1)), ("all", INFINITE), 1e-6)
    assert [series.name for series in chart.series] == ["this run"]
    assert {row[2] for row in chart.rows} == {"unbounded"}
