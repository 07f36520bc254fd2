"""The door of an evaluation hands its sums out once, with the noise that was charged."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from dpfit.losses.logarithm import logarithm
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.mechanisms.noise import ExactNoise, NoNoise
from dpfit.privacy.metric_release import plan_metrics
from dpfit.privacy.metric_sums import MetricSums
from dpfit.privacy.random_bits import BitSource, RunKey
from dpfit.privacy.record_metrics import ClassMetrics

METRICS = ClassMetrics(2, 4.0)


def filled(budget: Budget) -> MetricSums:
    held = MetricSums(METRICS, plan_metrics(METRICS, budget, Adjacency.REPLACE_ONE))
    held.add(np.array([2.0, -1.0, 0.5]), np.array([1.0, 1.0, 0.0]))
    held.add(np.array([-3.0]), np.array([0.0]))
    return held


def test_without_noise_the_sums_are_those_of_the_records() -> None:
    """Two of four are wrong, the loss is the clipped log loss, and each record is in one cell."""
    held = filled(Budget(mu=1.0))
    assert held.n_rows == 4
    error, loss, *cells = held.noisy(NoNoise())
    assert error == 2.0
    exact = np.log1p(np.exp([-2.0, 1.0, 0.5, -3.0])).sum() / METRICS.clip
    assert loss == pytest.approx(exact, abs=4e-6)
    assert sum(cells) == 4.0
    assert sum(cells[: len(cells) // 2]) == 2.0


@pytest.mark.parametrize(
    ("budget", "deviation"), [(Budget(mu=0.5), 4.0), (Budget(epsilon=0.5), 2**0.5 * 8.0)]
)
def test_every_sum_has_noise_of_the_charged_scale(budget: Budget, deviation: float) -> None:
    """Over a thousand seeded keys: mean, deviation, and no two coordinates alike."""
    noisy = []
    for seed in range(1000):
        noise = ExactNoise(BitSource(RunKey.from_seed(seed)))
        noisy.append(filled(budget).noisy(noise))
    exact = filled(budget).noisy(NoNoise())
    gaps = (np.array(noisy) - exact) / deviation
    assert np.abs(gaps.mean(axis=0)).max() < 0.25
    assert np.abs(gaps.std(axis=0) - 1.0).max() < 0.25
    correlation = np.corrcoef(gaps.T) - np.eye(gaps.shape[1])
    assert np.abs(correlation).max() < 0.25


def test_the_sums_leave_once() -> None:
    """A second release would be one that was not charged; nor can the sums be copied."""
    held = filled(Budget(mu=1.0))
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="copied"):
            copied(held)
    held.noisy(NoNoise())
    with pytest.raises(RuntimeError, match="before"):
        held.noisy(NoNoise())


def test_the_logarithm_is_exact_to_the_last_bits() -> None:
    """Against numpy's, over all magnitudes; and not position-dependent."""
    x = np.concatenate([np.geomspace(5e-324, 1e308, 4001), np.linspace(0.5, 2.0, 4001)])
    exact = np.log(x)
    assert np.abs(logarithm(x) - exact).max() <= 4e-16 * 1000
    near = np.abs(exact) < 1.0
    assert np.abs(logarithm(x) - exact)[near].max() < 4e-16
    assert np.array_equal(
        logarithm(x), np.concatenate([logarithm(x[i : i + 1]) for i in range(len(x))])
    )
    assert np.all(np.isfinite(logarithm(np.array([0.0, -1.0, np.inf, np.nan]))))
