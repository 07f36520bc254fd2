"""Requests that are refused, the order of charge and key, and the ledger's words."""

from __future__ import annotations

import numpy as np
import pytest

from dpfit.errors import DataError, PrivacyError, UsageError
from dpfit.fitting.matrix_fit import MatrixFit
from dpfit.fitting.matrix_request import MatrixRequest
from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.events import NonPrivateEvent, event_from_json
from user_ratings import Triplets, matrix_fit, planted, triplets

BUDGET = Budget(epsilon=5.0, delta=1e-6)
RANGE = (1.0, 5.0)
SHAPE = (300, 40)


def request(budget: Budget | None = BUDGET, **asked: object) -> MatrixRequest:
    return MatrixRequest(budget, "films", asked.pop("value_range", RANGE), **asked)  # type: ignore[arg-type]


def made(asked: MatrixRequest, shape: tuple[int, int] = SHAPE) -> MatrixFit:
    ratings, _ = planted(*SHAPE, 2, 0.3, 0.4)
    return matrix_fit(asked, ratings, shape)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"algorithm": "svd"}, "not known"),
        ({"noise": "uniform"}, "not known"),
        ({"loss": "absolute"}, "not known"),
        ({"algorithm": "als"}, "original without noise"),
        ({"algorithm": "als", "without_noise": True, "loss": "huber"}, "has --loss squared"),
        ({"algorithm": "irls", "without_noise": True, "loss": "squared"}, "has --loss huber"),
        ({"budget": None}, "no privacy budget"),
        ({"budget": Budget(epsilon=1.0)}, "needs --delta"),
        ({"budget": Budget(mu=1.0), "noise": "laplace"}, "budget in mu"),
        ({"huber_knee": 2.0}, "belongs to --noise huber"),
        ({"noise": "huber", "huber_knee": 2.01}, "multiple"),
        ({"noise": "huber", "huber_knee": 0.5}, "between 1 and 4"),
        ({"huber_threshold": 1.0}, "belongs to --loss huber"),
        ({"loss": "huber", "huber_threshold": 5.0}, "out of proportion"),
        ({"value_range": (5.0, 1.0)}, "--range"),
        ({"value_range": (0.0, np.inf)}, "--range"),
        ({"value_range": (np.nan, 5.0)}, "--range"),
        ({"value_range": (0.0, 1e-16)}, "length of --range"),
        ({"value_range": (-1e15, 1e15)}, "length of --range"),
        ({"rank": -1}, "--rank"),
        ({"rank": 65}, "--rank"),
        ({"sweeps": 0}, "--sweeps"),
        ({"passes": 0}, "--passes"),
        ({"max_per_user": 0.5}, "--max-per-user"),
        ({"n_users": 0}, "--n-users"),
    ],
)
def test_nonsense_is_refused(asked: dict[str, object], message: str) -> None:
    """Before anything is read, in words of the options."""
    with pytest.raises(UsageError, match=message):
        request(**asked)


def test_pure_epsilon_for_many_items_is_refused_with_numbers() -> None:
    """It says how far off it is."""
    with pytest.raises(PrivacyError, match=r"\d+ times .* 300 users of 40 items"):
        made(request(Budget(epsilon=0.01), noise="laplace"))


def test_the_charge_is_reserved_before_the_key_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the reservation fails, no noise was ever made."""
    born: list[object] = []
    monkeypatch.setattr("dpfit.fitting.matrix_fit.noise_of", lambda **options: born.append(options))
    run = made(request())

    def refuse(_: object) -> None:
        raise PrivacyError("beyond the cap")

    with pytest.raises(PrivacyError, match="cap"):
        run.run(refuse, lambda _: None)
    assert not born


def test_the_ledger_says_what_a_record_is() -> None:
    """A user; and every event can be read back and costs what the plan costs."""
    run = made(request(noise="huber", loss="huber"))
    told = run.description()
    assert told["record"] == "user"
    assert told["noise"] == told["loss"] == "huber"
    events = [event_from_json(one.to_json()) for one in run.plan.events]
    assert compose(events, Adjacency.ADD_REMOVE).epsilon(1e-6) <= 5.0


@pytest.mark.parametrize("asked", [{"seed": 1}, {"without_noise": True}])
def test_runs_that_do_not_protect_are_marked(asked: dict[str, object]) -> None:
    """By events that cost everything."""
    run = made(request(**asked))
    assert all(isinstance(one, NonPrivateEvent) for one in run.plan.events)
    assert compose(run.plan.events, Adjacency.ADD_REMOVE).infinite
    assert run.description()["private"] is False


def test_two_runs_have_different_noise_and_a_seed_repeats_it() -> None:
    """The key is fresh unless a seed is given."""
    outcomes = [
        made(request(seed=seed)).run(lambda _: None, lambda _: None).item_bias
        for seed in (None, None, 4, 4)
    ]
    assert not np.array_equal(outcomes[0], outcomes[1])
    np.testing.assert_array_equal(outcomes[2], outcomes[3])


def test_public_numbers_are_declared_or_assumed() -> None:
    """Declared ones may be larger than what is found, not smaller; strict runs assume nothing."""
    facts = made(request(n_users=500, n_items=50)).plan.facts
    assert facts.integer("users") == 500
    assert not facts.assumed()
    assert {fact.name for fact in made(request()).plan.facts.assumed()} == {"users", "items"}
    with pytest.raises(DataError, match="more users than declared"):
        made(request(n_users=299))
    with pytest.raises(PrivacyError, match="--strict"):
        made(request(strict=True))
    with pytest.raises(DataError, match="no ratings"):
        matrix_fit(request(), triplets([]), (0, 0))


def test_what_is_asked_stands_in_the_plan() -> None:
    """Settings in place of the rule's; rank against the rule's advice gets sweeps."""
    plan = made(request(rank=2, passes=3, max_per_user=7.0)).plan
    assert plan.algorithm.rank == 2
    assert plan.algorithm.passes == 3
    assert plan.algorithm.max_per_user == 7.0
    assert made(request(Budget(epsilon=0.1, delta=1e-6))).plan.falls_back
    assert not made(request(Budget(epsilon=0.1, delta=1e-6), rank=2)).plan.falls_back
    assert made(request(rank=0)).plan.falls_back
    assert made(request(loss="huber", huber_threshold=0.5)).plan.algorithm.residual_clip == 0.5


def test_one_user_and_one_item() -> None:
    """The smallest matrix there is."""
    one = Triplets(np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([4.0]))
    run = matrix_fit(request(rank=1), one, (1, 1))
    outcome = run.run(lambda _: None, lambda _: None)
    assert np.isfinite(outcome.item_bias).all()
