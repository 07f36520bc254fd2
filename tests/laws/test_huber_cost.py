"""The law of Huber noise and what it costs (methods, 4.1 and T6)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mpf

from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.events import GaussianEvent, HuberEvent, event_from_json
from dpfit.privacy.huber_release import huber_variance
from dpfit.privacy.mechanisms.huber import standard_huber
from strip_laws import MP


def event(knee: Fraction, scale: int = 1000, squared: int = 400, l1: int = 30) -> HuberEvent:
    return HuberEvent(
        label="sums",
        count=3,
        l1_sensitivity=PerAdjacency(2 * l1, l1),
        squared_sensitivity=PerAdjacency(4 * squared, squared),
        scale=scale,
        knee=knee,
    )


@pytest.mark.parametrize(
    ("knee", "variance"),
    [(0.5, 8.076), (0.75, 3.710), (1, 2.245), (1.25, 1.616), (1.5, 1.314), (2, 1.080), (3, 1.004)],
)
def test_variance(knee: float, variance: float) -> None:
    """V(a) as tabulated, and as numerical integration has it."""
    assert huber_variance(knee) == pytest.approx(variance, abs=6e-4)
    x = np.linspace(-60.0 / knee, 60.0 / knee, 2_000_001)
    density = np.exp(-np.where(np.abs(x) <= knee, x**2 / 2, knee * np.abs(x) - knee**2 / 2))
    assert huber_variance(knee) == pytest.approx((x**2 * density).sum() / density.sum(), rel=1e-6)


@pytest.mark.parametrize("strips", [64, 65, 96, 128, 200, 256])
@pytest.mark.parametrize("precision", [70, 160, 333])
def test_certified_mass(strips: int, precision: int) -> None:
    """Bounds of the mass hold the true one for every knee, a unit apart."""
    knee = MP.mpf(strips) / 64
    mass = MP.sqrt(2 * MP.pi) * MP.erf(knee / MP.sqrt(2)) + 2 / knee * MP.exp(-(knee**2) / 2)
    low, high = standard_huber(Fraction(strips, 64)).mass(precision)
    assert low <= mass * mpf(2) ** precision <= high
    assert high - low <= 2


@pytest.mark.parametrize("knee", [Fraction(1, 2), Fraction(1, 3), Fraction(5), Fraction(129, 128)])
def test_a_knee_out_of_range_is_refused(knee: Fraction) -> None:
    """Only knees between two strips, from 1 to 4, have a law."""
    with pytest.raises(ValueError, match="knee"):
        standard_huber(knee)


@pytest.mark.parametrize("knee", [Fraction(1, 2), Fraction(1), Fraction(2)])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_cost(knee: Fraction, adjacency: Adjacency) -> None:
    """Pure alpha D_1 / tau, zCDP min(1, alpha^2) D_2^2 / (2 tau^2), each three times."""
    one = event(knee)
    cost = compose([one], adjacency)
    l1, squared = one.l1_sensitivity.under(adjacency), one.squared_sensitivity.under(adjacency)
    assert cost.pure == 3 * knee * Fraction(l1, 1000)
    assert cost.rho == 3 * min(Fraction(1), knee**2) * Fraction(squared, 2 * 1000**2)
    assert cost.noise == 0
    assert cost.gaussian is not None


def test_with_a_knee_of_one_or_more_it_costs_what_gaussian_noise_does() -> None:
    """In zCDP, at the same scale."""
    gaussian = GaussianEvent(
        label="sums", count=3, squared_sensitivity=PerAdjacency(1600, 400), scale=1000
    )
    for adjacency in Adjacency:
        one, two = (compose([e], adjacency).rho for e in (event(Fraction(2)), gaussian))
        assert one == two


def test_a_tiny_l1_sensitivity_bounds_rho_by_the_pure_epsilon() -> None:
    """What pure differential privacy implies may be less."""
    one = event(Fraction(1), scale=10, squared=900, l1=30)
    two = event(Fraction(1, 2), scale=10, squared=900, l1=30)
    assert compose([one], Adjacency.ADD_REMOVE).rho < 3 * Fraction(900, 200)
    assert compose([two], Adjacency.ADD_REMOVE).rho < compose([one], Adjacency.ADD_REMOVE).rho


def test_json_round_trip() -> None:
    """A ledger brings back the event as it was."""
    one = event(Fraction(129, 64))
    assert event_from_json(one.to_json()) == one
    for key in ("knee", "l1_sensitivity"):
        broken = {name: value for name, value in one.to_json().items() if name != key}
        with pytest.raises(ValueError, match=key):
            event_from_json(broken)
    with pytest.raises(ValueError, match="knee"):
        event_from_json(one.to_json() | {"knee": "0/1"})


@pytest.mark.parametrize("knee", [0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("shift", [0.01, 0.5, 2.0])
def test_the_bounds_hold_for_the_density(knee: float, shift: float) -> None:
    """By integration: Renyi divergence of order a is at most a rho, and the log ratio alpha D."""
    x = np.linspace(-400.0, 400.0 + shift, 800_001)
    step = x[1] - x[0]

    def log_density(t: np.ndarray) -> np.ndarray:
        size = np.abs(t)
        return -np.where(size <= knee, size**2 / 2, knee * size - knee**2 / 2)

    here, there = log_density(x), log_density(x - shift)
    assert np.abs(here - there).max() <= knee * shift + 1e-9
    normaliser = np.exp(here).sum() * step
    for order in (1.1, 2.0, 8.0, 32.0):
        exponent = order * here + (1 - order) * there
        top = exponent.max()
        log_integral = top + math.log(np.exp(exponent - top).sum() * step / normaliser)
        divergence = log_integral / (order - 1)
        assert divergence <= order * min(1.0, knee**2) * shift**2 / 2 * (1 + 1e-6)
