"""Losses as pure functions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from dpfit.losses.logistic import Logistic
from dpfit.losses.squared import Squared

MARGINS = np.concatenate([np.linspace(-60, 60, 40_001), [0.0, -0.0, 1e-300, 1e300, -1e300]])


def test_sigmoid_agrees_with_scipy() -> None:
    """The sigmoid of basic operations is within two units of the last place of SciPy's."""
    assert np.max(np.abs(Logistic().mean(MARGINS) - expit(MARGINS))) < 3e-16


def test_sigmoid_of_infinity() -> None:
    """Infinite margins saturate."""
    assert Logistic().mean(np.array([np.inf, -np.inf])).tolist() == [1.0, 0.0]


def test_each_mean_is_computed_by_itself() -> None:
    """A margin's mean does not depend on its neighbours or position in the array."""
    whole = Logistic().mean(MARGINS)
    assert all(whole[i] == Logistic().mean(MARGINS[i : i + 1])[0] for i in range(0, 40_001, 997))
    assert np.array_equal(Logistic().mean(MARGINS[::-1]), whole[::-1])
    assert np.array_equal(Logistic().mean(MARGINS[3:]), whole[3:])


@pytest.mark.parametrize("loss", [Logistic(), Squared()])
def test_the_residual_is_the_derivative(loss: Logistic | Squared) -> None:
    """l'(m, y) = mean(m) - y, checked by a difference quotient of the loss."""
    values = {
        "logistic": lambda m, y: np.logaddexp(0.0, m) - y * m,
        "squared": lambda m, y: (m + 0.5 - y) ** 2 / 2,
    }[loss.name]
    m, h = np.linspace(-4, 4, 101), 1e-6
    for y in (0.0, 0.3, 1.0):
        quotient = (values(m + h, y) - values(m - h, y)) / (2 * h)
        assert loss.residual(m, np.full_like(m, y)) == pytest.approx(quotient, abs=1e-8)
