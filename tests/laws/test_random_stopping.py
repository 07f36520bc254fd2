"""What the best of a random number of runs costs: the bound by enumeration, the sum by quadrature.

Everything here is written anew: exact output laws through generating functions, the bound from its
formula by brute force over orders, and the accountant of another library.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.integrate import simpson
from scipy.stats import norm

from dpfit.privacy.accountant import Cost, compose, cost_of_one
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.events import (
    Event,
    GaussianEvent,
    NonPrivateEvent,
    RandomStoppingEvent,
    ZcdpEvent,
    event_from_json,
)
from dpfit.privacy.ledger_checkpoint import Checkpoint
from dpfit.privacy.mechanisms.noise import SearchNoise
from dpfit.privacy.random_stopping import expected_runs, gamma_for

ETAS = (Fraction(-1, 2), Fraction(0), Fraction(1, 2), Fraction(1))
GAMMAS = (Fraction(1, 2), Fraction(1, 10), Fraction(1, 100))
MUS = (0.1, 0.4, 1.0, 3.0)
ORDERS = (1.01, 1.5, 2.0, 4.0, 16.0, 64.0)
laws = pytest.mark.parametrize(("eta", "gamma"), list(itertools.product(ETAS, GAMMAS)))


def searched(eta: Fraction, gamma: Fraction, *runs: tuple[Event, ...]) -> RandomStoppingEvent:
    return RandomStoppingEvent(label="search", eta=eta, gamma=gamma, runs=runs)


def of_rho(rho: Fraction) -> tuple[Event, ...]:
    return (ZcdpEvent(label="run", rho=PerAdjacency(rho, rho / 4)),)


def probabilities(eta: Fraction, gamma: Fraction, count: int) -> list[float]:
    """P(K = 1), ..., P(K = count), from the definition's products."""
    weights, product = [], 1.0
    for k in range(1, count + 1):
        # prod_{l < k} (l + eta) / (l + 1) without the factor of l = 0, which is common to all
        product *= 1.0 if k == 1 else float((k - 1 + eta) / k)
        weights.append(product * float(1 - gamma) ** k)
    total = sum(weights)
    return [weight / total for weight in weights]


def generating(eta: Fraction, gamma: Fraction, x: np.ndarray) -> np.ndarray:
    """E x^K: how likely it is that all K draws are among those of chance x."""
    e, left = float(eta), 1.0 - float(1 - gamma) * x
    if e == 0.0:
        return np.asarray(np.log(left) / math.log(gamma))
    return np.asarray((left**-e - 1.0) / (float(gamma) ** -e - 1.0))


def best_of(cells: np.ndarray, eta: Fraction, gamma: Fraction) -> np.ndarray:
    """The law of the best of K draws from ordered cells."""
    below = np.concatenate([[0.0], np.cumsum(cells)])
    return np.asarray(np.diff(generating(eta, gamma, below)))


def divergence(p: np.ndarray, q: np.ndarray, order: float) -> float:
    kept = (p > 0.0) & (q > 0.0)
    logs = order * np.log(p[kept]) + (1.0 - order) * np.log(q[kept])
    return float(np.logaddexp.reduce(logs)) / (order - 1.0)


@laws
@pytest.mark.parametrize("mu", MUS)
def test_the_bound_holds_for_every_order_of_enumerated_searches(
    eta: Fraction, gamma: Fraction, mu: float
) -> None:
    """Gaussian runs seen through 400 cells, both ways round: Renyi divergences and delta."""
    edges = np.concatenate([[-np.inf], np.linspace(-6.0, 6.0 + mu, 399), [np.inf]])
    first, second = np.diff(norm.cdf(edges)), np.diff(norm.cdf(edges, mu))
    cost = compose([searched(eta, gamma, of_rho(Fraction(mu) ** 2 / 2))], Adjacency.REPLACE_ONE)
    assert cost.rho is not None
    tightest = 0.0
    for one, other in ((first, second), (second, first), (first[::-1], second[::-1])):
        p, q = best_of(one, eta, gamma), best_of(other, eta, gamma)
        for order in ORDERS:
            bound = float(cost.rho * Fraction(order) + cost.shift)
            bound += float(cost.log_multiple) / (order - 1.0)
            found = divergence(p, q, order)
            assert found <= bound * (1.0 + 1e-9)
            tightest = max(tightest, found / bound)
        for epsilon in (0.1, 1.0, 3.0):
            assert np.maximum(p - math.exp(epsilon) * q, 0.0).sum() <= cost.delta(epsilon) + 1e-12
    assert tightest > 0.05  # a bound of another size would be another theorem's


@laws
@pytest.mark.parametrize("rho", [Fraction(1, 1000), Fraction(1, 20), Fraction(1), Fraction(6)])
def test_the_accountant_agrees_with_the_formula_at_every_order(
    eta: Fraction, gamma: Fraction, rho: Fraction
) -> None:
    """Theorem 2 by mpmath over both orders, and the tight conversion of its curve."""
    mp.prec = 120
    cost = compose([searched(eta, gamma, of_rho(rho))], Adjacency.REPLACE_ONE)
    r, g, e = mpf(rho.numerator) / rho.denominator, mpf(gamma.numerator) / gamma.denominator, eta
    e = mpf(e.numerator) / e.denominator
    runs = (1 / g - 1) / mp.log(1 / g) if e == 0 else e * (1 - g) / (g * (1 - g**e))
    middle = min(
        (1 + e) * ((1 - 1 / b) * (b * r) + mp.log(1 / g) / b)
        for b in (mp.exp(mpf(i) / 100) for i in range(700))
    )
    for delta in (1e-3, 1e-6, 1e-9):
        found = min(
            r * a
            + middle
            + mp.log(runs) / (a - 1)
            + mp.log(1 - 1 / a)
            - (mp.log(delta) + mp.log(a)) / (a - 1)
            for a in (1 + mp.exp(mpf(i) / 40 - 5) for i in range(500))
        )
        epsilon = cost.epsilon(delta)
        assert found * (1 - 1e-3) <= epsilon <= found * (1 + 1e-6)
        assert cost.delta(epsilon) <= delta * (1 + 1e-6)
        assert cost.delta(epsilon) == pytest.approx(delta, rel=1e-4)


@laws
@pytest.mark.parametrize("mu", [0.2, 1.0])
def test_the_bound_holds_by_quadrature(eta: Fraction, gamma: Fraction, mu: float) -> None:
    """Without cells: the density of the best of K normal scores, integrated over the line."""
    cost = compose([searched(eta, gamma, of_rho(Fraction(mu) ** 2 / 2))], Adjacency.REPLACE_ONE)
    assert cost.rho is not None

    x = np.linspace(-40.0, 40.0, 160_001)

    def log_density(mean: float, sign: float) -> np.ndarray:
        """Of the score, but for its constant; a negative sign makes the lowest score the best."""
        left = 1.0 - float(1 - gamma) * norm.cdf(sign * (x - mean))
        return norm.logpdf(x, mean) - (1.0 + float(eta)) * np.log(left)

    def integrated(order: float, means: tuple[float, float], sign: float) -> float:
        one, other = (log_density(mean, sign) for mean in means)
        scale = simpson(np.exp(log_density(0.0, sign)), x=x)
        total = simpson(np.exp(order * one + (1.0 - order) * other), x=x) / scale
        return math.log(total) / (order - 1.0)

    for means, sign, order in itertools.product(((0.0, mu), (mu, 0.0)), (1.0, -1.0), (1.5, 8.0)):
        bound = float(cost.rho * Fraction(order) + cost.shift)
        bound += float(cost.log_multiple) / (order - 1.0)
        assert integrated(order, means, sign) <= bound * (1.0 + 1e-6)


@laws
def test_the_generating_function_is_that_of_the_law(eta: Fraction, gamma: Fraction) -> None:
    """Closed form against the series of its definition."""
    chances = np.array(probabilities(eta, gamma, 4000))
    for x in (0.0, 0.3, 0.9, 1.0):
        series = float(chances @ x ** np.arange(1, 4001))
        assert generating(eta, gamma, np.array([x]))[0] == pytest.approx(series, abs=1e-10)


@laws
def test_the_number_of_runs_is_expected_rightly(eta: Fraction, gamma: Fraction) -> None:
    """E K against the sum of its series."""
    chances = probabilities(eta, gamma, 4000)
    mean = sum(k * chance for k, chance in enumerate(chances, 1))
    assert expected_runs(float(eta), -math.log(gamma)) == pytest.approx(mean, rel=1e-9)
    assert gamma_for(eta, mean) == pytest.approx(float(gamma), rel=1e-5)


@laws
def test_the_number_of_runs_has_its_law(eta: Fraction, gamma: Fraction) -> None:
    """Thousands of draws under one key: every count within six deviations of its probability."""
    draws, n = SearchNoise(5).draws, 1_000 if gamma < 0.05 else 5_000
    drawn = np.bincount([draws.number_of_runs(eta, gamma) for _ in range(n)], minlength=60)
    for k, chance in enumerate(probabilities(eta, gamma, 3000)[:40], 1):
        assert abs(drawn[k] - n * chance) < 6.0 * math.sqrt(n * chance) + 6.0
    assert drawn[0] == 0


def test_candidates_are_drawn_evenly_and_coins_are_fair() -> None:
    """Bounds that are no powers of two, and one beyond a word."""
    draws, n = SearchNoise(6).draws, 30_000
    counts = np.bincount([draws.below(7) for _ in range(n)], minlength=7)
    assert len(counts) == 7
    assert np.abs(counts - n / 7).max() < 6.0 * math.sqrt(n / 7)
    wide = 3 << 70
    thirds = np.bincount([draws.below(wide) >> 70 for _ in range(n)], minlength=3)
    assert len(thirds) == 3
    assert np.abs(thirds - n / 3).max() < 6.0 * math.sqrt(n / 3)
    heads = sum(draws.happens(Fraction(2, 11)) for _ in range(n))
    assert abs(heads - n * 2 / 11) < 6.0 * math.sqrt(n * 2 / 11)
    assert draws.below(1) == 0
    assert draws.happens(Fraction(1))
    assert not draws.happens(Fraction(0))


def test_no_two_runs_share_noise() -> None:
    """Nor does another search with another key; a seed repeats all of it."""
    search, again, other = SearchNoise(1), SearchNoise(1), SearchNoise(2)
    first, second = (search.of_next_run().integers(20, 50, 0) for _ in range(2))
    assert not np.array_equal(first, second)
    assert np.array_equal(first, again.of_next_run().integers(20, 50, 0))
    assert not np.array_equal(first, other.of_next_run().integers(20, 50, 0))


@pytest.mark.parametrize("adjacency", Adjacency)
def test_the_dearest_run_is_charged(adjacency: Adjacency) -> None:
    """Whatever the order of the list; and not one that is not private."""
    eta, gamma = Fraction(0), Fraction(1, 10)
    cheap, dear = of_rho(Fraction(1, 100)), of_rho(Fraction(1, 10))
    charged = compose([searched(eta, gamma, cheap, dear)], adjacency)
    assert charged == compose([searched(eta, gamma, dear, cheap)], adjacency)
    assert charged == compose([searched(eta, gamma, dear)], adjacency)
    assert compose([searched(eta, gamma, (*dear, *cheap))], adjacency).rho == sum(
        event.rho.under(adjacency) for event in (*dear, *cheap)
    )
    free = searched(eta, gamma, cheap, (NonPrivateEvent(label="n"),))
    assert cost_of_one(free, adjacency).infinite


def test_searches_compose_with_themselves_and_with_others() -> None:
    """A count of three is three of them; beside a Gaussian run rhos, shifts and multiples add."""
    event = searched(Fraction(0), Fraction(1, 10), of_rho(Fraction(1, 50)))
    three = RandomStoppingEvent(
        label="search", count=3, eta=event.eta, gamma=event.gamma, runs=event.runs
    )
    one = compose([event], Adjacency.REPLACE_ONE)
    assert compose([three], Adjacency.REPLACE_ONE) == compose([event] * 3, Adjacency.REPLACE_ONE)
    gaussian = GaussianEvent(label="g", scale=10, squared_sensitivity=PerAdjacency(4, 1))
    both = compose([event, gaussian], Adjacency.REPLACE_ONE)
    assert both.rho == Fraction(1, 50) + Fraction(1, 50)
    assert (both.shift, both.log_multiple) == (one.shift, one.log_multiple)
    assert both.epsilon(1e-6) > one.epsilon(1e-6)
    assert both.gaussian is None
    assert both.pure is None
    assert both.rho_bound() == math.inf
    assert both.mu() == math.inf


def test_a_checkpoint_keeps_all_of_a_cost() -> None:
    """To JSON and back; a shift that got lost would be spent for nothing."""
    event = searched(Fraction(1), Fraction(1, 10), of_rho(Fraction(1, 50)))
    cost = compose([event], Adjacency.REPLACE_ONE)
    kept = Checkpoint("tip", Adjacency.REPLACE_ONE, set(), cost)
    assert Checkpoint.from_json(kept.to_json(), Adjacency.REPLACE_ONE).cost == cost
    with pytest.raises(ValueError, match="not a cost"):
        Cost(gaussian=None, rho=Fraction(1), noise=None, pure=None, shift=Fraction(-1))


@laws
def test_events_are_read_back(eta: Fraction, gamma: Fraction) -> None:
    """From their JSON, negative eta too."""
    event = searched(eta, gamma, of_rho(Fraction(1, 3)), (*of_rho(Fraction(1, 7)),) * 2)
    assert event_from_json(event.to_json()) == event


@pytest.mark.parametrize(
    "change",
    [
        {"eta": "-1/1"},
        {"eta": "2/1"},
        {"eta": "-0/1"},
        {"gamma": "0/1"},
        {"gamma": "1/1"},
        {"gamma": "-1/2"},
        {"gamma": f"1/{1 << 70}"},
        {"runs": []},
        {"runs": [[]]},
        {"runs": {}},
        {"runs": [[{"mechanism": "random-stopping"}]]},
        {"runs": [["x"]]},
    ],
    ids=str,
)
def test_events_out_of_bounds_are_refused(change: dict[str, Any]) -> None:
    """A ledger is checked in full: limits, empty lists, searches of searches."""
    event = searched(Fraction(0), Fraction(1, 2), of_rho(Fraction(1, 3)))
    with pytest.raises(ValueError, match=r".+"):
        event_from_json(event.to_json() | change)
