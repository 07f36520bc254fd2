"""Metrics from noisy sums: right without noise, and honest intervals with it."""

from __future__ import annotations

import numpy as np
import pytest

from dpfit.fitting.released_metrics import SumNoise, auc_metric, mean_metric, root_metric

NONE = SumNoise(1e-12, laplace=False)


def test_without_noise_metrics_are_exact() -> None:
    """A mean in its units, its root, and the share of ordered pairs with ties as halves."""
    squared = mean_metric("MSE", 25.0, 100, NONE, largest=9.0)
    assert squared.value == pytest.approx(2.25)
    assert root_metric("RMSE", squared).value == pytest.approx(1.5)
    first, second = np.array([3.0, 2.0, 1.0]), np.array([1.0, 1.0, 4.0])
    pairs = sum(
        a * b * (1.0 if i < j else 0.5 if i == j else 0.0)
        for i, a in enumerate(first)
        for j, b in enumerate(second)
    )
    found = auc_metric(np.concatenate([first, second]), NONE)
    assert found.value == pytest.approx(pairs / 36.0)


@pytest.mark.parametrize("laplace", [False, True])
def test_intervals_hold_as_often_as_they_say(laplace: bool) -> None:
    """Of 4,000 releases with simulated noise 95 % cover the exact metric, to four deviations."""
    chance = np.random.default_rng(1)
    noise = SumNoise(5.0, laplace)
    draw = chance.laplace if laplace else chance.normal
    counts = np.concatenate([np.linspace(90.0, 10.0, 16), np.linspace(5.0, 60.0, 16)])
    exact_auc = auc_metric(counts, NONE).value
    held = {"mean": 0, "auc": 0}
    for _ in range(4000):
        mean = mean_metric("error", 300.0 + draw(0.0, 5.0), 1000, noise)
        held["mean"] += mean.low <= 0.3 <= mean.high
        auc = auc_metric(counts + draw(0.0, 5.0, 32), noise)
        held["auc"] += auc.low <= exact_auc <= auc.high
    for covered in held.values():
        assert abs(covered / 4000 - 0.95) < 0.014


def test_what_noise_drowns_is_told_as_unknown() -> None:
    """No class size to divide by: the AUC may be anything; means stay in their range."""
    found = auc_metric(np.full(8, 1.0), SumNoise(50.0, laplace=False))
    assert (found.value, found.low, found.high) == (None, 0.0, 1.0)
    mean = mean_metric("error", -4.0, 10, SumNoise(50.0, laplace=False), largest=2.0)
    assert (mean.value, mean.low, mean.high) == (None, 0.0, 2.0)
    root = root_metric("RMSE", mean)
    assert (root.value, root.low, root.high) == (None, 0.0, 2.0**0.5)
    above = mean_metric("error", -40.0, 10, SumNoise(5.0, laplace=False), largest=2.0)
    assert (above.value, above.low, above.high) == (0.0, 0.0, 0.0)
