"""Against other accountants and brute force: never on the unsafe side of a truth."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import pytest

from dpfit.privacy import conversion
from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.events import (
    BoundedRangeEvent,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    ZcdpEvent,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import dp_accounting
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.pld import privacy_loss_mechanism
    from dp_accounting.rdp import rdp_privacy_accountant

ADJ = Adjacency.REPLACE_ONE


def both(value: Fraction) -> PerAdjacency[Fraction]:
    return PerAdjacency(replace_one=value, add_remove=value)


def gaussian(scale: int, count: int) -> GaussianEvent:
    one = PerAdjacency(replace_one=10**6, add_remove=10**6)
    return GaussianEvent(label="g", squared_sensitivity=one, scale=1000 * scale, count=count)


@pytest.mark.parametrize("scale", [1, 3, 10])
@pytest.mark.parametrize("count", [1, 4, 100])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0])
def test_gaussian_delta_equals_the_privacy_loss_mechanism(
    scale: int, count: int, epsilon: float
) -> None:
    sigma = scale / math.sqrt(count)
    theirs = privacy_loss_mechanism.GaussianPrivacyLoss(sigma).get_delta_for_epsilon(epsilon)
    ours = compose([gaussian(scale, count)], ADJ).delta(epsilon)
    # The oracle subtracts two probabilities: absolute accuracy of a double, no better.
    assert ours == pytest.approx(theirs, rel=2e-9, abs=1e-15)
    assert ours >= theirs - 1e-15


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01])
def test_gaussian_epsilon_equals_the_analytic_one(mu: float, delta: float) -> None:
    theirs = dp_accounting.get_epsilon_gaussian(1 / mu, delta, tol=1e-13)
    ours = conversion.gaussian_epsilon(mu, delta)
    assert ours == pytest.approx(theirs, rel=3e-9)
    assert ours >= theirs * (1 - 1e-10)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01])
def test_gaussian_noise_equals_the_analytic_one(epsilon: float, delta: float) -> None:
    theirs = dp_accounting.get_sigma_gaussian(epsilon, delta, tol=1e-12)
    assert 1 / conversion.gaussian_mu(epsilon, delta) == pytest.approx(theirs, rel=5e-9)


@pytest.mark.parametrize("rho", [Fraction(1, 1000), Fraction(1, 20), Fraction(1), Fraction(5)])
@pytest.mark.parametrize("count", [1, 10])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_zcdp_against_the_renyi_accountant(rho: Fraction, count: int, delta: float) -> None:
    """The oracle tries some orders, so it lies above; with dense orders it comes close."""
    orders = [1 + 1.003**k for k in range(-2000, 4000)]
    accountant = rdp_privacy_accountant.RdpAccountant(orders)
    accountant.compose(dp_accounting.ZCDpEvent(float(rho)), count)
    ours = compose([ZcdpEvent(label="z", rho=both(rho), count=count)], ADJ).epsilon(delta)
    theirs = accountant.get_epsilon(delta)
    assert ours <= theirs * (1 + 3e-9)
    assert ours >= theirs * (1 - 1e-4)


@pytest.mark.parametrize("count", [1, 20, 200])
@pytest.mark.parametrize("epsilon", [0.02, 0.3, 2.0])
def test_pure_composition_is_never_below_randomized_response(count: int, epsilon: float) -> None:
    """Randomized response is the worst pure mechanism, and its composition is known exactly."""
    event = PureEvent(label="p", epsilon=both(Fraction(epsilon)), count=count)
    cost = compose([event], ADJ)
    probability = math.exp(epsilon) / (1 + math.exp(epsilon))
    for target in (0.0, epsilon, 0.3 * count * epsilon, 0.99 * count * epsilon):
        exact = composed_delta(count, probability, (epsilon, -epsilon), target)
        assert cost.delta(target) >= exact * (1 - 1e-6)


@pytest.mark.parametrize("count", [1, 5, 60])
@pytest.mark.parametrize("eta", [0.05, 0.5, 3.0])
@pytest.mark.parametrize("place", [0.02, 0.3, 0.5, 0.7, 0.98])
def test_selection_is_never_below_its_two_point_composition(
    count: int, eta: float, place: float
) -> None:
    """Log ratios t and t - eta, with t anywhere in (0, eta): bounded range allows exactly this."""
    high, low, probability = two_points(eta, place)
    event = BoundedRangeEvent(label="b", eta=both(Fraction(eta)), count=count)
    cost = compose([event], ADJ)
    for target in (0.0, 0.1 * eta, eta, 0.2 * count * eta, 0.5 * count * eta):
        exact = composed_delta(count, probability, (high, low), target)
        assert cost.delta(target) >= exact * (1 - 1e-6)


def two_points(eta: float, place: float) -> tuple[float, float, float]:
    """Both log ratios P/Q and the P-probability of the higher, from Q's total of 1."""
    high, low = place * eta, (place - 1) * eta
    return high, low, math.expm1(-low) / (math.expm1(-low) - math.expm1(-high))


@pytest.mark.parametrize("eta", [0.01, 0.5, 3.0, 20.0])
@pytest.mark.parametrize("alpha", [1.001, 1.5, 4.0])
def test_rho_of_a_selection_covers_every_two_point_pair(eta: float, alpha: float) -> None:
    """And is reached in the limit of a small range, so no smaller constant than 1/8 will do."""
    event = BoundedRangeEvent(label="b", eta=both(Fraction(eta)))
    rho = compose([event], ADJ).rho_bound()
    ratios = []
    for place in [0.001, 0.1, 0.3, 0.45, 0.5, 0.55, 0.7, 0.9, 0.999]:
        high, low, p = two_points(eta, place)
        # E_P[(P/Q)^(alpha-1)] - 1, term by term without cancellation of the ones.
        excess = p * math.expm1((alpha - 1) * high) + (1 - p) * math.expm1((alpha - 1) * low)
        ratios.append(math.log1p(excess) / (alpha - 1) / alpha / rho)
    assert max(ratios) <= 1 + 1e-9
    if eta == 0.01:
        assert max(ratios) >= 0.99


def composed_delta(
    count: int, probability: float, losses: tuple[float, float], epsilon: float
) -> float:
    """Exact delta of ``count`` independent two-valued privacy losses."""
    terms = []
    for highs in range(count + 1):
        loss = highs * losses[0] + (count - highs) * losses[1]
        if loss > epsilon:
            mass = math.comb(count, highs) * probability**highs
            mass *= (1 - probability) ** (count - highs)
            terms.append(mass * -math.expm1(epsilon - loss))
    return math.fsum(terms)


@pytest.mark.parametrize(("scale", "count"), [(10, 5), (10, 50), (4, 5), (2, 5), (1, 2), (1, 1)])
@pytest.mark.parametrize(("delta", "closeness"), [(1e-6, 1.15), (0.01, 1.35)])
def test_a_mixed_run_is_never_below_numerical_composition(
    scale: int, count: int, delta: float, closeness: float
) -> None:
    """Gaussian gradients and Laplace counts against an optimistic numerical accountant.

    Within 10 % at delta 1e-6 where the counts are many and fine or few and coarse; 12 % between,
    where neither zCDP nor the sum of epsilons is close. At delta 0.01 up to 33 %.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = [
            pld.from_gaussian_mechanism(
                3.0, value_discretization_interval=1e-3, pessimistic_estimate=False
            ).self_compose(4),
            pld.from_laplace_mechanism(
                scale, value_discretization_interval=1e-3, pessimistic_estimate=False
            ).self_compose(count),
        ]
        theirs = parts[0].compose(parts[1]).get_epsilon_for_delta(delta)
    one = PerAdjacency(replace_one=1, add_remove=1)
    counts = LaplaceEvent(
        label="l", l1_sensitivity=one, squared_sensitivity=one, scale=scale, count=count
    )
    ours = compose([gaussian(3, 4), counts], ADJ).epsilon(delta)
    if delta == 1e-6 and (scale, count) != (4, 5):
        closeness = 1.10
    assert theirs * (1 - 1e-6) <= ours <= closeness * theirs


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 5.0, 40.0, 900.0])
def test_rho_of_a_pure_release_covers_every_renyi_order(epsilon: float) -> None:
    """(alpha - 1) D_alpha of randomized response is a difference of two log cosh."""
    rho = float(conversion.pure_rho(Fraction(epsilon)))
    assert rho <= min(epsilon, epsilon * epsilon / 2) * (1 + 1e-11)
    for alpha in (1 + 1e-4, 1.01, 1.5, 2.0, 5.0, 100.0):
        divergence = log_cosh((alpha - 0.5) * epsilon) - log_cosh(epsilon / 2)
        assert divergence <= alpha * (alpha - 1) * rho * (1 + 1e-9) + 1e-15


def log_cosh(x: float) -> float:
    if x < 1e-3:
        return x * x / 2 - x**4 / 12
    return x + math.log1p(math.exp(-2 * x)) - math.log(2)
