"""A budget is understood or refused, and what it buys keeps it."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfit.errors import UsageError
from dpfit.privacy.accountant import Cost, compose, gaussian_cost
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.calibration import Budget, gaussian_scale
from dpfit.privacy.events import GaussianEvent


def logs(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(math.log(low), math.log(high)).map(math.exp)


EPSILON, DELTA = logs(1e-8, 9e4), logs(1e-290, 0.9)


@given(epsilon=EPSILON, delta=DELTA, share=st.fractions(min_value=Fraction(1, 100), max_value=1))
@settings(deadline=None)
def test_whatever_fits_the_budget_keeps_the_request(
    epsilon: float, delta: float, share: Fraction
) -> None:
    budget = Budget.from_request(epsilon, delta, None, None)
    gaussian = budget.squared_mu * share
    assert gaussian_cost(gaussian).epsilon(delta) <= epsilon
    cost = Cost(
        gaussian=None, rho=budget.total_rho * share, noise=Fraction(0), pure=None, doublings=0
    )
    assert cost.epsilon(delta) <= epsilon


@given(epsilon=EPSILON, delta=DELTA)
@settings(deadline=None)
def test_nothing_is_wasted(epsilon: float, delta: float) -> None:
    budget = Budget.from_request(epsilon, delta, None, None)
    gaussian = budget.squared_mu * Fraction(1000001, 1000000)
    assert gaussian_cost(gaussian).epsilon(delta) > epsilon
    assert budget.total_rho <= budget.squared_mu / 2 * Fraction(1000001, 1000000)


@given(
    epsilon=logs(0.01, 100),
    delta=logs(1e-12, 0.1),
    count=st.integers(1, 1000),
    bound=st.integers(1, 2**50),
)
@settings(deadline=None)
def test_calibrated_noise_as_events(epsilon: float, delta: float, count: int, bound: int) -> None:
    """Budget, noise, event, cost: the round trip ends at or just below the request."""
    budget = Budget.from_request(epsilon, delta, None, None)
    scale = gaussian_scale(2.0 * bound, budget.squared_mu, count)
    grid = 2**40
    event = GaussianEvent(
        label="gradient",
        squared_sensitivity=PerAdjacency((2 * bound * grid) ** 2, (bound * grid) ** 2),
        scale=math.ceil(Fraction(scale) * grid),
        count=count,
    )
    cost = compose([event], Adjacency.REPLACE_ONE)
    assert cost.gaussian is not None
    assert cost.gaussian <= budget.squared_mu
    assert epsilon * (1 - 1e-6) <= cost.epsilon(delta) <= epsilon


@given(rho=logs(1e-15, 1e4))
def test_a_budget_in_rho_is_kept_exactly(rho: float) -> None:
    budget = Budget.from_request(None, 1e-6, rho, None)
    assert budget.squared_mu == 2 * Fraction(rho)
    assert gaussian_cost(budget.squared_mu).rho_bound() == rho
    assert budget.total_rho == Fraction(rho)
    assert budget.delta == 1e-6


@given(mu=logs(1e-8, 1e3 * 0.999))
def test_a_budget_in_mu_is_kept_exactly(mu: float) -> None:
    budget = Budget.from_request(None, None, None, mu)
    assert gaussian_cost(budget.squared_mu).mu() == mu
    assert budget.delta is None


def test_a_budget_in_mu_buys_no_zcdp() -> None:
    with pytest.raises(UsageError, match="Gaussian noise only"):
        _ = Budget.from_request(None, None, None, 1.0).total_rho


def test_the_textbook_conversion_needs_a_third_more_noise() -> None:
    """design.md 5, at eps 4 and delta 0.01: Bun and Steinke's sqrt(2 rho) against the exact mu."""
    exact = math.sqrt(Budget.from_request(4.0, 0.01, None, None).squared_mu)
    log_inverse = math.log(100)
    textbook = math.sqrt(2) * (math.sqrt(4 + log_inverse) - math.sqrt(log_inverse))
    assert exact / textbook == pytest.approx(1.34, abs=0.005)


def test_json_names_what_was_asked() -> None:
    assert Budget.from_request(4.0, 0.01, None, None).to_json() == {
        "epsilon": 4.0,
        "delta": 0.01,
    }
    assert Budget.from_request(None, None, 0.5, None).to_json() == {"rho": 0.5}
    assert Budget.from_request(None, 1e-6, None, 2.0).to_json() == {"mu": 2.0, "delta": 1e-6}


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ((None, None, None, None), "no privacy budget"),
        ((None, 1e-6, None, None), "no privacy budget"),
        ((1.0, 1e-6, 1.0, None), "more than one"),
        ((1.0, None, None, 1.0), "more than one"),
        ((None, None, 1.0, 1.0), "more than one"),
        ((1.0, None, None, None), "needs --delta"),
        ((0.0, 1e-6, None, None), "--eps must be a finite positive number, not 0.0"),
        ((-1.0, 1e-6, None, None), "--eps must be"),
        ((math.nan, 1e-6, None, None), "--eps must be"),
        ((math.inf, 1e-6, None, None), "--eps must be"),
        ((5e-324, 1e-6, None, None), "--eps 5e-324 is below"),
        ((1e6, 1e-6, None, None), "--eps 1000000.0 is above"),
        ((1.0, 0.0, None, None), "--delta must lie strictly between 0 and 1"),
        ((1.0, 1.0, None, None), "--delta must lie"),
        ((1.0, -1e-6, None, None), "--delta must lie"),
        ((1.0, math.nan, None, None), "--delta must lie"),
        ((1.0, 5e-324, None, None), "--delta must be at least"),
        ((None, 2.0, 1.0, None), "--delta must lie"),
        ((None, None, 0.0, None), "--rho must be"),
        ((None, None, math.nan, None), "--rho must be"),
        ((None, None, 1e-20, None), "--rho 1e-20 is below"),
        ((None, None, None, -1.0), "--mu must be"),
        ((None, None, None, 1e4), "--mu 10000.0 is above"),
    ],
)
def test_nonsense_is_refused(
    request_: tuple[float | None, float | None, float | None, float | None], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        Budget.from_request(*request_)


def test_a_missing_delta_comes_with_advice() -> None:
    with pytest.raises(UsageError) as caught:
        Budget.from_request(1.0, None, None, None)
    assert caught.value.hint is not None
    assert "well below 1/number of rows" in caught.value.hint


@given(
    sensitivity=logs(1e-100, 1e100),
    squared_mu=st.fractions(min_value=Fraction(1, 10**12), max_value=10**6),
    count=st.integers(1, 10**6),
)
def test_the_scale_covers_its_share_exactly(
    sensitivity: float, squared_mu: Fraction, count: int
) -> None:
    scale = gaussian_scale(sensitivity, squared_mu, count)
    spent = count * Fraction(sensitivity) ** 2
    assert spent / Fraction(scale) ** 2 <= squared_mu
    assert spent / Fraction(math.nextafter(scale, 0.0)) ** 2 > squared_mu


@pytest.mark.parametrize(
    ("sensitivity", "squared_mu", "count"),
    [
        (0.0, Fraction(1), 1),
        (math.nan, Fraction(1), 1),
        (math.inf, Fraction(1), 1),
        (1.0, Fraction(0), 1),
        (1.0, Fraction(1), 0),
    ],
)
def test_no_scale_for_nothing(sensitivity: float, squared_mu: Fraction, count: int) -> None:
    with pytest.raises(ValueError, match=r"sensitivity|nothing to spend"):
        gaussian_scale(sensitivity, squared_mu, count)
