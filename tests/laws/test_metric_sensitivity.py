"""What one record can change in the sums of an evaluation, by brute force, and what they cost."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.metric_release import plan_metrics, sensitivity
from dpfit.privacy.metric_sums import record_sums
from dpfit.privacy.record_metrics import (
    ClassMetrics,
    CountMetrics,
    QuantileMetrics,
    RecordMetrics,
    ValueMetrics,
)

UNIT = 1 << 20
SCORES = (
    0.0,
    1e-300,
    -0.3,
    0.3,
    5.0,
    -5.0,
    40.0,
    -1e6,
    1e308,
    -1e308,
    math.inf,
    -math.inf,
    math.nan,
)
KINDS: tuple[tuple[RecordMetrics, int, tuple[float, ...]], ...] = (
    (ClassMetrics(2, 4.0), 1, (0.0, 1.0)),
    (ClassMetrics(3, 4.0), 3, (0.0, 1.0, 2.0)),
    (ValueMetrics(), 1, (0.0, 0.3, 1.0)),
    (QuantileMetrics(0.9), 1, (0.0, 0.3, 1.0)),
    (CountMetrics(7.0, 4.0), 1, (0.0, 1e-300, 0.3, 1.0)),
)
kinds = pytest.mark.parametrize(
    ("metrics", "n_scores", "targets"), KINDS, ids=lambda v: type(v).__name__
)


def sums(metrics: RecordMetrics, records: list[tuple[Any, float]]) -> list[int]:
    """As the door adds them up, as Python integers."""
    scores = np.array([score for score, _ in records], np.float64)
    if not records:
        scores = np.zeros((0, 3) if metrics == KINDS[1][0] else 0)
    target = np.array([target for _, target in records], np.float64)
    with np.errstate(all="ignore"):
        return [int(v) for v in record_sums(metrics, scores, target, UNIT)]


def possible(n_scores: int, targets: tuple[float, ...]) -> list[tuple[Any, float]]:
    scores: list[Any] = list(SCORES)
    if n_scores > 1:
        few = (0.0, 5.0, -5.0, 1e308, math.nan)
        scores = [list(part) for part in itertools.product(few, repeat=n_scores)]
    return list(itertools.product(scores, targets))


def distances(a: list[int], b: list[int]) -> tuple[int, int]:
    gaps = [abs(x - y) for x, y in zip(a, b, strict=True)]
    return sum(gaps), sum(gap * gap for gap in gaps)


@kinds
def test_no_neighbour_moves_the_sums_beyond_the_charge(
    metrics: RecordMetrics, n_scores: int, targets: tuple[float, ...]
) -> None:
    """Over all pairs of extreme records, in l1 and squared l2, under both relations."""
    bound = sensitivity(metrics)
    nothing = sums(metrics, [])
    found = {tuple(sums(metrics, [record])) for record in possible(n_scores, targets)}
    for one in found:
        l1, l2 = distances(list(one), nothing)
        assert l1 <= bound.add_remove * UNIT
        assert l2 <= bound.add_remove * UNIT**2
        for other in found:
            l1, l2 = distances(list(one), list(other))
            assert l1 <= bound.replace_one * UNIT
            assert l2 <= bound.replace_one * UNIT**2


@kinds
def test_records_do_not_influence_each_other(
    metrics: RecordMetrics, n_scores: int, targets: tuple[float, ...]
) -> None:
    """The sums of many are the sum of each one's own, whatever stands beside it."""
    records = possible(n_scores, targets)
    alone = np.sum([sums(metrics, [record]) for record in records], axis=0)
    assert sums(metrics, records) == alone.tolist()
    assert sums(metrics, records[::-1][:7]) == sums(metrics, records[-7:])


def test_the_bound_is_reached() -> None:
    """Opposite sure records of two classes: nothing smaller could be charged."""
    metrics = ClassMetrics(2, 4.0)
    right, wrong = sums(metrics, [(40.0, 1.0)]), sums(metrics, [(40.0, 0.0)])
    bound = sensitivity(metrics)
    assert distances(right, wrong) == (bound.replace_one * UNIT, bound.replace_one * UNIT**2)
    assert distances(wrong, sums(metrics, [])) == (
        bound.add_remove * UNIT,
        bound.add_remove * UNIT**2,
    )


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("metrics", [kind[0] for kind in KINDS], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize(
    "budget",
    [
        Budget(epsilon=1.0, delta=1e-6),
        Budget(epsilon=0.01, delta=1e-9),
        Budget(rho=0.3),
        Budget(mu=2.0),
        Budget(epsilon=0.7),
    ],
    ids=lambda budget: str(budget.to_json()),
)
def test_the_charge_keeps_the_budget_and_nearly_uses_it(
    budget: Budget, metrics: RecordMetrics, adjacency: Adjacency
) -> None:
    """By an accountant written here from the sensitivity that was tested and the noise's scale."""
    release = plan_metrics(metrics, budget, adjacency)
    scale = Fraction(1 << release.scale_bits, release.unit)
    bound = sensitivity(metrics).under(adjacency)
    cost = compose([release.event()], adjacency)
    if budget.pure:
        spent = bound / scale
        assert cost.epsilon(0.0) == pytest.approx(float(spent), rel=1e-12)
        assert 0.999 * budget.epsilon <= spent <= budget.epsilon
        return
    mu = math.sqrt(bound / scale**2)
    assert cost.mu() == pytest.approx(mu, rel=1e-12)
    if budget.mu is not None:
        spent, asked = mu, budget.mu
    elif budget.rho is not None:
        spent, asked = mu**2 / 2, budget.rho
    else:
        eps, asked = budget.epsilon, budget.delta
        spent = norm.sf(eps / mu - mu / 2) - math.exp(eps) * norm.sf(eps / mu + mu / 2)
        assert 0.99 * asked <= spent <= asked * (1 + 1e-6)
        return
    assert 0.999 * asked <= spent <= asked * (1 + 1e-12)
