"""The cost of events, added exactly and converted to (epsilon, delta) rounding against us.

A handler returns the cost of ONE application; :func:`compose` alone multiplies by the count and
adds. (A widely used accountant lets each handler multiply, and one forgets: a hundred selections
are then charged as one.)
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from dpfit.privacy import conversion
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.events import (
    BoundedRangeEvent,
    Event,
    GaussianEvent,
    HuberEvent,
    LaplaceEvent,
    MinimiserEvent,
    MinimiserLaw,
    NonPrivateEvent,
    PureEvent,
    RandomStoppingEvent,
    ZcdpEvent,
)
from dpfit.privacy.random_stopping import log_expected_runs, stopping_shift

_KINDS = (
    GaussianEvent,
    LaplaceEvent,
    HuberEvent,
    ZcdpEvent,
    PureEvent,
    BoundedRangeEvent,
    MinimiserEvent,
    RandomStoppingEvent,
    NonPrivateEvent,
)
_ROOT_TWO_OVER_PI = Fraction(0.79788456080287)  # rounded up
_MOST_DOUBLINGS = 1000
_MOST_LOG = 700
_WIDENED = 1e-12  # of a power of e
_LARGEST_DENOMINATOR = 1 << 4096
_FINEST = 1 << 256  # one over it is what a sum beyond that is rounded up to a multiple of


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Upper bounds on what was spent, in the currencies that add up under adaptive composition.

    Gaussian noise never gives a pure epsilon. So the third bound has two parts: Gaussian
    differential privacy for Gaussian noise, and pure epsilon for everything else.

    Sums are exact until a denominator passes 2^4096; such a sum is rounded up by less than 2^-256.

    None means that the releases have no finite bound in that currency. No field has a default: a
    forgotten one would read as free of charge.

    Attributes
    ----------
    gaussian : Fraction or None
        Squared mu of Gaussian differential privacy (Dong, Roth and Su, 2022, corollary 3.3).
    rho : Fraction or None
        The Renyi divergence of every order ``a > 1`` is at most ``rho a + shift + log_multiple /
        (a - 1)``; with neither shift nor multiple this is zero-concentrated differential privacy
        (Bun and Steinke, 2016, lemma 1.7). Known whenever one of the others is.
    noise : Fraction or None
        Squared mu of the releases with Gaussian noise alone; None only when nothing is protected.
    pure : Fraction or None
        Epsilon of pure differential privacy of all the other releases.
    doublings : int
        How often delta doubles beside ``noise`` and ``pure``: releases whose log-likelihood ratio
        is that of Gaussian noise folded over to its positive side (see :func:`_minimiser`).
    shift : Fraction
        Beside ``rho``: what is added to the divergence of every order, and so to epsilon.
    log_multiple : Fraction
        Beside ``rho``: the logarithm of what multiplies delta.
    infinite : bool
        Nothing is protected; the other fields are None.
    """

    gaussian: Fraction | None
    rho: Fraction | None
    noise: Fraction | None
    pure: Fraction | None
    doublings: int = 0
    shift: Fraction = Fraction(0)
    log_multiple: Fraction = Fraction(0)
    infinite: bool = False

    def __post_init__(self) -> None:
        if self.shift < 0 or self.log_multiple < 0:
            raise ValueError(f"not a cost: {self!r}")
        for value in (self.gaussian, self.rho, self.noise, self.pure):
            if value is not None and (value < 0 or self.infinite):
                raise ValueError(f"not a cost: {self!r}")

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            gaussian=_add(self.gaussian, other.gaussian),
            rho=_add(self.rho, other.rho),
            noise=_add(self.noise, other.noise),
            pure=_add(self.pure, other.pure),
            doublings=self.doublings + other.doublings,
            shift=_sum(self.shift, other.shift),
            log_multiple=_sum(self.log_multiple, other.log_multiple),
            infinite=self.infinite or other.infinite,
        )

    def __mul__(self, count: int) -> Cost:
        if type(count) is not int or count < 1:
            raise ValueError(f"a cost is multiplied by an integer >= 1, not {count!r}")
        return Cost(
            gaussian=_times(self.gaussian, count),
            rho=_times(self.rho, count),
            noise=_times(self.noise, count),
            pure=_times(self.pure, count),
            doublings=self.doublings * count,
            shift=self.shift * count,
            log_multiple=self.log_multiple * count,
            infinite=self.infinite,
        )

    __rmul__ = __mul__

    def mu(self) -> float:
        """Return mu of Gaussian differential privacy, rounded up; infinity when not known."""
        return math.inf if self.gaussian is None else conversion.sqrt_up(self.gaussian)

    def rho_bound(self) -> float:
        """Return rho of zero-concentrated differential privacy, rounded up; infinity without."""
        if self.rho is None or self.log_multiple:
            return math.inf
        return conversion.round_up(self.rho + self.shift)  # every order is above 1

    def epsilon(self, delta: float) -> float:
        """Return the smallest certified epsilon at ``delta``, rounded up.

        Each bound is one of the whole, so the least of them is one. A Gaussian-only cost is exact:
        its curve is the privacy profile itself. Pure releases move that curve by their epsilon:
        whatever they show, the log-likelihood ratio grows by no more.
        """
        if not 0.0 <= delta < 1.0:
            raise ValueError(f"delta must lie in [0, 1), not {delta!r}")
        if self.infinite:
            return math.inf
        bounds = [math.inf]
        if self.noise is not None and self.pure is not None:
            share = math.ldexp(delta, -self.doublings)
            if share < sys.float_info.min:  # rounded, perhaps up
                share = 0.0
            gaussian = conversion.gaussian_epsilon(conversion.sqrt_up(self.noise), share)
            if math.isfinite(gaussian):
                bounds.append(conversion.round_up(Fraction(gaussian) + self.pure))
        if self.gaussian is not None:
            bounds.append(conversion.gaussian_epsilon(self.mu(), delta))
        if self._needs_rho():
            bounds.append(self._renyi_epsilon(delta))
        return min(bounds)

    def delta(self, epsilon: float) -> float:
        """Return the smallest certified delta at ``epsilon`` >= 0, rounded up."""
        if not 0.0 <= epsilon < math.inf:
            raise ValueError(f"epsilon must be finite and >= 0, not {epsilon!r}")
        if self.infinite:
            return 1.0
        bounds = [1.0]
        if self.noise is not None and self.pure is not None and Fraction(epsilon) >= self.pure:
            left = conversion.round_down(Fraction(epsilon) - self.pure)
            share = conversion.gaussian_delta(conversion.sqrt_up(self.noise), left)
            # What passes the floats is no bound at all, which 1 says.
            often = self.doublings > _MOST_DOUBLINGS
            bounds.append(1.0 if often else math.ldexp(share, self.doublings))
        if self.gaussian is not None:
            bounds.append(conversion.gaussian_delta(self.mu(), epsilon))
        if self._needs_rho():
            bounds.append(self._renyi_delta(epsilon))
        return min(bounds)

    def _renyi_epsilon(self, delta: float) -> float:
        assert self.rho is not None
        rho = conversion.round_up(self.rho)
        if not (self.shift or self.log_multiple):
            return conversion.zcdp_epsilon(rho, delta)
        share = delta * math.exp(-conversion.round_up(self.log_multiple)) * (1.0 - _WIDENED)
        if share < sys.float_info.min:
            return math.inf
        epsilon = conversion.zcdp_epsilon(rho, share)
        return conversion.round_up(Fraction(epsilon) + self.shift)

    def _renyi_delta(self, epsilon: float) -> float:
        assert self.rho is not None
        rho = conversion.round_up(self.rho)
        if not (self.shift or self.log_multiple):
            return conversion.zcdp_delta(rho, epsilon)
        if Fraction(epsilon) < self.shift or self.log_multiple > _MOST_LOG:
            return 1.0
        left = conversion.round_down(Fraction(epsilon) - self.shift)
        multiple = math.exp(conversion.round_up(self.log_multiple)) * (1.0 + _WIDENED)
        return min(1.0, conversion.zcdp_delta(rho, left) * multiple)

    def _needs_rho(self) -> bool:
        # mu-Gaussian implies mu^2/2-zCDP, so rho can only help when it is below that.
        if self.rho is None or self.gaussian is None:
            return self.rho is not None
        return 2 * self.rho < self.gaussian


_ZERO = Fraction(0)
NOTHING = Cost(gaussian=_ZERO, rho=_ZERO, noise=_ZERO, pure=_ZERO)
INFINITE = Cost(gaussian=None, rho=None, noise=None, pure=None, infinite=True)


def compose(events: Iterable[Event], adjacency: Adjacency) -> Cost:
    """Return the cost of all ``events`` together, each charged ``count`` times.

    Holds for adaptive choice of the later events within declared bounds (Gaussian: exactness.md
    section 7; the fixed sums here are the caps, not realised amounts).

    Raises
    ------
    TypeError
        For an event of a kind this accountant does not know.
    """
    total = NOTHING
    for event in events:
        total = total + cost_of_one(event, adjacency) * event.count
    return total


def cost_of_one(event: Event, adjacency: Adjacency) -> Cost:
    """Return the cost of one application of ``event``; its count is the caller's affair."""
    if type(event) not in _KINDS:
        raise TypeError(f"unknown kind of event: {type(event).__name__}")
    if isinstance(event, GaussianEvent):
        return gaussian_cost(Fraction(event.squared_sensitivity.under(adjacency), event.scale**2))
    if isinstance(event, LaplaceEvent):
        return _laplace(event, adjacency)
    if isinstance(event, HuberEvent):
        return _huber(event, adjacency)
    if isinstance(event, ZcdpEvent):
        rho = event.rho.under(adjacency)
        return Cost(gaussian=None, rho=rho, noise=_ZERO, pure=None)
    if isinstance(event, PureEvent):
        return _pure(event.epsilon.under(adjacency))
    if isinstance(event, BoundedRangeEvent):
        return _bounded_range(event, adjacency)
    if isinstance(event, MinimiserEvent):
        return _minimiser(event, adjacency)
    if isinstance(event, RandomStoppingEvent):
        return _random_stopping(event, adjacency)
    return INFINITE


def gaussian_cost(squared_mu: Fraction) -> Cost:
    """Return the cost of releases with Gaussian noise that have that squared mu together."""
    return Cost(gaussian=squared_mu, rho=squared_mu / 2, noise=squared_mu, pure=_ZERO)


def _laplace(event: LaplaceEvent, adjacency: Adjacency) -> Cost:
    # Pure as a whole; or each coordinate by Bun and Steinke (2016, proposition 1.4), added up.
    epsilon = Fraction(event.l1_sensitivity.under(adjacency), event.scale)
    rho = Fraction(event.squared_sensitivity.under(adjacency), 2 * event.scale**2)
    return Cost(
        gaussian=_squared_mu(2 * epsilon),
        rho=min(rho, conversion.pure_rho(epsilon)),
        noise=_ZERO,
        pure=epsilon,
    )


def _huber(event: HuberEvent, adjacency: Adjacency) -> Cost:
    # Methods, 4.1: |rho'| <= alpha (H1); |rho''| <= 1, or each coordinate's pure epsilon (H2).
    epsilon = event.knee * Fraction(event.l1_sensitivity.under(adjacency), event.scale)
    squared = Fraction(event.squared_sensitivity.under(adjacency), event.scale**2)
    rho = min(Fraction(1), event.knee**2) * squared / 2
    return Cost(
        gaussian=_squared_mu(2 * epsilon),
        rho=min(rho, conversion.pure_rho(epsilon)),
        noise=_ZERO,
        pure=epsilon,
        doublings=0,
    )


def _pure(epsilon: Fraction) -> Cost:
    # The log-odds of any set of outputs move by at most 2 epsilon.
    rho = conversion.pure_rho(epsilon)
    mu = _squared_mu(2 * epsilon)
    return Cost(gaussian=mu, rho=rho, noise=_ZERO, pure=epsilon)


def _bounded_range(event: BoundedRangeEvent, adjacency: Adjacency) -> Cost:
    # eta^2/8-zCDP (Cesar and Rogers, ALT 2021); the log ratio has both signs, so a range of eta
    # bounds it by eta, and the log-odds of any set of outputs move by at most eta.
    eta = event.eta.under(adjacency)
    rho = min(eta**2 / 8, conversion.pure_rho(eta))
    return Cost(gaussian=_squared_mu(eta), rho=rho, noise=_ZERO, pure=eta)


def _minimiser(event: MinimiserEvent, adjacency: Adjacency) -> Cost:
    """Objective perturbation: the law's shift, and the Jacobian's share as pure epsilon.

    With Gaussian noise b the shift Delta depends on the minimiser, hence on b. Zeroing a record
    makes ``|b.Delta| <= S |b.z|``, so the log-likelihood ratio is at most that of the determinants
    plus ``v/2 + |Z|``, Z normal of variance v. Whatever is not negative and grows with the ratio
    has an expectation that at most doubles from Z to |Z|: so does delta, and adaptively composed
    releases keep the factor. Replacing a record gives ``S |b.z| + S |b.z'|``, which is the larger
    of ``S |b.(z + z')|`` and ``S |b.(z - z')|``: two such terms, v from twice the length. (methods,
    3.2 O3; the factor 2 for zeroing also Redberg, Koskela and Wang, 2023.)
    """
    shift = event.sensitivity.under(adjacency) / event.scale
    jacobian = conversion.log1p_up(event.jacobian.under(adjacency))
    if event.law is not MinimiserLaw.GAUSSIAN:
        return _pure(shift + jacobian)
    v = shift**2
    # At order a the Renyi divergence is at most jacobian + a v/2 + sqrt(2 v / pi), and a > 1.
    rho = jacobian + v / 2 + shift * _ROOT_TWO_OVER_PI
    doublings = minimiser_doublings(adjacency)
    return Cost(gaussian=None, rho=rho, noise=v, pure=jacobian, doublings=doublings)


def _random_stopping(event: RandomStoppingEvent, adjacency: Adjacency) -> Cost:
    """Papernot and Steinke (2021, theorem 2), where one run costs at most rho.

    A run is drawn from a public list, and its Renyi divergences are at most those of the dearest.
    """
    runs = [compose(run, adjacency).rho for run in event.runs]
    if any(rho is None for rho in runs):
        return INFINITE
    rho = max(rho for rho in runs if rho is not None)
    return Cost(
        gaussian=None,
        rho=rho,
        noise=_ZERO,
        pure=None,
        shift=stopping_shift(rho, event.eta, event.gamma),
        log_multiple=log_expected_runs(event.eta, event.gamma),
    )


def minimiser_doublings(adjacency: Adjacency) -> int:
    """How often a minimiser with Gaussian noise in its objective doubles delta."""
    return 1 if adjacency is Adjacency.ADD_REMOVE else 2


def _squared_mu(log_odds: Fraction) -> Fraction | None:
    mu = conversion.randomized_response_mu(conversion.round_up(log_odds))
    return Fraction(mu) ** 2 if math.isfinite(mu) else None


def _add(left: Fraction | None, right: Fraction | None) -> Fraction | None:
    return None if left is None or right is None else _sum(left, right)


def _sum(left: Fraction, right: Fraction) -> Fraction:
    total = left + right
    if total.denominator <= _LARGEST_DENOMINATOR:
        return total
    # Costs of many runs, each with its own denominator, would grow with their number.
    return Fraction(math.ceil(total * _FINEST), _FINEST)


def _times(value: Fraction | None, count: int) -> Fraction | None:
    return None if value is None else value * count
