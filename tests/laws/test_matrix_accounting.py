"""What a completion asks is what was charged, and what was charged keeps the budget."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpfit.algorithms.complete_matrix import CompleteMatrix
from dpfit.algorithms.matrix_rule import MatrixScale, default_rule
from dpfit.fitting.matrix_plan import MatrixPlan, charge_ahead, plan_matrix
from dpfit.fitting.matrix_request import MatrixRequest
from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.charged_releases import ChargedReleases
from dpfit.privacy.mechanisms.noise import NoNoise
from dpfit.privacy.public_facts import Origin, PublicFact, PublicFacts
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.rating_curator import RatingCurator
from dpfit.privacy.user_sensitivity import UserGrid
from user_ratings import planted, records

RANGE = (1.0, 5.0)
LAWS = ("gaussian", "laplace", "huber")


def plan(
    n_users: int = 6000, n_items: int = 1000, budget: Budget | None = None, **asked: object
) -> tuple[MatrixRequest, MatrixPlan]:
    request = MatrixRequest(budget or Budget(epsilon=10.0, delta=1e-6), "it", RANGE, **asked)
    facts = PublicFacts(
        [
            PublicFact("users", n_users, Origin.DECLARED, "--n-users"),
            PublicFact("items", n_items, Origin.DECLARED, "--n-items"),
        ]
    )
    return request, plan_matrix(request, facts)


@pytest.mark.parametrize("noise", LAWS)
@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("epsilon", [0.5, 5.0, 20.0])
@pytest.mark.parametrize("n_users", [300, 6000, 1_000_000])
def test_the_whole_costs_at_most_the_budget_and_uses_it(
    noise: str, adjacency: Adjacency, epsilon: float, n_users: int
) -> None:
    """The exact sum over all events, with factors or without, certifies the epsilon asked for."""
    budget = Budget(epsilon=epsilon, delta=1e-6)
    _, made = plan(n_users, budget=budget, noise=noise, adjacency=adjacency)
    cost = compose(made.events, adjacency)
    certified = cost.epsilon(1e-6)
    assert certified <= epsilon
    if noise == "gaussian":
        assert certified >= 0.995 * epsilon
        assert cost.gaussian is not None
        assert cost.gaussian <= budget.squared_mu
    else:
        assert cost.rho is not None
        assert 0.99 * budget.total_rho <= cost.rho <= budget.total_rho


@pytest.mark.parametrize(("noise", "knee"), [("laplace", None), ("huber", None), ("huber", 2.0)])
@pytest.mark.parametrize("rank", [0, 2])
def test_a_pure_budget_is_kept_exactly(noise: str, knee: float | None, rank: int) -> None:
    """Without delta the epsilons of all releases add up to at most the budget."""
    budget = Budget(epsilon=8.0)
    _, made = plan(5000, 100, budget, noise=noise, huber_knee=knee, rank=rank)
    cost = compose(made.events, Adjacency.ADD_REMOVE)
    assert cost.pure is not None
    assert 0.99 * 8 <= cost.pure <= 8
    assert cost.epsilon(0.0) <= 8.0


@pytest.mark.parametrize("noise", LAWS)
def test_replacing_costs_less_than_twice_removing(noise: str) -> None:
    """A plan for add-remove costs two to four times the zCDP under replace-one."""
    _, made = plan(noise=noise)
    removed, replaced = (compose(made.events, adjacency).rho for adjacency in Adjacency)
    assert removed is not None
    assert replaced is not None
    low, high = sorted((removed, replaced))
    assert 2 * low <= high <= 4 * low


@pytest.mark.parametrize("noise", LAWS)
@pytest.mark.parametrize("delta", [1e-6, None])
def test_the_charge_ahead_is_close_to_the_charge(noise: str, delta: float | None) -> None:
    """Before the data are read it is known to half a per cent."""
    if delta is None and noise == "gaussian":
        return
    request, made = plan(5000, 100, Budget(epsilon=4.0, delta=delta), noise=noise)
    ahead, exact = (compose(e, Adjacency.ADD_REMOVE) for e in (charge_ahead(request), made.events))
    one, two = (cost.epsilon(delta or 0.0) for cost in (ahead, exact))
    assert one <= 4.0
    assert one == pytest.approx(two, rel=5e-3)


@pytest.mark.parametrize("rank", [0, 1, 8])
def test_parts_sum_to_one(rank: int) -> None:
    """Exactly, with factors or without."""
    rule = default_rule(MatrixScale(6000, 1000, RANGE, 1.8), huber=False)
    settings = replace(rule, rank=rank, sweeps=7 if rank else 0)
    assert sum(one.budget_part for one in settings.planned()) == Fraction(1)


def test_a_thousand_sweeps_are_planned_at_once() -> None:
    """The parts of ever larger sweeps stay numbers of few digits, and still sum to one."""
    rule = default_rule(MatrixScale(6000, 1000, RANGE, 1.8), huber=False)
    parts = [one.budget_part for one in replace(rule, rank=1, sweeps=1000).planned()]
    assert sum(parts) == 1
    assert max(part.denominator.bit_length() for part in parts) < 4000


class _Counting(NoNoise):
    """No noise; counts how many vectors were drawn."""

    drawn = 0

    def integers(self, scale_bits: int, size: int, step: int) -> np.ndarray:
        self.drawn += 1
        return super().integers(scale_bits, size, step)


def curator(made: MatrixPlan, noise: NoNoise, n_users: int, n_items: int) -> RatingCurator:
    ratings, _ = planted(n_users, n_items, 2, 0.3, 0.4)
    return RatingCurator(
        ratings=records(ratings, (n_users, n_items), RANGE),
        grid=made.grid,
        value_range=RANGE,
        releases=made.releases,
        noise=noise,
    )


@pytest.mark.parametrize(("rank", "sweeps"), [(0, None), (2, 1), (2, 5)])
def test_it_asks_exactly_what_was_charged(rank: int, sweeps: int | None) -> None:
    """Every charged release is used up, and each asks for noise once."""
    _, made = plan(400, 30, rank=rank, sweeps=sweeps)
    noise = _Counting()
    door = curator(made, noise, 400, 30)
    made.algorithm.run(door, lambda _: None)
    assert noise.drawn == sum(one.count for one in made.releases)
    assert not any(door._charged._left.values())


@pytest.mark.parametrize(("noise", "knee"), [("laplace", None), ("huber", 2.0), ("huber", 1.5)])
def test_the_noise_is_of_the_law_that_was_charged(noise: str, knee: float | None) -> None:
    """Drawn at the scale, and with the knee, that stand in the event."""
    _, made = plan(400, 30, rank=1, sweeps=2, noise=noise, huber_knee=knee)
    drawn: list[tuple[float | None, int]] = []

    class Watched(NoNoise):
        def laplace(self, scale_bits: int, size: int, step: int) -> np.ndarray:
            drawn.append((None, scale_bits))
            return super().laplace(scale_bits, size, step)

        def huber(self, knee: Fraction, scale_bits: int, size: int, step: int) -> np.ndarray:
            drawn.append((float(knee), scale_bits))
            return super().huber(knee, scale_bits, size, step)

    made.algorithm.run(curator(made, Watched(), 400, 30), lambda _: None)
    charged = [
        (float(one.knee) if noise == "huber" else None, one.scale.bit_length() - 1)
        for one in made.events
        for _ in range(one.count)
    ]
    assert sorted(drawn, key=str) == sorted(charged, key=str)


@pytest.mark.parametrize("label", ["item sums", "factor sums, sweep 2", "factor moments"])
def test_one_release_more_than_charged_is_refused(label: str) -> None:
    """A sweep that was not charged is a fault in the algorithm, not a release."""
    _, made = plan(400, 30, rank=2, sweeps=3)
    fewer = [replace(one, count=one.count - 1) for one in made.releases if one.label == label]
    others = [one for one in made.releases if one.label != label]
    short = replace(made, releases=others + [one for one in fewer if one.count])
    door = curator(short, NoNoise(), 400, 30)
    with pytest.raises((RuntimeError, KeyError)):
        made.algorithm.run(door, lambda _: None)


def test_a_release_answers_its_own_question_only() -> None:
    """Sums of residuals cannot be had on the charge of counts."""
    _, made = plan(400, 30)
    door = curator(made, NoNoise(), 400, 30)
    with pytest.raises(RuntimeError, match="not charged"):
        door._charged.take_sum("item counts", Quantity.ITEM_SUMS)


@pytest.mark.parametrize("n_users", [1, 2, 943, 10**6, 2**31 - 1])
@pytest.mark.parametrize("rank", [0, 8, 64])
def test_sums_fit_a_word(n_users: int, rank: int) -> None:
    """Users times the largest integer that one of them adds stays below 2^62."""
    grid = UserGrid(n_users, 1000, rank)
    factor = {Quantity.FACTOR_SUMS: grid.factor_norm, Quantity.FACTOR_MOMENTS: grid.factor_norm**2}
    for quantity in (
        Quantity.USER_MEANS,
        Quantity.ITEM_COUNTS,
        Quantity.ITEM_SUMS,
        Quantity.FACTOR_SUMS,
        Quantity.FACTOR_MOMENTS,
    ):
        bits = grid.unit_bits(quantity)
        assert bits >= 9
        assert n_users * factor.get(quantity, 1) << bits <= 2**62


def test_the_settings_are_for_the_ledger() -> None:
    """They say whether the run fell back to the biases."""
    _, with_factors = plan(6000, 1000)
    _, without = plan(300, 1000, Budget(epsilon=1.0, delta=1e-6))
    assert not with_factors.falls_back
    assert without.falls_back
    assert "sweeps" not in without.algorithm.settings()
    assert isinstance(without.algorithm, CompleteMatrix)
    assert ChargedReleases(without.releases, NoNoise()).noise_multiplier("item sums") > 0.0
    assert sum(without.shares.values()) == pytest.approx(1.0)
