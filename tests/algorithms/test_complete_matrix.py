"""Matrix completion: what it finds, and when it falls back."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from dpfit.algorithms.factor_outcome import FactorOutcome, Standardised
from dpfit.algorithms.factor_sweeps import public_start, shrunk_factors, worthwhile
from dpfit.algorithms.matrix_rule import MatrixScale, default_rule
from dpfit.algorithms.shrinkage import curve, prior_variance
from dpfit.data.ratings_by_user import RatingsByUser
from dpfit.fitting.matrix_fit import MatrixFit
from dpfit.fitting.matrix_request import MatrixRequest
from dpfit.fitting.user_solve import UserSolver
from dpfit.privacy.calibration import Budget
from dpfit.privacy.mechanisms.noise import NoNoise
from dpfit.privacy.rating_curator import RatingCurator
from user_ratings import Triplets, matrix_fit, planted, records

RANGE = (1.0, 5.0)
SHAPE = (3000, 60)
NOISE = 0.4


@cache
def data() -> tuple[Triplets, NDArray[np.float64]]:
    return planted(*SHAPE, 2, NOISE, 0.5)


def fitted(budget: Budget | None = None, **asked: object) -> tuple[MatrixFit, FactorOutcome]:
    request = MatrixRequest(
        budget, "planted", RANGE, without_noise=budget is None, seed=11, **asked
    )
    run = matrix_fit(request, data()[0], SHAPE)
    return run, run.run(lambda _: None, lambda _: None)


def error(outcome: FactorOutcome) -> float:
    """Root mean square distance to the truth over all pairs that were not rated."""
    solver = UserSolver(outcome)
    predicted = np.clip(
        solver.predict_all(solver.coefficients(data()[0].by_user(SHAPE[0]))), *RANGE
    )
    truth = np.clip(data()[1], *RANGE)
    hidden = np.ones(SHAPE, np.bool_)
    hidden[data()[0].user, data()[0].item] = False
    return float(np.sqrt(np.mean((predicted - truth)[hidden] ** 2)))


def test_a_planted_matrix_is_recovered() -> None:
    """Far below the noise of the ratings, .4, with noise too; biases alone miss the factors."""
    plain = error(fitted()[1])
    private = error(fitted(Budget(epsilon=5.0, delta=1e-6))[1])
    alone = error(fitted(Budget(epsilon=5.0, delta=1e-6), rank=0)[1])
    assert plain < 0.2
    assert private < 0.22
    assert alone > 0.45


@pytest.mark.parametrize("noise", ["laplace", "huber"])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_other_noise_and_loss_recover_it_too(noise: str, loss: str) -> None:
    """All laws and both losses, at a budget where all should."""
    outcome = fitted(Budget(epsilon=20.0, delta=1e-6), noise=noise, loss=loss)[1]
    assert error(outcome) < 0.3
    assert (outcome.huber_threshold is None) == (loss == "squared")


@pytest.mark.parametrize("noise", ["laplace", "huber"])
def test_pure_epsilon_finds_the_biases(noise: str) -> None:
    """With few items and many users no delta is needed."""
    run, outcome = fitted(Budget(epsilon=10.0), noise=noise)
    assert run.plan.falls_back
    assert error(outcome) < 0.6


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_the_private_algorithm_without_noise_is_the_original(loss: str) -> None:
    """To the last bit, with the releases of the private plan and noise zero."""
    budget = Budget(epsilon=5.0, delta=1e-6)
    private, _ = fitted(budget, loss=loss)
    door = RatingCurator(
        ratings=records(data()[0], SHAPE),
        grid=private.plan.grid,
        value_range=RANGE,
        releases=private.plan.releases,
        noise=NoNoise(),
    )
    one = private.plan.algorithm.run(door, lambda _: None)
    name = {"squared": "als", "huber": "irls"}[loss]
    request = MatrixRequest(budget, "planted", RANGE, algorithm=name, without_noise=True)
    original = matrix_fit(request, data()[0], SHAPE)
    other = original.run(lambda _: None, lambda _: None)
    for field in ("item_factors", "item_bias", "item_count"):
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field))
    assert one.noise_variance == other.noise_variance
    assert one.rank > 0


def test_users_and_items_may_stand_in_any_order() -> None:
    """Released sums do not depend on the order of users: the same bits."""
    ratings, _ = data()
    order = np.random.default_rng(0).permutation(SHAPE[0])
    shuffled = Triplets(order[ratings.user], ratings.item, ratings.value)
    outcomes = []
    for block in (ratings, shuffled):
        request = MatrixRequest(Budget(epsilon=5.0, delta=1e-6), "planted", RANGE, seed=3, sweeps=2)
        run = matrix_fit(request, block, SHAPE)
        outcomes.append(run.run(lambda _: None, lambda _: None))
    np.testing.assert_array_equal(outcomes[0].item_factors, outcomes[1].item_factors)
    np.testing.assert_array_equal(outcomes[0].item_bias, outcomes[1].item_bias)


@pytest.mark.parametrize("scale", [2.0**-50, 2.0**-20, 2.0**47])
@pytest.mark.parametrize("private", [True, False])
def test_the_unit_of_a_rating_is_of_no_account(scale: float, private: bool) -> None:
    """Ratings in other units give the same result in those units, from 1e-15 to 1e15."""
    ratings, outcomes = data()[0], []
    for unit in (1.0, scale):
        request = MatrixRequest(
            Budget(epsilon=5.0, delta=1e-6) if private else None,
            "planted",
            (1.0 * unit, 5.0 * unit),
            without_noise=not private,
            seed=11 if private else None,
            passes=2,
            sweeps=3,
        )
        block = replace(ratings, value=ratings.value * unit)
        outcomes.append(matrix_fit(request, block, SHAPE).run(lambda _: None, lambda _: None))
    one, other = outcomes
    assert one.rank == other.rank > 0
    np.testing.assert_allclose(other.item_bias, one.item_bias * scale, rtol=1e-6, atol=1e-6 * scale)
    np.testing.assert_allclose(other.noise_variance, one.noise_variance * scale**2)
    np.testing.assert_array_equal(other.item_count, one.item_count)


@pytest.mark.parametrize("value_range", [RANGE, (0.0, 1e-15), (1e6, 1e6 + 1.0)])
@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (1, 3)])
@pytest.mark.parametrize("noisy", [True, False])
def test_the_least_of_ratings_are_no_fault(
    value_range: tuple[float, float], shape: tuple[int, int], noisy: bool
) -> None:
    """After the charge nothing may fail: one user, one item, equal counts, ratings all equal."""
    users, items = np.divmod(np.arange(shape[0] * shape[1]), shape[1])
    block = Triplets(users, items, np.full(len(users), value_range[1]))
    request = MatrixRequest(
        Budget(epsilon=5.0, delta=1e-6) if noisy else None,
        "least",
        value_range,
        without_noise=not noisy,
        seed=1 if noisy else None,
        rank=2,
    )
    outcome = matrix_fit(request, block, shape).run(lambda _: None, lambda _: None)
    for numbers in (outcome.item_bias, outcome.item_factors, list(outcome.constants().values())):
        assert np.isfinite(numbers).all()


def test_progress_counts_passes_and_sweeps() -> None:
    """Before each and at the end."""
    seen: list[int] = []
    request = MatrixRequest(
        Budget(epsilon=5.0, delta=1e-6), "planted", RANGE, passes=2, sweeps=3, rank=1
    )
    run = matrix_fit(request, data()[0], SHAPE)
    run.run(lambda _: None, seen.append)
    assert seen == [0, 1, 2, 3, 4, 5]
    assert run.plan.algorithm.steps == 5


def test_without_factors_in_the_data_the_budget_goes_to_the_biases() -> None:
    """Sweeps that find nothing are given up halfway, unless the rank was asked for."""
    rng = np.random.default_rng(1)
    users, items = np.nonzero(rng.random(SHAPE) < 0.1)
    truth = 3.0 + rng.standard_normal(SHAPE[1]) * 0.5 + rng.standard_normal((SHAPE[0], 1)) * 0.5
    block = Triplets(users, items, truth[users, items] + rng.standard_normal(len(users)) * 0.5)

    def run(**asked: object) -> FactorOutcome:
        request = MatrixRequest(Budget(epsilon=1.0, delta=1e-6), "flat", RANGE, seed=5, **asked)
        fit = matrix_fit(request, block, SHAPE)
        assert fit.plan.falls_back == (asked.get("rank") == 0)
        return fit.run(lambda _: None, lambda _: None)

    def distance(outcome: FactorOutcome) -> float:
        bias = outcome.global_mean + outcome.item_bias - truth.mean(axis=0)
        return float(np.sqrt(np.mean(bias**2)))

    by_rule, biases, kept = run(), run(rank=0), run(rank=2)
    assert by_rule.rank == biases.rank == 0
    assert distance(by_rule) < 1.5 * distance(biases)
    assert distance(by_rule) < distance(kept) + 0.01


# --- the rule ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "mu", "rank", "share"),
    [
        ((6040, 3449), 0.4483, 0, 1.0),
        ((6040, 3449), 1.0204, 7, 0.34),
        ((943, 1682), 1.8481, 3, 0.58),
        ((5000, 100), 0.2367, 3, 0.15),
        ((2999, 3000), 3.2354, 8, 0.19),
    ],
)
def test_the_rule_is_the_measured_one(
    shape: tuple[int, int], mu: float, rank: int, share: float
) -> None:
    """Rank and share of the biases as in the table of the study, for its public sizes."""
    chosen = default_rule(MatrixScale(*shape, RANGE, mu), huber=False)
    assert chosen.rank == rank
    assert chosen.has_factors == (rank > 0)
    if rank:
        assert chosen.bias_share == pytest.approx(share, abs=0.006)


def test_factors_lost_in_noise_are_dropped() -> None:
    """Where no direction of the users stands clear, there is a model of biases."""
    request = MatrixRequest(Budget(epsilon=0.01, delta=1e-6), "planted", RANGE, rank=3, sweeps=2)
    few = Triplets(*(part[:40] for part in (data()[0].user, data()[0].item, data()[0].value)))
    run = matrix_fit(request, few, SHAPE)
    outcome = run.run(lambda _: None, lambda _: None)
    assert np.isfinite(outcome.item_bias).all()
    assert np.isfinite(outcome.item_factors).all()
    assert outcome.rank <= 3


# --- its parts -----------------------------------------------------------------------------


def test_prior_variance_is_found() -> None:
    """From estimates with known noise, to a few per cent."""
    rng = np.random.default_rng(2)
    variance = rng.uniform(0.1, 2.0, (20_000, 2))
    truth = rng.standard_normal(variance.shape) * [0.5, 2.0]
    seen = truth + rng.standard_normal(variance.shape) * np.sqrt(variance)
    found = prior_variance(seen, variance, np.ones(2), 1e-9)
    np.testing.assert_allclose(found, [0.25, 4.0], rtol=0.1)


def test_pure_noise_is_shrunk_away() -> None:
    """A direction without signal goes to zero, one with signal stays."""
    rng = np.random.default_rng(2)
    variance = np.ones((2000, 2))
    seen = rng.standard_normal(variance.shape) * [1.0, 3.0]
    shrunk, signal = shrunk_factors(seen, variance, 1.0, early=False)
    assert signal == pytest.approx(8.0, rel=0.1)
    assert worthwhile(signal)
    assert not worthwhile(shrunk_factors(seen[:, :1], variance[:, :1], 1.0, early=False)[1])
    early, _ = shrunk_factors(seen[:, :1], variance[:, :1], 1.0, early=True)
    assert np.abs(early).max() > 0.0
    assert np.abs(shrunk[:, 0]).max() < 0.5
    np.testing.assert_allclose(shrunk[:, 1], seen[:, 1] * 8 / 9, rtol=0.05)


def test_a_curve_is_fitted() -> None:
    """A quadratic comes back as it is."""
    x = np.linspace(0.0, 1.0, 50)
    basis = np.stack([x**0, x, x**2], axis=1)
    np.testing.assert_allclose(curve(basis, 3 - x + 2 * x**2, 1 + x), 3 - x + 2 * x**2, atol=1e-5)


def test_the_start_is_public_and_spread() -> None:
    """The same signs in every run, as many of one kind as of the other, columns unrelated."""
    start = public_start(2000, 4, 10.0)
    np.testing.assert_array_equal(start, public_start(2000, 4, 10.0))
    np.testing.assert_allclose(start**2, 1.0)
    assert np.abs(start.T @ start / 2000 - np.eye(4)).max() < 0.1


def test_features_are_standardised() -> None:
    """Weighted mean zero, weighted deviation as asked."""
    rng = np.random.default_rng(0)
    values, weights = rng.standard_normal(100), rng.uniform(1, 5, 100)
    feature = Standardised.over(values, weights, 0.3).of(values)
    assert np.average(feature, weights=weights) == pytest.approx(0.0, abs=1e-12)
    assert np.average(feature**2, weights=weights) == pytest.approx(0.09)


def test_what_is_the_same_for_all_items_is_no_feature() -> None:
    """A standard deviation of rounding errors is none."""
    same = np.full(7, 1.0 / 3.0)
    for values in (same, np.zeros(7)):
        feature = Standardised.over(values, np.arange(1.0, 8.0), 0.3)
        np.testing.assert_array_equal(feature.of(values), 0.0)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_an_outcome_comes_back_from_its_constants(loss: str) -> None:
    """The arrays, a few numbers and the range say all; both ways of predicting agree."""
    _, outcome = fitted(Budget(epsilon=5.0, delta=1e-6), loss=loss)
    again = FactorOutcome.of_constants(
        outcome.constants(),
        factors=outcome.item_factors,
        bias=outcome.item_bias,
        count=outcome.item_count,
        global_mean=outcome.global_mean,
        value_range=outcome.value_range,
    )
    one, two = UserSolver(outcome), UserSolver(again)
    coefficients = one.coefficients(data()[0].by_user(SHAPE[0]))
    np.testing.assert_array_equal(coefficients, two.coefficients(data()[0].by_user(SHAPE[0])))
    users, items = np.divmod(np.arange(500), SHAPE[1])
    pairs = one.predict(coefficients, users, items)
    table = np.clip(one.predict_all(coefficients[: users.max() + 1]), *RANGE)
    np.testing.assert_allclose(pairs, table[users, items])


def test_a_user_without_ratings_gets_the_released_means() -> None:
    """Prediction is the global mean and the item's bias, inside the range."""
    _, outcome = fitted(Budget(epsilon=5.0, delta=1e-6))
    solver = UserSolver(outcome)
    empty = RatingsByUser(0, np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(0))
    coefficients = solver.coefficients(empty)
    items = np.arange(SHAPE[1])
    expected = np.clip(outcome.global_mean + outcome.item_bias, *RANGE)
    np.testing.assert_array_equal(solver.predict(coefficients, items * 0, items), expected)
    wild = replace(outcome, item_bias=outcome.item_bias + 100.0)
    assert (UserSolver(wild).predict(coefficients, items * 0, items) == RANGE[1]).all()
