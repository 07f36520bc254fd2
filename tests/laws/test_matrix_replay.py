"""What a completion asks and publishes is a function of what was released before."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

from dpfit.algorithms.factor_outcome import FactorOutcome
from dpfit.fitting.matrix_request import MatrixRequest
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.charged_releases import ChargedReleases, SumRelease
from user_ratings import matrix_fit, triplets

SHAPE = (12, 7)
RANGE = (1.0, 5.0)
Users = list[dict[int, float]]
Said = tuple[str, NDArray[np.int64], NDArray[np.int64]]


def crowd(rng: np.random.Generator) -> Users:
    """Users who rated some, all or none, with values inside the range, at its ends and beyond."""
    users: Users = []
    for rated in rng.integers(0, SHAPE[1] + 1, SHAPE[0]):
        values = rng.choice([1.0, 5.0, 3.3, -1e308, 1e308], rated)
        items = rng.permutation(SHAPE[1])[:rated]
        users.append(dict(zip(items.tolist(), values.tolist(), strict=True)))
    return users


def recorded(request: MatrixRequest, users: Users) -> tuple[FactorOutcome, list[Said]]:
    """A run, and the label, the sums and the released sums of each of its questions."""
    said: list[Said] = []
    add_noise = ChargedReleases.noisy

    def noisy(self: ChargedReleases, release: SumRelease, sums: NDArray) -> NDArray:
        released = add_noise(self, release, sums)
        said.append((release.label, sums.copy(), released.copy()))
        return released

    with patch.object(ChargedReleases, "noisy", noisy):
        run = matrix_fit(request, triplets(users), SHAPE)
        return run.run(lambda _: None, lambda _: None), said


def replayed(
    request: MatrixRequest, users: Users, said: list[Said]
) -> tuple[FactorOutcome, list[Said]]:
    """A run on other users that is told what the recorded one was told."""
    asked: list[Said] = []

    def noisy(self: ChargedReleases, release: SumRelease, sums: NDArray) -> NDArray:
        released = said[len(asked)][2].copy()
        asked.append((release.label, sums.copy(), released))
        return released.copy()

    with patch.object(ChargedReleases, "noisy", noisy):
        run = matrix_fit(request, triplets(users), SHAPE)
        return run.run(lambda _: None, lambda _: None), asked


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("epsilon", [1.0, 1000.0])
@pytest.mark.parametrize("seed", range(6))
def test_a_run_is_a_function_of_what_was_released(loss: str, epsilon: float, seed: int) -> None:
    """Without one user, or with another, the same answers lead to the same questions and outcome.

    Every sum moves by what was charged at most; sweeps that are given up leave the plan as it was.
    """
    rng = np.random.default_rng(seed)
    users, place = crowd(rng), int(rng.integers(SHAPE[0]))
    request = MatrixRequest(
        Budget(epsilon=epsilon, delta=1e-6),
        "crowd",
        RANGE,
        n_users=SHAPE[0],
        n_items=SHAPE[1],
        noise="laplace",
        loss=loss,
        rank=2,
        sweeps=3,
        passes=2,
        seed=seed,
    )
    outcome, said = recorded(request, users)
    plan = matrix_fit(request, triplets(users), SHAPE).plan
    charged = {release.label: release.event() for release in plan.releases}
    others = {
        Adjacency.ADD_REMOVE: [*users[:place], {}, *users[place + 1 :]],
        Adjacency.REPLACE_ONE: [*users[:place], crowd(rng)[place], *users[place + 1 :]],
    }
    for adjacency, neighbours in others.items():
        again, asked = replayed(request, neighbours, said)
        assert [one[0] for one in asked] == [one[0] for one in said]
        for (label, sums, _), (_, moved, _) in zip(said, asked, strict=True):
            moves = [abs(int(a) - int(b)) for a, b in zip(sums.flat, moved.flat, strict=True)]
            event = charged[label]
            assert sum(moves) <= event.l1_sensitivity.under(adjacency)
            assert sum(m * m for m in moves) <= event.squared_sensitivity.under(adjacency)
        for field in ("item_factors", "item_bias", "item_count"):
            np.testing.assert_array_equal(getattr(again, field), getattr(outcome, field))
        assert again.constants() == outcome.constants()
        assert again.global_mean == outcome.global_mean
