"""One user, with all ratings, moves every released sum by no more than was charged: brute force."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.charged_releases import ChargedReleases
from dpfit.privacy.local_model import LocalModel
from dpfit.privacy.mechanisms.noise import NoNoise
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.rating_curator import RatingCurator, ResidualBounds
from dpfit.privacy.user_release import NoiseLaw, UserNoise, plan_user_release
from dpfit.privacy.user_sensitivity import UserGrid
from user_ratings import collected

N_ITEMS = 6
RANK = 2
N_USERS = 4
GRID = UserGrid(N_USERS, N_ITEMS, RANK)
RANGE = (1.0, 5.0)
BOUNDS = ResidualBounds(np.array([1.0, 0.5, 2.0, 1.0, 0.3, 1.5]), most=2.0, clip=2.0, norm=0.7)
BASIS = np.array([[0.6, -0.8], [0.8, 0.6]])
VALUES = st.one_of(st.floats(0.0, 6.0), st.sampled_from([1.0, 5.0, 3.0, -1e308, 1e308]))
USERS = st.dictionaries(st.integers(0, N_ITEMS - 1), VALUES, max_size=N_ITEMS)
CROWDS = st.lists(USERS, min_size=N_USERS - 1, max_size=N_USERS - 1)


def local_model(size: float = 1.0, threshold: float | None = None) -> LocalModel:
    rng = np.random.default_rng(0)
    features = np.hstack([np.ones((N_ITEMS, 1)), size * rng.standard_normal((N_ITEMS, RANK))])
    return LocalModel(
        3.0 + rng.standard_normal(N_ITEMS), features, np.array([6.0, 0.3, 0.3]), RANK, threshold
    )


MODELS = {
    "plain": local_model(),
    "huge factors": local_model(1e6),
    "no factors": local_model(0.0),
    "huber": local_model(1.0, 1.0),
}


def after_solving(ask: Callable[[RatingCurator], object]) -> Callable:
    def asked(door: RatingCurator, model: LocalModel) -> object:
        door.solve_users(model)
        return ask(door)

    return asked


QUESTIONS: dict[str, tuple[Quantity, Callable]] = {
    "global mean": (Quantity.USER_MEANS, lambda door, _: door.global_mean("it")),
    "residual variance": (
        Quantity.USER_SHARES,
        lambda door, model: door.residual_variance("it", model, cap=2.0),
    ),
    "item counts": (Quantity.ITEM_COUNTS, lambda door, _: door.item_counts("it", BOUNDS)),
    "item sums": (
        Quantity.ITEM_SUMS,
        lambda door, model: door.residual_sums("it", model, BOUNDS),
    ),
    "factor lengths": (
        Quantity.USER_SHARES,
        after_solving(lambda door: door.factor_length("it", cap=1.4)),
    ),
    "factor directions": (
        Quantity.FACTOR_MOMENTS,
        after_solving(lambda door: door.factor_directions("it")),
    ),
    "factor moments": (
        Quantity.FACTOR_MOMENTS,
        after_solving(lambda door: door.factor_moments("it", BASIS, 0.5, BOUNDS)),
    ),
    "factor sums": (
        Quantity.FACTOR_SUMS,
        after_solving(lambda door: door.factor_sums("it", BASIS, 0.5, BOUNDS)),
    ),
    "factor sums without factors": (
        Quantity.FACTOR_SUMS,
        after_solving(lambda door: door.factor_sums("it", BASIS[:, :0], 1.0, BOUNDS)),
    ),
}


def release_of(quantity: Quantity, law: NoiseLaw = NoiseLaw.LAPLACE, grid: UserGrid = GRID):
    planned = PlannedRelease("it", quantity, 1, Fraction(1))
    return plan_user_release(
        planned, grid, UserNoise(law), share=Fraction(1), adjacency=Adjacency.ADD_REMOVE
    )


def sums_of(name: str, users: list, model: LocalModel, grid: UserGrid = GRID) -> list[int]:
    """The integers that noise would be added to."""
    quantity, ask = QUESTIONS[name]
    seen: list[int] = []

    def spy(self: ChargedReleases, release: object, sums: np.ndarray) -> np.ndarray:
        seen.extend(int(v) for v in sums.ravel())
        return sums

    door = RatingCurator(
        ratings=collected(users, grid.n_items, RANGE),
        grid=grid,
        value_range=RANGE,
        releases=[release_of(quantity, grid=grid)],
        noise=NoNoise(),
    )
    with patch.object(ChargedReleases, "noisy", spy):
        ask(door, model)
    return seen


def check(name: str, left: list, right: list, adjacency: Adjacency, model: LocalModel) -> None:
    event = release_of(QUESTIONS[name][0]).event()
    pairs = zip(sums_of(name, left, model), sums_of(name, right, model), strict=True)
    moves = [abs(a - b) for a, b in pairs]
    assert sum(moves) <= event.l1_sensitivity.under(adjacency)
    assert sum(move**2 for move in moves) <= event.squared_sensitivity.under(adjacency)


@pytest.mark.parametrize("name", QUESTIONS)
@settings(max_examples=60, deadline=None)
@given(CROWDS, USERS, USERS, st.sampled_from(sorted(MODELS)))
def test_a_user_moves_a_sum_within_the_charge(
    name: str, others: list, one: dict, other: dict, model: str
) -> None:
    """Neither norm of the move exceeds its charge, whether the user is left out or replaced."""
    here = [*others[:1], one, *others[1:]]
    there = [*others[:1], other, *others[1:]]
    check(name, here, others, Adjacency.ADD_REMOVE, MODELS[model])
    check(name, here, there, Adjacency.REPLACE_ONE, MODELS[model])


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("value", [5.0, 1.0, "alternating"])
def test_a_user_with_thousands_of_ratings_moves_it_within_the_charge(
    name: str, value: float | str
) -> None:
    """The cap is on all that a user rated, and all of it counts."""
    n_items = 5000
    grid = UserGrid(2, n_items, RANK)
    rng = np.random.default_rng(1)
    features = np.hstack([np.ones((n_items, 1)), rng.standard_normal((n_items, RANK))])
    model = LocalModel(np.full(n_items, 3.0), features, np.array([6.0, 0.3, 0.3]), RANK)
    rated = {j: (1.0 + 4.0 * (j % 2)) if value == "alternating" else value for j in range(n_items)}
    bounds = ResidualBounds(np.ones(n_items), most=20.0, clip=2.0, norm=0.7)
    quantity = QUESTIONS[name][0]
    with patch(f"{__name__}.BOUNDS", bounds):
        moved = np.array(sums_of(name, [rated, {}], model, grid), dtype=object)
    event = release_of(quantity, grid=grid).event()
    assert sum(moved**2) <= event.squared_sensitivity.add_remove
    if name == "item counts" or (name, value) == ("item sums", "alternating"):
        assert sum(moved**2) > 0.2 * event.squared_sensitivity.add_remove


@pytest.mark.parametrize(
    "name",
    ["global mean", "item counts", "item sums", "factor sums", "factor sums without factors"],
)
def test_the_charge_is_attained(name: str) -> None:
    """Some pair of users comes close to it under replace-one: nothing is charged for nothing."""
    one = {0: 5.0, 1: 5.0, 2: 5.0, 3: 5.0, 5: 5.0}
    other = {j: 1.0 for j in one}
    if name == "item counts":
        one, other = {0: 5.0, 1: 5.0, 3: 1.0}, {2: 5.0, 5: 5.0}
    model = LocalModel(
        np.full(N_ITEMS, 3.0),
        np.hstack([np.ones((N_ITEMS, 1)), np.full((N_ITEMS, RANK), 0.01)]),
        np.full(3, 1e6),
        RANK,
    )
    bounds = ResidualBounds(np.ones(N_ITEMS), most=2.0, clip=2.0, norm=0.7)
    with patch(f"{__name__}.BOUNDS", bounds):
        left, right = (sums_of(name, [user], model) for user in (one, other))
    moved = sum((a - b) ** 2 for a, b in zip(left, right, strict=True))
    event = release_of(QUESTIONS[name][0]).event()
    # The factors of opposite users are opposite too: only their constants' part adds up.
    share = 0.199 if name == "factor sums" else 0.999
    assert moved >= share * event.squared_sensitivity.replace_one


def test_a_user_without_ratings_adds_nothing() -> None:
    """Zero-out semantics: an empty user is as good as none."""
    full = {0: 5.0, 2: 1.0}
    for name in QUESTIONS:
        model = MODELS["plain"]
        assert sums_of(name, [full], model) == sums_of(name, [full, {}], model), name
