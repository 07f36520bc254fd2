"""dp-screen: its shares, its rule and its behaviour without noise."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dense_rows import dense_block, dense_design
from dpfit.algorithms.dp_screen import default_rule
from dpfit.design.grid import Grid, RowMap
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.request import FitRequest
from dpfit.losses.logistic import Logistic
from dpfit.losses.squared import Squared
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.curator import Curator
from dpfit.privacy.declared_facts import DeclaredFacts, Layout
from dpfit.privacy.gaussian_release import plan_release
from dpfit.privacy.mechanisms.noise import NoNoise
from dpfit.privacy.private_records import PrivateRecords
from text_scale import text_scale


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("sparsity", [None, 20, 500])
@pytest.mark.parametrize("budget", [None, Budget(mu=0.1), Budget(mu=7.0)])
def test_the_shares_are_the_whole_budget(
    loss: str, sparsity: int | None, budget: Budget | None
) -> None:
    """The parts of mu^2 are positive and sum to exactly one."""
    planned = default_rule(text_scale(loss=loss, budget=budget), sparsity).planned()
    assert sum(one.budget_part for one in planned) == 1
    assert all(one.budget_part > 0 for one in planned)


def test_the_default_rule_is_the_measured_one() -> None:
    """Screen share clip(12 / sqrt(n mu), .1, .3), .1 if d <= 4 s; T = n mu / 2000 in 40..200."""
    wide = default_rule(text_scale(), 500)
    assert float(wide.screen_part) == pytest.approx(12 / math.sqrt(11_314 * 0.448))
    assert wide.iterations == 40
    assert default_rule(text_scale(n_features=123), 50).screen_part == Fraction(1, 10)
    assert default_rule(text_scale(n_rows=400_000), 500).iterations == 90


def fitted(loss: str, sparsity: int | None) -> tuple[object, np.ndarray]:
    rng = np.random.default_rng(0)
    X = np.abs(rng.standard_normal((2_000, 30))) * (rng.random((2_000, 30)) < 0.4)
    X[:, :4] *= 2.0
    score = X[:, :4] @ np.array([3.0, -3.0, 2.0, -2.0])
    grid = Grid(1.0, RowMap.NORMALIZE, 20, True)
    target = (score > 0).astype(float)
    if loss == "squared":
        target = (score - score.min()) / (score.max() - score.min())
    algorithm = default_rule(
        text_scale(n_rows=2_000, n_features=30, loss=loss, budget=None), sparsity
    )
    releases = [
        plan_release(planned, grid, unit_bits=20, squared_mu=None, adjacency=Adjacency.REPLACE_ONE)
        for planned in algorithm.planned()
    ]
    curator = Curator(
        records=PrivateRecords(dense_design(X, grid), target),
        loss=Squared() if loss == "squared" else Logistic(),
        grid=grid,
        n_rows=2_000,
        releases=releases,
        noise=NoNoise(),
    )
    seen: list[int] = []
    outcome = algorithm.run(curator, seen.append)
    assert seen[-1] == algorithm.steps
    assert not any(curator._charged._left.values())
    return outcome, target


def test_without_noise_it_finds_the_true_columns() -> None:
    """The four columns that decide the class are the four kept."""
    outcome, _ = fitted("logistic", 4)
    assert outcome.columns.tolist() == [0, 1, 2, 3]
    assert np.sign(outcome.values).tolist() == [1, -1, 1, -1]


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_the_dense_model_keeps_every_screened_column(loss: str) -> None:
    """Without a sparsity the descent's model is the model, and everything charged is asked."""
    outcome, _ = fitted(loss, None)
    assert len(outcome.columns) == 30
    assert outcome.centring is not None


def one_hot_table() -> tuple[np.ndarray, np.ndarray]:
    """Ten columns of four levels each, some of them telling of the class."""
    rng = np.random.default_rng(3)
    levels = rng.integers(0, 4, (20_000, 10)) * (rng.random((20_000, 10)) < 0.7)
    X = np.eye(4)[levels].reshape(20_000, 40)
    score = X @ rng.standard_normal(40) - 1.0
    return X, (rng.random(20_000) < 1 / (1 + np.exp(-score))).astype(float)


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 16.0, 64.0])
def test_steps_that_a_large_budget_allows_do_not_diverge_on_few_columns(epsilon: float) -> None:
    """A model of five columns of a one-hot table is never worse than a coin."""
    X, y = one_hot_table()
    request = FitRequest(
        sparsity=5,
        budget=Budget.from_request(epsilon, 1e-6, None, None),
        without_noise=True,
        dataset="toy",
        algorithm="dp-screen",
        declared=DeclaredFacts(n_features=40, index_base=0),
    )
    fit = LinearFit.of(request, [dense_block(X, y)], layout=Layout, source="toy")
    outcome = fit.run(lambda charge: None, lambda done: None)
    assert outcome.centring is not None
    z = X[:, outcome.columns] / np.sqrt(10.0) - outcome.centring.centre
    lengths = np.sqrt((z**2).sum(axis=1) + outcome.centring.constant**2)
    along = z @ outcome.values + outcome.intercept * outcome.centring.constant
    margins = outcome.offset + along / lengths
    assert np.mean(np.logaddexp(0.0, margins) - y * margins) < np.log(2.0)
