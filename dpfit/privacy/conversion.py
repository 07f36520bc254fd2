"""Exact conversions between privacy definitions, every result rounded against us.

Gaussian differential privacy uses the exact curve of Balle and Wang (ICML 2018, theorem 8; also
Dong, Roth and Su, 2022, corollary 2.13)::

    delta(eps) = Phi(-a) - e^eps Phi(-b),    a = eps/mu - mu/2,  b = eps/mu + mu/2

zero-concentrated differential privacy the tight conversion of Canonne, Kamath and Steinke (NeurIPS
2020, proposition 12)::

    delta(eps) = inf_{alpha > 1}  e^((alpha-1)(alpha rho - eps)) (1 - 1/alpha)^alpha / (alpha - 1)

Everything here is plain double arithmetic on well conditioned forms (relative error of delta below
1e-10 for mu up to 1e4, checked against 60 digits) widened by a relative margin of 1e-9. Only the
standard library is imported, so that ``dpfit budget`` starts at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

MARGIN = 1e-9
"""Relative safety margin put on every delta, far above the rounding error of the forms used."""

_SQRT_2 = math.sqrt(2.0)
_SQRT_2PI = math.sqrt(2.0 * math.pi)
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_SMALLEST = 5e-324
_LEAST_DELTA = 1e-307
_REMEMBERED = 1 << 12  # a ledger repeats its charges
_LARGEST_MU = 1e4  # beyond, rounding eps/mu - mu/2 would eat the margin: use zCDP
_FLOOR = 1e-305  # smaller parameters are raised to it, against us, so that nothing underflows
_HUGE_RHO = 1e100
_MILLS_SWITCH = 4.0
_MILLS_DEPTH = 40  # at x >= 4 the fraction has converged to a double after about 15 levels
_ROOT_TOLERANCE = 2.0**-51

# Gauss-Legendre nodes and weights on [0, 1]; error of 8 points on the Mills slope over a unit
# interval is below 2e-16 (its 16th derivative is at most 2^8 8!).
_NODES = (  # distance from the middle, weight; each node has its mirror image
    (0.09171732124782489, 0.18134189168918083),
    (0.2627662049581645, 0.15685332293894344),
    (0.39833323870681336, 0.11119051722668721),
    (0.4801449282487681, 0.05061426814518853),
)


# --- exact fractions to doubles ------------------------------------------------------------------


def round_up(value: Fraction) -> float:
    """Return the smallest double >= ``value`` (infinity on overflow)."""
    try:
        near = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.nextafter(math.inf, 0.0)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def round_down(value: Fraction) -> float:
    """Return the largest double <= ``value``."""
    return -round_up(-value)


@lru_cache(_REMEMBERED)  # a report asks for the same root at every delta
def sqrt_up(value: Fraction) -> float:
    """Return the smallest double whose exact square is >= ``value``."""
    return _nudge_up(_sqrt_near(value), value)


def _sqrt_near(value: Fraction) -> float:
    if value < 0:
        raise ValueError(f"square root of a negative number: {value}")
    # 128 fractional bits relative to the size of the value, in integers: no overflow on the way.
    shift = max(0, 128 - value.numerator.bit_length() + value.denominator.bit_length())
    shift += shift % 2
    root = math.isqrt((value.numerator << shift) // value.denominator)
    try:
        return float(Fraction(root, 1 << (shift // 2)))
    except OverflowError:
        return math.inf


def _nudge_up(root: float, value: Fraction) -> float:
    if math.isinf(root):
        return root
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
        if math.isinf(root):
            return root
    while root > 0.0 and Fraction(math.nextafter(root, 0.0)) ** 2 >= value:
        root = math.nextafter(root, 0.0)
    return root


def log1p_up(value: Fraction) -> Fraction:
    """Return a bound on ``log(1 + value)`` from above, for value >= 0."""
    near = round_up(value)
    return value if math.isinf(near) else min(value, Fraction(math.log1p(near) * (1.0 + MARGIN)))


# --- bracketed roots -----------------------------------------------------------------------------


def certified_root(function: Callable[[float], float], bad: float, good: float) -> float:
    """Return a point with ``function <= 0`` within a few units in the last place of the root.

    Chandrupatla's method (Advances in Engineering Software 28, 1997): inverse quadratic steps where
    they are safe, bisection elsewhere. The returned point was evaluated, so its sign is certain.

    Parameters
    ----------
    function : callable
        Monotone between the ends, with ``function(bad) > 0 >= function(good)``.
    bad, good : float
        The ends of the bracket, in any order.
    """
    a, b = good, bad
    fa, fb = function(a), function(b)
    if not fb > 0.0 >= fa:
        raise ArithmeticError(f"no root between {bad!r} and {good!r}")
    step = 0.5
    while True:
        x = a + step * (b - a)
        fx = function(x)
        if (fx > 0.0) == (fa > 0.0):
            c, fc = a, fa
        else:
            c, fc, b, fb = b, fb, a, fa
        a, fa = x, fx
        width = abs(b - a)
        tolerance = _ROOT_TOLERANCE * max(abs(a), abs(b)) + _SMALLEST
        if width <= 2.0 * tolerance:
            return a if fa <= 0.0 else b
        step = _next_step((a, b, c), (fa, fb, fc))
        step = min(max(step, tolerance / width), 1.0 - tolerance / width)


def _next_step(points: tuple[float, float, float], values: tuple[float, float, float]) -> float:
    (a, b, c), (fa, fb, fc) = points, values
    if not all(map(math.isfinite, values)) or fc in (fa, fb) or fa == fb or b == c:
        return 0.5
    xi = (a - b) / (c - b)
    phi = (fa - fb) / (fc - fb)
    if phi * phi < xi and (1.0 - phi) * (1.0 - phi) < 1.0 - xi:
        return fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return 0.5


# --- Gaussian ------------------------------------------------------------------------------------


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return delta(epsilon) of ``mu``-Gaussian differential privacy, rounded up.

    Parameters
    ----------
    mu, epsilon : float
        Both >= 0; infinity is allowed.
    """
    _require_nonnegative("mu", mu)
    _require_nonnegative("epsilon", epsilon)
    if mu == 0.0 or math.isinf(epsilon):
        return 0.0 if math.isfinite(mu) else 1.0
    if math.isinf(mu):
        return 1.0
    if mu > _LARGEST_MU:
        return zcdp_delta(_rho_of(mu), epsilon)
    return _exp_up(_log_gaussian_delta(max(mu, _FLOOR), epsilon))


@lru_cache(_REMEMBERED)
def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest epsilon with delta(epsilon) <= ``delta``, rounded up.

    Parameters
    ----------
    mu : float
        >= 0; infinity is allowed.
    delta : float
        In [0, 1]; at 0 a positive ``mu`` has no finite epsilon.
    """
    _require_nonnegative("mu", mu)
    _require_delta(delta)
    if mu == 0.0 or delta == 1.0:
        return 0.0
    if math.isinf(mu) or delta == 0.0:
        return math.inf
    if mu > _LARGEST_MU:
        return zcdp_epsilon(_rho_of(mu), delta)
    mu, target = max(mu, _FLOOR), math.log(delta) - MARGIN

    def excess(epsilon: float) -> float:
        return _log_gaussian_delta(mu, epsilon) - target

    if excess(0.0) <= 0.0:
        return 0.0
    # Phi(-a) <= e^(-a^2/2)/2 for a >= 0, so a = sqrt(2 log 1/delta) is always enough.
    enough = mu * (mu / 2.0 + math.sqrt(-2.0 * math.log(delta))) * (1.0 + MARGIN)
    return certified_root(excess, 0.0, enough)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu with ``gaussian_epsilon(mu, delta) <= epsilon``, rounded down.

    Solved with twice the margin of :func:`gaussian_epsilon`, so that the round trip holds for the
    result and for every smaller mu whatever the last bits of the curve do.

    Parameters
    ----------
    epsilon : float
        In [0, 1e6].
    delta : float
        In [1e-302, 1).
    """
    _require_request(epsilon, delta)
    target = math.log(delta) - 2.0 * MARGIN

    def excess(mu: float) -> float:
        return _log_gaussian_delta(mu, epsilon) - target

    # Two lower bounds: the Chernoff form solved for mu, and delta(eps) <= delta(0) <= mu/sqrt(2pi).
    chernoff = math.sqrt(-2.0 * math.log(delta))
    lower = max(
        2.0 * epsilon / (math.sqrt(chernoff * chernoff + 2.0 * epsilon) + chernoff),
        delta * _SQRT_2PI,
    ) * (1.0 - 1e-6)
    upper = _double_until(excess, lower)
    result = certified_root(excess, upper, lower)
    if gaussian_epsilon(result, delta) > epsilon:
        raise ArithmeticError("calibration failed to meet its own target")
    return result


def _log_gaussian_delta(mu: float, epsilon: float) -> float:
    """Log of the exact curve; each branch is a form without cancellation."""
    a, b = epsilon / mu - mu / 2.0, epsilon / mu + mu / 2.0
    if a > 1e4:  # log delta < -5e7, far below any double
        return -math.inf
    if a > 0.0:  # e^eps phi(b) = phi(a) takes the exponential out of both terms
        return -a * a / 2.0 - _LOG_SQRT_2PI + math.log(_mills_drop(a, mu))
    if epsilon < 1.0:  # a <= 0 <= b: two positive errors of the same order as the result
        head = (math.erf(b / _SQRT_2) + math.erf(-a / _SQRT_2)) / 2.0
        return math.log(head - math.expm1(epsilon) * math.erfc(b / _SQRT_2) / 2.0)
    density = math.exp(-a * a / 2.0) / _SQRT_2PI
    return math.log(math.erfc(a / _SQRT_2) / 2.0 - density * mills(b))


def _rho_of(mu: float) -> float:
    # mu-Gaussian implies mu^2/2-zCDP: a bound good to 1/mu where the exact form cannot be trusted.
    return mu * mu / 2.0 * (1.0 + 1e-15)


def mills(x: float) -> float:
    """Return the Mills ratio Phi(-x)/phi(x) for x >= 0, to about 1e-15 relative.

    Continued fraction 1/(x + 1/(x + 2/(x + ...))) of Laplace for large x (Abramowitz and Stegun
    26.2.14), the complementary error function elsewhere.
    """
    if x < _MILLS_SWITCH:
        return math.erfc(x / _SQRT_2) / 2.0 * _SQRT_2PI * math.exp(x * x / 2.0)
    return 1.0 / (x + _mills_tail(x))


def _mills_tail(x: float) -> float:
    tail = 0.0
    for level in range(_MILLS_DEPTH, 0, -1):
        tail = level / (x + tail)
    return tail


def _mills_slope(x: float) -> float:
    """Minus the derivative of the Mills ratio, 1 - x mills(x), without cancellation."""
    if x < _MILLS_SWITCH:
        return 1.0 - x * mills(x)
    tail = _mills_tail(x)
    return tail / (x + tail)


def _mills_drop(x: float, width: float) -> float:
    """``mills(x) - mills(x + width)``; integrates the slope where subtracting would cancel."""
    if width > 1.0:
        return mills(x) - mills(x + width)
    middle, total = x + width / 2.0, 0.0
    for node, weight in _NODES:
        step = width * node
        total += weight * (_mills_slope(middle - step) + _mills_slope(middle + step))
    return width * total


def randomized_response_mu(log_odds: float) -> float:
    """Return the mu of a test whose log-odds move by at most ``log_odds``, rounded up.

    An eta-bounded-range mechanism moves the log-odds of every event by at most eta, an
    epsilon-differentially private one by at most 2 epsilon. The normal quantile of the logistic
    function is steepest at 0, hence::

        mu = 2 Phi^-1(1 / (1 + e^(-log_odds/2)))  <=  sqrt(2 pi)/4 log_odds

    (exactness.md section 7; for epsilon-differential privacy also Dong, Roth and Su, 2022).
    """
    _require_nonnegative("log_odds", log_odds)
    if log_odds == 0.0:
        return 0.0
    log_odds = max(log_odds, _FLOOR)
    steepest = _SQRT_2PI / 4.0 * log_odds * (1.0 + MARGIN)
    if log_odds > 1400.0:  # beyond the tails a double can hold; the bound above is enough
        return steepest

    def shortfall(mu: float) -> float:
        if log_odds < 1.0:
            return math.tanh(log_odds / 4.0) * (1.0 + MARGIN / 2.0) - math.erf(mu / 2.0 / _SQRT_2)
        tail = mills(mu / 2.0)
        log_tail = math.log(tail) - mu * mu / 8.0 - _LOG_SQRT_2PI
        return log_tail + log_odds / 2.0 + math.log1p(math.exp(-log_odds / 2.0)) + MARGIN / 10.0

    return certified_root(shortfall, 0.0, steepest)


# --- zero-concentrated ---------------------------------------------------------------------------


def pure_rho(epsilon: Fraction) -> Fraction:
    """Return the rho of zero-concentrated privacy that pure epsilon implies, rounded up.

    epsilon tanh(epsilon/2), never above the epsilon^2/2 of Bun and Steinke (2016, proposition 1.4).
    Randomized response is the worst case and has (alpha - 1) D_alpha = log cosh((alpha - 1/2) eps)
    - log cosh(eps/2), concave in (alpha - 1/2)^2; the tangent at alpha = 1 gives the bound. (Also
    Steinke, "Sharp RDP and zCDP from pure DP", differentialprivacy.org, 2024.)
    """
    slope = Fraction(math.tanh(round_up(epsilon / 2)) * (1.0 + 1e-12))
    return epsilon * min(slope, epsilon / 2)


def pure_epsilon(rho: Fraction) -> float:
    """Return the largest epsilon with ``pure_rho(epsilon) <= rho``, rounded down; rho > 0."""
    target = float(rho)

    def excess(epsilon: float) -> float:
        return epsilon * min(math.tanh(epsilon / 2.0), epsilon / 2.0) - target

    lower = math.sqrt(2.0 * target) * (1.0 - MARGIN)  # epsilon^2/2 costs no less than tanh
    root = certified_root(excess, _double_until(excess, lower), lower)
    return root * (1.0 - MARGIN)


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Return delta(epsilon) of ``rho``-zero-concentrated differential privacy, rounded up.

    The exponent is convex in alpha, with derivative (2 alpha - 1) rho - eps + log(1 - 1/alpha);
    any alpha gives a valid bound, so the search need not be exact.
    """
    _require_nonnegative("rho", rho)
    _require_nonnegative("epsilon", epsilon)
    if rho == 0.0 or math.isinf(epsilon):
        return 0.0 if math.isfinite(rho) else 1.0
    if math.isinf(rho):
        return 1.0
    rho = max(rho, _FLOOR)

    def slope(log_x: float) -> float:
        x = math.exp(log_x)
        return epsilon - (2.0 * x + 1.0) * rho + _log1p_inverse(log_x)

    # The slope is positive (bad) at small x; at log x = 690 only a rho below 1e-295 is not reached.
    if slope(-690.0) <= 0.0:
        return 1.0
    log_x = 690.0 if slope(690.0) > 0.0 else certified_root(slope, -690.0, 690.0)
    x = math.exp(log_x)
    rounding = 1e-15 * x * ((x + 1.0) * rho + epsilon)  # matters for a rho beyond 1e10
    return _exp_up(x * ((x + 1.0) * rho - epsilon) - _entropy(x) + rounding)


@lru_cache(_REMEMBERED)
def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return the smallest epsilon with delta(epsilon) <= ``delta``, rounded up.

    With x = alpha - 1 and L = log(1/delta) the bound is::

        eps = (x + 1) rho + (L - x log(1 + 1/x) - log(1 + x)) / x

    whose only stationary point solves rho x^2 + log(1 + x) = L.
    """
    _require_nonnegative("rho", rho)
    _require_delta(delta)
    if rho == 0.0 or delta == 1.0:
        return 0.0
    if math.isinf(rho) or delta == 0.0:
        return math.inf
    rho, log_inverse = max(rho, _FLOOR), -math.log(delta)
    if rho > _HUGE_RHO:  # Bun and Steinke (TCC 2016), proposition 1.3
        return (rho + 2.0 * math.sqrt(rho) * math.sqrt(log_inverse)) * (1.0 + MARGIN)

    def excess(x: float) -> float:
        return log_inverse - rho * x * x - math.log1p(x)

    # rho x^2 + log(1+x) >= rho x^2 and >= log(1+x) give two upper ends.
    ends = [math.sqrt(log_inverse / rho)]
    if log_inverse < 700.0:
        ends.append(math.expm1(log_inverse))
    x = certified_root(excess, 0.0, min(ends) * (1.0 + MARGIN))
    entropy = _entropy(x)
    rounding = 1e-14 * ((x + 1.0) * rho + (log_inverse + entropy) / x)
    epsilon = (x + 1.0) * rho + (log_inverse - entropy) / x + rounding
    return max(0.0, epsilon) * (1.0 + MARGIN)


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Return the largest rho with ``zcdp_epsilon(rho, delta) <= epsilon``, rounded down.

    Parameters
    ----------
    epsilon : float
        In [1e-12, 1e6].
    delta : float
        In [1e-302, 1).
    """
    _require_request(epsilon, delta)
    if epsilon < 1e-12:
        raise ValueError(f"epsilon must be at least 1e-12, not {epsilon!r}")
    target = epsilon * (1.0 - MARGIN)

    def excess(rho: float) -> float:
        return zcdp_epsilon(rho, delta) - target

    # Bun and Steinke (TCC 2016), proposition 1.3: never better than the tight form.
    log_inverse = -math.log(delta)
    root = epsilon / (math.sqrt(epsilon + log_inverse) + math.sqrt(log_inverse))
    lower = root * root * (1.0 - 1e-6)
    while excess(lower) > 0.0:
        lower /= 2.0
    # The last factor keeps the promise for every smaller rho too, whatever the last bits do.
    result = certified_root(excess, _double_until(excess, lower), lower) * (1.0 - 1e-12)
    if zcdp_epsilon(result, delta) > epsilon:
        raise ArithmeticError("calibration failed to meet its own target")
    return result


def _entropy(x: float) -> float:
    # -(log of (1 - 1/alpha)^alpha / (alpha - 1)) = (x+1) log(x+1) - x log x, as a sum of positives.
    return x * math.log1p(1.0 / x) + math.log1p(x)


def _log1p_inverse(log_x: float) -> float:
    return math.log1p(math.exp(-log_x))


# --- shared --------------------------------------------------------------------------------------


def _exp_up(log_delta: float) -> float:
    # Subnormal results would not carry the margin; they are reported as the least normal decade.
    return max(min(1.0, math.exp(min(0.0, log_delta)) * (1.0 + MARGIN)), _LEAST_DELTA)


def _double_until(excess: Callable[[float], float], start: float) -> float:
    upper = 2.0 * start
    while excess(upper) <= 0.0:
        upper *= 2.0
    return upper


def _require_nonnegative(name: str, value: float) -> None:
    if not value >= 0.0:
        raise ValueError(f"{name} must be >= 0, not {value!r}")


def _require_delta(delta: float) -> None:
    if not 0.0 <= delta <= 1.0:
        raise ValueError(f"delta must lie in [0, 1], not {delta!r}")


def _require_request(epsilon: float, delta: float) -> None:
    if not 0.0 <= epsilon <= 1e6:
        raise ValueError(f"epsilon must lie in [0, 1e6], not {epsilon!r}")
    if not 1e-302 <= delta < 1.0:  # a hundredth of the least that may be asked for
        raise ValueError(f"delta must lie in [1e-302, 1), not {delta!r}")
