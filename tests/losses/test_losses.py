"""Losses as pure functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import expit, logsumexp, softmax

from dpfit.losses.base import Loss
from dpfit.losses.exponential import exponential
from dpfit.losses.huber import Huber
from dpfit.losses.logistic import Logistic
from dpfit.losses.multinomial import Multinomial
from dpfit.losses.poisson import Poisson
from dpfit.losses.squared import Squared

MARGINS = np.concatenate([np.linspace(-60, 60, 40_001), [0.0, -0.0, 1e-300, 1e300, -1e300]])
VALUES: dict[Loss, Callable[[np.ndarray, float], np.ndarray]] = {
    Logistic(): lambda m, y: np.logaddexp(0.0, m) - y * m,
    Squared(): lambda m, y: (m + 0.5 - y) ** 2 / 2,
    Poisson(): lambda m, y: np.exp(m) - y * m,
    Huber(0.7): lambda m, y: huber(m + 0.5 - y, 0.7),
}
"""The losses of one score, written as their definitions."""


def huber(r: np.ndarray, threshold: float) -> np.ndarray:
    inner = np.abs(r) <= threshold
    return np.where(inner, r**2 / 2, threshold * (np.abs(r) - threshold / 2))


def of_classes(k: int) -> np.ndarray:
    """Margins of all sizes, shape (n, k)."""
    rng = np.random.default_rng(k)
    return rng.standard_normal((4_000, k)) * 10.0 ** rng.uniform(-3, 2.5, (4_000, 1))


def test_the_exponential_agrees_with_numpy() -> None:
    """Within two units of the last place over [-40, 40], and exact at zero."""
    x = np.concatenate([np.linspace(-40, 40, 200_001), [1e-300, -1e-300, 5e-324]])
    assert np.max(np.abs(exponential(x) - np.exp(x)) / np.spacing(np.exp(x))) <= 2.0
    assert exponential(np.zeros(1))[0] == 1.0


def test_the_exponential_saturates() -> None:
    """Beyond 40 it stays where it was; NaN is the lower end."""
    ends = exponential(np.array([-40.0, 40.0]))
    assert exponential(np.array([40.1, 1e300, np.inf])).tolist() == [ends[1]] * 3
    assert exponential(np.array([-40.1, -1e300, -np.inf, np.nan])).tolist() == [ends[0]] * 4


def test_sigmoid_agrees_with_scipy() -> None:
    """The sigmoid of basic operations is within two units of the last place of SciPy's."""
    assert np.max(np.abs(Logistic().mean(MARGINS) - expit(MARGINS))) < 3e-16


def test_sigmoid_of_infinity() -> None:
    """Infinite margins saturate."""
    assert Logistic().mean(np.array([np.inf, -np.inf])).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("k", [2, 3, 7, 50])
def test_softmax_agrees_with_scipy(k: int) -> None:
    """Probabilities are positive, sum to one and are SciPy's, but for what is below e^-40."""
    margins = of_classes(k)
    p = Multinomial(k).mean(margins)
    assert np.all(p > 0.0)
    assert p.sum(axis=1) == pytest.approx(np.ones(len(p)), abs=1e-15 * k)
    assert np.max(np.abs(p - softmax(margins, axis=1))) < 4e-15


def test_two_classes_are_the_logistic_loss() -> None:
    """Softmax of (0, m) is the sigmoid of m."""
    m = np.linspace(-50, 50, 1_001)
    p = Multinomial(2).mean(np.stack([np.zeros_like(m), m], axis=1))
    assert p[:, 1] == pytest.approx(Logistic().mean(m), abs=3e-16)


@pytest.mark.parametrize("k", [2, 5])
def test_the_residual_of_classes_is_short(k: int) -> None:
    """``|p - e_y|_2 <= sqrt(2)``, which is what makes a large clip harmless."""
    residual = Multinomial(k).residual(of_classes(k), np.arange(4_000) % k)
    assert np.linalg.norm(residual, axis=1).max() <= np.sqrt(2.0) * (1 + 1e-12)


@pytest.mark.parametrize("loss", VALUES, ids=lambda loss: loss.name)
def test_each_record_is_computed_by_itself(loss: Loss) -> None:
    """A residual does not depend on its neighbours or position in the array."""
    target = np.linspace(0, 1, len(MARGINS))
    whole = loss.residual(MARGINS, target)
    for i in range(0, len(MARGINS), 997):
        assert whole[i] == loss.residual(MARGINS[i : i + 1], target[i : i + 1])[0]
    assert np.array_equal(loss.residual(MARGINS[::-1], target[::-1]), whole[::-1])
    assert np.array_equal(loss.residual(MARGINS[3:], target[3:]), whole[3:])


@pytest.mark.parametrize("k", [2, 3, 7, 50])
def test_each_record_of_classes_is_computed_by_itself(k: int) -> None:
    """Nor do probabilities depend on how many records there are, or on their storage order."""
    margins, target = of_classes(k), np.arange(4_000.0) % k
    loss = Multinomial(k)
    whole = loss.residual(margins, target)
    for i in range(0, 4_000, 97):
        assert np.array_equal(whole[i], loss.residual(margins[i : i + 1], target[i : i + 1])[0])
    assert np.array_equal(loss.residual(np.asfortranarray(margins), target), whole)
    assert np.array_equal(loss.residual(margins[::-1], target[::-1]), whole[::-1])


@pytest.mark.parametrize("loss", VALUES, ids=lambda loss: loss.name)
def test_the_residual_is_the_derivative(loss: Loss) -> None:
    """l'(m, y), checked by a difference quotient of the loss."""
    m, h = np.linspace(-4.013, 4, 101), 1e-6
    for y in (0.0, 0.3, 1.0):
        quotient = (VALUES[loss](m + h, y) - VALUES[loss](m - h, y)) / (2 * h)
        exact = loss.residual(m, np.full_like(m, y))
        assert exact == pytest.approx(quotient, abs=1e-7)


@pytest.mark.parametrize("k", [2, 3, 6])
def test_the_residual_of_classes_is_the_gradient(k: int) -> None:
    """In each class, by a difference quotient of ``log sum e^m - m_y``."""
    rng, h = np.random.default_rng(0), 1e-6
    margins, target = 3 * rng.standard_normal((200, k)), rng.integers(0, k, 200)

    def value(at: np.ndarray) -> np.ndarray:
        return logsumexp(at, axis=1) - at[np.arange(200), target]

    residual = Multinomial(k).residual(margins, target.astype(float))
    for c in range(k):
        step = h * (np.arange(k) == c)
        quotient = (value(margins + step) - value(margins - step)) / (2 * h)
        assert residual[:, c] == pytest.approx(quotient, abs=1e-8)


def test_huber_within_its_threshold_is_squared() -> None:
    """Bit by bit where no residual is larger, and the threshold elsewhere."""
    m, y = np.linspace(-3, 3, 601), np.full(601, 0.4)
    squared = Squared().residual(m, y)
    assert np.array_equal(Huber(4.0).residual(m, y), squared)
    assert np.array_equal(Huber(0.5).residual(m, y), np.clip(squared, -0.5, 0.5))
