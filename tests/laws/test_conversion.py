"""The privacy curves against 60 digits: never on the unsafe side, tight on the safe one."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfit.privacy import conversion as cv

mp = mpmath.MPContext()
mp.dps = 60

LOOSE = 1e-8  # how far on the safe side a result may lie, relative


def exact_delta(mu: float, epsilon: float) -> mpmath.mpf:
    m, e = mp.mpf(mu), mp.mpf(epsilon)
    if epsilon == 0.0:  # Phi(m/2) - Phi(-m/2); subtracting would lose a tiny m even in 60 digits
        return mp.erf(m / 2 / mp.sqrt(2))
    return mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)


def exact_zcdp_delta(rho: float, epsilon: float) -> mpmath.mpf:
    """The infimum over alpha, by bisection of the derivative of the convex exponent."""
    r, e = mp.mpf(rho), mp.mpf(epsilon)
    low, high = mp.mpf(-200), mp.mpf(200)  # log(alpha - 1)
    for _ in range(140):
        x = mp.exp((low + high) / 2)
        if (2 * x + 1) * r - e - mp.log1p(1 / x) > 0:
            high = (low + high) / 2
        else:
            low = (low + high) / 2
    x = mp.exp(low)
    log_delta = x * ((x + 1) * r - e) - x * mp.log1p(1 / x) - mp.log1p(x)
    return mp.exp(log_delta)


def logs(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(math.log(low), math.log(high)).map(math.exp)


MU = logs(1e-6, 1e3)
EPSILON = st.one_of(st.just(0.0), logs(1e-9, 1e5))
DELTA = logs(1e-300, 0.5)
GRID_MU = [1e-6, 1e-4, 0.01, 0.1, 0.5, 0.999, 1.0, 1.001, 2.0, 5.0, 30.0, 300.0, 1000.0]
GRID_A = [-400.0, -5.0, -1.0, -1e-3, -1e-9, 0.0, 1e-9, 0.1, 1.0, 3.0, 3.999, 4.001, 10.0, 35.0]


def check_gaussian_delta(mu: float, epsilon: float) -> None:
    exact, ours = exact_delta(mu, epsilon), cv.gaussian_delta(mu, epsilon)
    assert ours >= exact
    if exact > 1e-300:
        assert ours <= exact * (1 + LOOSE)


@pytest.mark.parametrize("mu", GRID_MU)
@pytest.mark.parametrize("a", GRID_A)
def test_gaussian_delta_on_a_grid(mu: float, a: float) -> None:
    """Every branch of the curve and both sides of each switch."""
    check_gaussian_delta(mu, max(0.0, mu * (a + mu / 2)))


@given(mu=MU, epsilon=EPSILON)
@settings(max_examples=200, deadline=None)
def test_gaussian_delta_anywhere(mu: float, epsilon: float) -> None:
    check_gaussian_delta(mu, epsilon)


@given(mu=MU, a=st.floats(-6.0, 37.0))
@settings(max_examples=200, deadline=None)
def test_gaussian_delta_where_it_is_of_interest(mu: float, a: float) -> None:
    check_gaussian_delta(mu, max(0.0, mu * (a + mu / 2)))


@given(mu=MU, a=st.floats(-6.0, 37.0))
@settings(max_examples=200, deadline=None)
def test_rounding_stays_far_below_the_margin(mu: float, a: float) -> None:
    """Without the margin the curve is right to 1e-11: the margin hides no wrong constant."""
    epsilon = max(0.0, mu * (a + mu / 2))
    exact = exact_delta(mu, epsilon)
    ours = mp.mpf(cv._log_gaussian_delta(mu, epsilon))
    assert abs(ours - mp.log(exact)) < 1e-11


@pytest.mark.parametrize("root", [1e-200, 1e-3, 0.3, 1.0, math.pi, 1e5])
@pytest.mark.parametrize("power", [1, 3, 7])
def test_the_root_returned_is_on_the_good_side(root: float, power: int) -> None:
    def rising(x: float) -> float:
        return (x / root) ** power - 1.0

    def falling(x: float) -> float:
        return -rising(x)

    for function, bad, good in ((rising, 10 * root, 0.0), (falling, 0.0, 10 * root)):
        found = cv.certified_root(function, bad, good)
        assert function(found) <= 0.0
        assert found == pytest.approx(root, rel=1e-14)
    with pytest.raises(ArithmeticError, match="no root"):
        cv.certified_root(rising, 0.0, 10 * root)


@given(mu=MU, delta=DELTA)
@settings(max_examples=200, deadline=None)
def test_gaussian_epsilon_is_safe_and_tight(mu: float, delta: float) -> None:
    """The exact curve is below delta at the result, and above it just beneath."""
    epsilon = cv.gaussian_epsilon(mu, delta)
    assert exact_delta(mu, epsilon) <= delta
    if epsilon > 0:
        assert exact_delta(mu, epsilon) >= delta * (1 - LOOSE)
    if epsilon > mu * mu / 2:  # delta falls at least as fast as 1/epsilon there
        assert exact_delta(mu, epsilon * (1 - LOOSE)) >= delta


@given(epsilon=st.one_of(st.just(0.0), logs(1e-9, 1e5)), delta=DELTA)
@settings(max_examples=200, deadline=None)
def test_gaussian_mu_is_safe_tight_and_keeps_the_target(epsilon: float, delta: float) -> None:
    mu = cv.gaussian_mu(epsilon, delta)
    assert exact_delta(mu, epsilon) <= delta
    assert exact_delta(mu * (1 + LOOSE), epsilon) >= delta
    for part in (1.0, math.nextafter(1.0, 0.0), 1 - 1e-14, 1 - 1e-11, 0.5):
        assert cv.gaussian_epsilon(mu * part, delta) <= epsilon


@given(mu=MU, delta=DELTA, more=st.floats(1e-6, 10.0))
@settings(max_examples=100, deadline=None)
def test_more_noise_never_costs_more(mu: float, delta: float, more: float) -> None:
    assert cv.gaussian_epsilon(mu / (1 + more), delta) <= cv.gaussian_epsilon(mu, delta)
    rho = mu * mu / 2
    assert cv.zcdp_epsilon(rho / (1 + more), delta) <= cv.zcdp_epsilon(rho, delta)


@given(rho=logs(1e-12, 1e5), epsilon=st.one_of(st.just(0.0), logs(1e-6, 1e5)))
@settings(max_examples=100, deadline=None)
def test_zcdp_delta_against_the_infimum(rho: float, epsilon: float) -> None:
    exact, ours = exact_zcdp_delta(rho, epsilon), cv.zcdp_delta(rho, epsilon)
    assert ours >= exact
    if exact > 1e-300:
        assert ours <= exact * (1 + LOOSE)


@given(rho=logs(1e-12, 1e5), delta=DELTA)
@settings(max_examples=100, deadline=None)
def test_zcdp_epsilon_is_safe_and_tight(rho: float, delta: float) -> None:
    epsilon = cv.zcdp_epsilon(rho, delta)
    assert exact_zcdp_delta(rho, epsilon) <= delta
    if epsilon > rho:
        assert exact_zcdp_delta(rho, epsilon * (1 - LOOSE)) >= delta
    bun_steinke = rho + 2 * math.sqrt(-rho * math.log(delta))
    assert epsilon <= bun_steinke * (1 + LOOSE)


@given(epsilon=logs(1e-9, 1e5), delta=DELTA)
@settings(max_examples=100, deadline=None)
def test_zcdp_rho_keeps_the_target(epsilon: float, delta: float) -> None:
    rho = cv.zcdp_rho(epsilon, delta)
    assert exact_zcdp_delta(rho, epsilon) <= delta
    assert cv.zcdp_epsilon(rho * (1 + LOOSE) * 1.000001, delta) > epsilon
    for part in (1.0, math.nextafter(1.0, 0.0), 1 - 1e-13, 1 - 1e-11, 0.5):
        assert cv.zcdp_epsilon(rho * part, delta) <= epsilon


@given(mu=MU, delta=logs(1e-300, 0.5))
@settings(max_examples=100, deadline=None)
def test_the_gaussian_curve_is_never_above_its_zcdp_bound(mu: float, delta: float) -> None:
    zcdp = cv.zcdp_epsilon(mu * mu / 2, delta)
    assert cv.gaussian_epsilon(mu, delta) <= zcdp * (1 + 1e-7) + 1e-12


@pytest.mark.parametrize("shift", [1e-9, 1e-3, 0.1, 0.999, 1.0, 1.001, 3.0, 20.0, 200.0, 1300.0])
def test_mu_of_a_log_odds_shift(shift: float) -> None:
    """Phi(mu/2) is at least the logistic of half the shift, and hardly more."""
    mu = cv.randomized_response_mu(shift)
    tail = 1 / (1 + mp.exp(mp.mpf(shift) / 2))
    assert mp.ncdf(-mp.mpf(mu) / 2) <= tail
    assert mp.ncdf(-mp.mpf(mu) * (1 - LOOSE) / 2) >= tail


@pytest.mark.parametrize("p", [1e-9, 0.01, 0.3, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("eta", [0.01, 0.5, 2.0, 6.0])
def test_a_log_odds_shift_moves_the_probit_by_at_most_mu(p: float, eta: float) -> None:
    """The claim behind the bounded-range rule, away from the symmetric point."""
    q = 1 / (1 + (1 - p) / p * math.exp(-eta))
    probit = [mp.erfinv(2 * mp.mpf(v) - 1) * mp.sqrt(2) for v in (p, q)]
    assert probit[1] - probit[0] <= cv.randomized_response_mu(eta)


# --- values from the documents -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "mu"), [(0.5, 0.124), (1.0, 0.237), (2.0, 0.448), (4.0, 0.838)]
)
def test_published_mu_at_one_in_a_million(epsilon: float, mu: float) -> None:
    assert cv.gaussian_mu(epsilon, 1e-6) == pytest.approx(mu, abs=5e-4)


@pytest.mark.parametrize(
    ("target", "at_hundredth", "at_1e5"),
    [(2, 1.86, 2.29), (4, 4.30, 4.84), (6, 6.96, 7.53), (8, 9.76, 10.30), (10, 12.66, 13.14)],
)
def test_what_the_printed_calibration_of_dp_ight_really_gives(
    target: float, at_hundredth: float, at_1e5: float
) -> None:
    """methods.md 1.2: rho = (sqrt(eps+L) - sqrt L)^2 under replace-one is mu = 2 sqrt(rho)."""
    for delta, actual in ((0.01, at_hundredth), (1e-5, at_1e5)):
        log_inverse = -math.log(delta)
        mu = 2 * (math.sqrt(target + log_inverse) - math.sqrt(log_inverse))
        assert cv.gaussian_epsilon(mu, delta) == pytest.approx(actual, abs=5.1e-3)


@pytest.mark.parametrize(
    ("target", "replace_one", "add_remove"),
    [(2, 5.43, 2.11), (4, 14.9, 5.43), (6, 27.8, 9.7), (8, 44.3, 14.9), (10, 64.2, 20.9)],
)
def test_what_corollary_5_8_of_dp_ight_really_gives(
    target: float, replace_one: float, add_remove: float
) -> None:
    """methods.md 1.2: sigma^2 = T K^2 L/(n eps)^2 at delta 0.01 is mu = 2 eps/sqrt(L), or half."""
    mu = target / math.sqrt(math.log(100))
    assert cv.gaussian_epsilon(2 * mu, 0.01) == pytest.approx(replace_one, rel=4e-3)
    assert cv.gaussian_epsilon(mu, 0.01) == pytest.approx(add_remove, rel=4e-3)


@pytest.mark.parametrize(
    ("epsilon", "paper", "replace_one"),
    [
        (0.5, 13.72, 14.06),
        (1, 6.93, 7.46),
        (2, 3.53, 3.99),
        (4, 1.83, 2.16),
        (8, 0.98, 1.20),
        (10, 0.80, 1.00),
    ],
)
def test_corrected_noise_of_dp_ight(epsilon: float, paper: float, replace_one: float) -> None:
    """methods.md 1.2 C1: sigma in units sqrt(T) G/n at delta 1e-5."""
    log_inverse = -math.log(1e-5)
    rho = (math.sqrt(epsilon + log_inverse) - math.sqrt(log_inverse)) ** 2
    assert 1 / math.sqrt(rho) == pytest.approx(paper, abs=5.1e-3)
    assert 2 / cv.gaussian_mu(epsilon, 1e-5) == pytest.approx(replace_one, abs=5.1e-3)


# --- ends of the domain --------------------------------------------------------------------------


def test_ends_of_the_gaussian_curve() -> None:
    assert cv.gaussian_delta(0.0, 0.0) == 0.0
    assert cv.gaussian_delta(math.inf, 5.0) == 1.0
    assert cv.gaussian_delta(1.0, math.inf) == 0.0
    assert cv.gaussian_delta(1e-6, 1e5) == 1e-307  # rounded up: it is not zero
    assert cv.gaussian_epsilon(0.0, 0.0) == 0.0
    assert cv.gaussian_epsilon(1.0, 0.0) == math.inf
    assert cv.gaussian_epsilon(math.inf, 0.5) == math.inf
    assert cv.gaussian_epsilon(1.0, 1.0) == 0.0
    assert cv.gaussian_epsilon(0.1, 0.5) == 0.0
    assert 0.0 < cv.gaussian_delta(5e-324, 0.0) < 1e-280


def test_ends_of_the_zcdp_curve() -> None:
    assert cv.zcdp_delta(0.0, 0.0) == 0.0
    assert cv.zcdp_delta(math.inf, 1.0) == 1.0
    assert cv.zcdp_delta(1e5, 0.0) == 1.0
    assert cv.zcdp_epsilon(0.0, 0.1) == 0.0
    assert cv.zcdp_epsilon(1.0, 0.0) == math.inf


@given(mu=logs(9e3, 1e9), delta=logs(1e-300, 0.1))
@settings(max_examples=50, deadline=None)
def test_a_hopeless_mu_still_gets_a_bound(mu: float, delta: float) -> None:
    """Beyond 1e4 a looser closed form answers; it stays on the safe side and near."""
    epsilon = cv.gaussian_epsilon(mu, delta)
    assert exact_delta(mu, epsilon) <= delta
    assert mu * mu / 2 <= epsilon <= mu * (mu / 2 + 40) * (1 + LOOSE)
    assert exact_delta(mu, mu * mu / 2 + mu) <= cv.gaussian_delta(mu, mu * mu / 2 + mu)


ANYTHING = st.floats(0.0, math.inf)


@given(parameter=ANYTHING, epsilon=ANYTHING, delta=st.floats(0.0, 1.0))
@settings(deadline=None)
def test_extremes_get_an_answer(parameter: float, epsilon: float, delta: float) -> None:
    """Subnormal, huge and infinite arguments: no crash, no endless search, no NaN."""
    for cost in (cv.gaussian_delta, cv.zcdp_delta):
        assert 0.0 <= cost(parameter, epsilon) <= 1.0
    for cost in (cv.gaussian_epsilon, cv.zcdp_epsilon):
        assert cost(parameter, delta) >= 0.0
    assert cv.randomized_response_mu(parameter) >= 0.0
    if 1e-300 <= delta < 1.0:
        assert cv.gaussian_mu(min(epsilon, 1e6), delta) > 0.0
        assert cv.zcdp_rho(min(max(epsilon, 1e-12), 1e6), delta) > 0.0


@pytest.mark.parametrize("bad", [-1.0, math.nan, -math.inf])
def test_nonsense_is_refused(bad: float) -> None:
    for function in (cv.gaussian_delta, cv.gaussian_epsilon, cv.zcdp_delta, cv.zcdp_epsilon):
        with pytest.raises(ValueError, match="must"):
            function(bad, 0.5)
        with pytest.raises(ValueError, match="must"):
            function(0.5, bad)
    for solve in (cv.gaussian_mu, cv.zcdp_rho):
        with pytest.raises(ValueError, match="must"):
            solve(bad, 0.5)
        with pytest.raises(ValueError, match="must"):
            solve(0.5, bad)
    with pytest.raises(ValueError, match="must"):
        cv.zcdp_rho(0.0, 0.5)


# --- exact rounding ------------------------------------------------------------------------------

POSITIVE = st.fractions(min_value=0, max_value=10**40)
HUGE = st.builds(
    lambda p, q, shift: Fraction(p, q) * Fraction(2) ** shift,
    st.integers(0, 10**30),
    st.integers(1, 10**30),
    st.integers(-900, 900),
)


@given(value=st.one_of(POSITIVE, HUGE))
def test_rounding_up_is_the_next_double(value: Fraction) -> None:
    up = cv.round_up(value)
    assert value <= (Fraction(up) if math.isfinite(up) else value)
    assert Fraction(math.nextafter(up, 0.0)) < value or up == 0.0


@given(value=st.one_of(POSITIVE, HUGE))
def test_square_roots_round_up_to_the_next_double(value: Fraction) -> None:
    up = cv.sqrt_up(value)
    assert math.isinf(up) or value <= Fraction(up) ** 2
    assert up == 0.0 or Fraction(math.nextafter(up, 0.0)) ** 2 < value


@given(root=logs(1e-100, 1e100))
def test_perfect_squares_come_back(root: float) -> None:
    assert cv.sqrt_up(Fraction(root) ** 2) == root


def test_overflow_rounds_outwards() -> None:
    big = Fraction(10) ** 400
    assert cv.round_up(big) == math.inf
    assert cv.sqrt_up(big * big) == math.inf
