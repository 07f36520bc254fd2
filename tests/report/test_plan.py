"""The error to expect before anything is spent."""

from __future__ import annotations

import math

import pytest

from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.conversion import gaussian_mu
from dpfit.report.plan import EPSILONS, Plan

BOTH = list(Adjacency)


def plan(rows: int, features: int, sparsity: int | None, adjacency: Adjacency = BOTH[0]) -> Plan:
    return Plan(rows, features, sparsity, 1e-6, adjacency)


def test_the_yardstick_is_the_published_rate() -> None:
    """By hand: 30 of 1,000 columns, 20,000 rows, epsilon 2."""
    rate = math.log(1e6) / (20_000 * 2.0) ** 2
    assert plan(20_000, 1000, None).yardstick(2.0) == pytest.approx(0.05 + 1e6 * rate)
    s = 30 * math.log(1000)
    assert plan(20_000, 1000, 30).yardstick(2.0) == pytest.approx(s / 20_000 + s * s * rate)


def test_the_expected_error_is_that_of_the_noise() -> None:
    """d/n, and d coordinates with noise 2 sqrt(d) / (n mu) squared."""
    mu = gaussian_mu(2.0, 1e-6)
    scale = 2.0 * math.sqrt(100) / (5000 * mu)
    assert plan(5000, 100, None).expected(2.0) == pytest.approx(0.02 + 100 * scale**2)
    s = 7 * math.log(100)
    assert plan(5000, 100, 7).expected(2.0) == pytest.approx(s / 5000 + 2 * s * scale**2)


@pytest.mark.parametrize("sparsity", [None, 20])
def test_error_falls_with_epsilon_and_with_rows(sparsity: int | None) -> None:
    """More budget and more rows help; zeroing a record out needs half the noise."""
    few, many = plan(1000, 300, sparsity), plan(4000, 300, sparsity)
    errors = [few.expected(epsilon) for epsilon in EPSILONS]
    assert errors == sorted(errors, reverse=True)
    assert all(many.expected(e) < few.expected(e) for e in EPSILONS)
    spread = [plan(1000, 300, sparsity, adjacency) for adjacency in BOTH]
    limit = few.expected(1e5)
    replaced, zeroed = (one.expected(1.0) - limit for one in spread)
    assert replaced / zeroed == pytest.approx(4.0, rel=0.01)


def test_dense_error_follows_the_rate() -> None:
    """Over a hundredfold of epsilon the two stay within a constant of each other."""
    wide = plan(100_000, 1000, None)
    ratios = [wide.expected(epsilon) / wide.yardstick(epsilon) for epsilon in EPSILONS]
    assert min(ratios) >= 1.0
    assert max(ratios) < 10.0


def test_one_column_and_one_row() -> None:
    """The least numbers there are draw a picture."""
    for sparsity in (None, 1):
        chart = plan(1, 1, sparsity).chart(0.5)
        assert all(y > 0 for series in chart.series for _, y in series.points)
    assert [row[0] for row in plan(9, 3, None).chart(0.9999).rows].count("1") == 1
