"""Releases of minimisers: what neighbours move them, and what that is charged."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dense_rows import dense_design
from dpfit.design.grid import Grid, RowMap, grid_bits
from dpfit.errors import DataError, NotConvergedError, PrivacyError
from dpfit.losses.absolute import Absolute
from dpfit.losses.smoothed import HuberSmoothed, LogSmoothed
from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.charged_releases import Release
from dpfit.privacy.conversion import log1p_up
from dpfit.privacy.curator import Curator
from dpfit.privacy.events import MinimiserLaw
from dpfit.privacy.gaussian_release import GaussianRelease
from dpfit.privacy.laplace_release import LaplaceRelease
from dpfit.privacy.mechanisms.noise import ExactNoise, Noise, NoNoise
from dpfit.privacy.minimise import Minimum
from dpfit.privacy.minimiser_error import distance_to_reach, record_length
from dpfit.privacy.minimiser_release import (
    MinimiserRelease,
    VectorRelease,
    determinant_ratio,
    plan_minimiser,
    plan_vector,
)
from dpfit.privacy.objective import Objective
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.private_records import PrivateRecords
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.random_bits import BitSource, RunKey

GRID = Grid(1.0, RowMap.CLIP, 20, True)
HUBER = Objective(HuberSmoothed(0.7, 0.1), 40.0)
LOG = Objective(LogSmoothed(0.7, 0.05), 40.0)
adjacencies = pytest.mark.parametrize("adjacency", Adjacency)


def planned(
    quantity: Quantity, objective: Objective, law: MinimiserLaw | None, *, laplace: bool = False
) -> PlannedRelease:
    return PlannedRelease(
        "it", quantity, 1, Fraction(0), laplace=laplace, objective=objective, law=law
    )


def on_grid(
    objective: Objective,
    adjacency: Adjacency,
    *,
    law: MinimiserLaw | None = None,
    squared_mu: Fraction | None = None,
    epsilon: Fraction | None = None,
    n: int = 100,
    d: int = 3,
) -> MinimiserRelease:
    """With a law the noise on the grid protects the minimiser; without, a vector before it does."""
    before = vector(Quantity.MINIMISER_SHIFT, MinimiserLaw.L2, adjacency, objective, d=d)
    return plan_minimiser(
        planned(Quantity.MINIMISER, objective, law, laplace=epsilon is not None),
        GRID,
        n_rows=n,
        n_features=d,
        unit_bits=grid_bits(n)[1],
        vector=before if law is None else None,
        squared_mu=squared_mu,
        epsilon=epsilon,
        adjacency=adjacency,
    )


def vector(
    quantity: Quantity,
    law: MinimiserLaw,
    adjacency: Adjacency,
    objective: Objective = HUBER,
    *,
    epsilon: Fraction | None = Fraction(1),
    squared_mu: Fraction | None = None,
    d: int = 3,
) -> VectorRelease:
    return plan_vector(
        planned(quantity, objective, law),
        GRID,
        n_features=d,
        squared_mu=squared_mu,
        epsilon=epsilon,
        adjacency=adjacency,
    )


# --- allowances ----------------------------------------------------------------------------------


@adjacencies
@pytest.mark.parametrize("law", [None, MinimiserLaw.L1])
@pytest.mark.parametrize("d", [1, 40, 10_000])
@pytest.mark.parametrize("amount", [Fraction(1, 1000), Fraction(1, 3), Fraction(7)])
def test_releases_on_the_grid_keep_their_allowance_and_use_it(
    adjacency: Adjacency, law: MinimiserLaw | None, d: int, amount: Fraction
) -> None:
    """Epsilon or mu^2, under either relation, all but two parts in a thousand of it."""
    laplace = on_grid(LOG, adjacency, law=law, epsilon=amount, d=d)
    cost = compose([laplace.event()], adjacency)
    assert cost.pure is not None
    assert amount * Fraction(998, 1000) <= cost.pure <= amount
    gaussian = on_grid(LOG, adjacency, law=law, squared_mu=amount, d=d)
    cost = compose([gaussian.event()], adjacency)
    assert cost.gaussian is not None
    assert amount * Fraction(995, 1000) <= cost.gaussian <= amount


@adjacencies
@pytest.mark.parametrize("quantity", [Quantity.OBJECTIVE_TERM, Quantity.MINIMISER_SHIFT])
@pytest.mark.parametrize("law", [MinimiserLaw.L1, MinimiserLaw.L2])
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(7)])
def test_pure_vectors_keep_their_allowance_and_use_it(
    adjacency: Adjacency, quantity: Quantity, law: MinimiserLaw, epsilon: Fraction
) -> None:
    cost = compose([vector(quantity, law, adjacency, epsilon=epsilon).event()], adjacency)
    assert cost.pure is not None
    assert epsilon * (1 - Fraction(1, 10**9)) <= cost.pure <= epsilon


@adjacencies
def test_a_gaussian_vector_keeps_both_allowances(adjacency: Adjacency) -> None:
    """mu^2 for the shift, and a pure part for the determinants."""
    q, squared_mu = determinant_ratio(HUBER, GRID), Fraction(1, 3)
    release = vector(
        Quantity.OBJECTIVE_TERM,
        MinimiserLaw.GAUSSIAN,
        adjacency,
        epsilon=log1p_up(q),
        squared_mu=squared_mu,
    )
    cost = compose([release.event()], adjacency)
    assert cost.noise is not None
    assert squared_mu * (1 - Fraction(1, 10**9)) <= cost.noise <= squared_mu
    assert cost.pure == log1p_up(q)
    assert cost.doublings == (2 if adjacency is Adjacency.REPLACE_ONE else 1)


def test_the_determinants_are_those_of_the_longest_record() -> None:
    """q = |z|^2 / (g ridge), with nothing of it for a vector on a minimiser."""
    q = determinant_ratio(HUBER, GRID)
    assert float(q) == pytest.approx((1 + 0.1**2) / (0.1 * 40.0), rel=1e-5)
    term = vector(Quantity.OBJECTIVE_TERM, MinimiserLaw.L2, Adjacency.ADD_REMOVE)
    shift = vector(Quantity.MINIMISER_SHIFT, MinimiserLaw.L2, Adjacency.ADD_REMOVE)
    assert term.jacobian.add_remove == term.jacobian.replace_one == q
    assert shift.jacobian.add_remove == shift.jacobian.replace_one == 0
    assert term.sensitivity.add_remove == Fraction(40) * shift.sensitivity.add_remove
    assert float(term.sensitivity.replace_one) == pytest.approx(2 * 1.4 * math.hypot(1, 0.1))


@adjacencies
@pytest.mark.parametrize("law", MinimiserLaw)
def test_curvature_that_spends_everything_is_refused(
    adjacency: Adjacency, law: MinimiserLaw
) -> None:
    """With the product of smoothing and ridge from which it would work: it does, a little above."""
    epsilon, squared_mu = Fraction(1, 10), Fraction(1)
    with pytest.raises(PrivacyError, match="curvature alone") as caught:
        vector(Quantity.OBJECTIVE_TERM, law, adjacency, epsilon=epsilon, squared_mu=squared_mu)
    assert caught.value.hint is not None
    least = float(caught.value.hint.split("above ")[1].split(";")[0])
    enough = Objective(HuberSmoothed(0.7, 0.1), 1.01 * least / 0.1)
    vector(Quantity.OBJECTIVE_TERM, law, adjacency, enough, epsilon=epsilon, squared_mu=squared_mu)


def test_a_budget_without_a_grid_is_refused() -> None:
    with pytest.raises(PrivacyError, match="too small"):
        on_grid(LOG, Adjacency.REPLACE_ONE, epsilon=Fraction(1, 10**14))
    with pytest.raises(PrivacyError, match="too small"):
        on_grid(LOG, Adjacency.REPLACE_ONE, squared_mu=Fraction(1, 10**28))


# --- neighbours ----------------------------------------------------------------------------------


def released(
    X: np.ndarray,
    y: np.ndarray,
    releases: list[Release],
    objective: Objective,
    noise: Noise,
    shares: np.ndarray | None = None,
) -> np.ndarray:
    """The integers on the grid."""
    curator = Curator(
        records=PrivateRecords(dense_design(X, GRID), y, None, shares),
        loss=Absolute(objective.loss.quantile),
        grid=GRID,
        n_rows=len(y),
        releases=releases,
        noise=noise,
    )
    point = curator.minimiser("it", objective, 0.5)
    step = next(one.step for one in releases if isinstance(one, MinimiserRelease))
    return np.rint(np.append(point.coefficients, point.intercept) / step)


def adversarial(adjacency: Adjacency) -> list[tuple]:
    """Pairs of X, y and shares: a record alone on its axis, and records at random."""
    rng = np.random.default_rng(8)
    n, pairs = 10, []
    for trial in range(10):
        X = rng.normal(size=(n, 3))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        y = rng.random(n)
        if trial < 4:
            X[:-1], X[-1], y = 0.0, np.eye(3)[0], np.arange(n) % 2.0
            y[-1] = trial % 2
        present, gone = np.ones(n), np.append(np.ones(n - 1), 0.0)
        other_X, other_y = X.copy(), y.copy()
        other_X[-1] *= -1.0 if trial % 3 else 1.0
        other_y[-1] = y[-1] if trial % 3 else 1.0 - y[-1]
        if adjacency is Adjacency.ADD_REMOVE:
            pairs.append((X, y, present, X, y, gone))
        else:
            pairs.append((X, y, present, other_X, other_y, present))
    return pairs


@adjacencies
@pytest.mark.parametrize("objective", [HUBER, LOG])
@pytest.mark.parametrize("laplace", [False, True])
def test_neighbours_are_as_near_on_the_grid_as_charged(
    adjacency: Adjacency, objective: Objective, laplace: bool
) -> None:
    """Integers of a minimiser without a random vector: within D, and for some pair near it."""
    amount = Fraction(1, 2)
    release = on_grid(
        objective,
        adjacency,
        law=MinimiserLaw.L1 if laplace else MinimiserLaw.GAUSSIAN,
        epsilon=amount if laplace else None,
        squared_mu=None if laplace else amount,
        n=10,
    )
    noise = release.noise
    largest = 0.0
    for X, y, shares, other_X, other_y, other_shares in adversarial(adjacency):
        one = released(X, y, [release], objective, NoNoise(), shares)
        other = released(other_X, other_y, [release], objective, NoNoise(), other_shares)
        squared = float(np.sum((one - other) ** 2))
        largest = max(largest, squared)
        assert squared <= noise.squared_factor.under(adjacency)
        if isinstance(noise, LaplaceRelease):
            assert np.abs(one - other).sum() <= noise.l1_factor.under(adjacency)
    assert largest >= 0.75 * noise.squared_factor.under(adjacency)


def asked_alone(release: MinimiserRelease) -> MinimiserRelease:
    """The grid's own noise, without the vector that belongs before it."""
    return replace(release, alone=True)


def test_roundings_and_errors_of_neighbours_are_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given one ideal point, computed ones at the ends of the radius stay within the charge."""
    d = 3
    release = asked_alone(
        on_grid(HUBER, Adjacency.REPLACE_ONE, squared_mu=Fraction(1, 10), n=4, d=d)
    )
    assert isinstance(release.noise, GaussianRelease)
    X, y = np.zeros((4, d)), np.zeros(4)
    rng, largest = np.random.default_rng(5), 0.0
    for _ in range(300):
        ideal = rng.normal(size=d + 1)
        away = rng.normal(size=d + 1)
        away = np.where(rng.random() < 0.5, np.sign(away), away)
        away *= release.radius / np.linalg.norm(away)
        ends = []
        for point in (ideal + away, ideal - away):
            monkeypatch.setattr(
                "dpfit.privacy.curator.minimise",
                lambda *_, point=point, **__: Minimum(point, release.radius),
            )
            ends.append(released(X, y, [release], HUBER, NoNoise()))
        largest = max(largest, float(np.sum((ends[0] - ends[1]) ** 2)))
    assert largest <= release.noise.squared_factor.replace_one
    assert largest >= 0.98 * (2 * release.radius / release.step) ** 2


def test_the_minimiser_of_another_objective_is_no_release() -> None:
    """The charge is for one loss, one smoothing and one ridge."""
    release = asked_alone(on_grid(HUBER, Adjacency.REPLACE_ONE, squared_mu=Fraction(1)))
    X, y = np.zeros((4, 3)), np.zeros(4)
    for other in (LOG, replace(HUBER, ridge=39.0), Objective(HuberSmoothed(0.6, 0.1), 40.0)):
        with pytest.raises(RuntimeError, match="another objective"):
            released(X, y, [release], other, NoNoise())


@pytest.mark.parametrize(("n", "fits"), [(1 << 15, False), ((1 << 15) - 1, True)])
def test_records_whose_scores_could_wrap_are_refused(n: int, fits: bool) -> None:
    """Under add-remove the declared number is a divisor only; a certificate needs the real one."""
    fine = Grid(1.0, RowMap.CLIP, 27, True)
    release = replace(on_grid(HUBER, Adjacency.ADD_REMOVE, squared_mu=Fraction(1)), bits=20)
    release = replace(release, radius=1.0)
    records = PrivateRecords(dense_design(np.zeros((n, 1)), GRID), np.zeros(n))
    if fits:
        records.check([release], 1, fine, "toy")
        return
    with pytest.raises(DataError, match="far more records"):
        records.check([release], 1, fine, "toy")


@pytest.mark.parametrize(("offset", "fails"), [(0.0, False), (1.01, True), (math.nan, True)])
def test_a_minimiser_beyond_its_radius_is_not_released(
    monkeypatch: pytest.MonkeyPatch, offset: float, fails: bool
) -> None:
    """The certificate decides, whatever it is."""
    release = asked_alone(on_grid(HUBER, Adjacency.REPLACE_ONE, squared_mu=Fraction(1)))
    monkeypatch.setattr(
        "dpfit.privacy.curator.minimise",
        lambda *_, **__: Minimum(np.zeros(4), offset * release.radius),
    )
    X, y = np.zeros((4, 3)), np.zeros(4)
    if not fails:
        released(X, y, [release], HUBER, NoNoise())
        return
    with pytest.raises(NotConvergedError):
        released(X, y, [release], HUBER, NoNoise())


def test_errors_of_the_random_vector_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vector so long that its floats are coarser than the radius is not released."""
    release = on_grid(HUBER, Adjacency.REPLACE_ONE, squared_mu=Fraction(1))
    long = vector(
        Quantity.MINIMISER_SHIFT, MinimiserLaw.L2, Adjacency.REPLACE_ONE, epsilon=Fraction(1, 10**9)
    )
    X, y = np.zeros((4, 3)), np.zeros(4)
    noise = ExactNoise(BitSource(RunKey.from_seed(1)))
    long = replace(long, label="b")
    with pytest.raises(NotConvergedError):
        released(X, y, [release, long], HUBER, noise)


def test_the_radius_covers_what_the_solver_cannot_avoid() -> None:
    """It grows with the records over the ridge and is never below the finest use."""
    bits = grid_bits(10**6)[1]
    wide = float(distance_to_reach(HUBER, GRID, 10**6, bits, Fraction(0), 4))
    narrow = float(distance_to_reach(HUBER, GRID, 10, bits, Fraction(0), 4))
    assert wide > 1000 * narrow or narrow == 2.0**-26
    assert float(record_length(GRID)) ** 2 >= 1 + GRID.intercept_integer**2 / GRID.integer_norm**2


# --- noise ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("quantity", [Quantity.OBJECTIVE_TERM, Quantity.MINIMISER_SHIFT])
def test_the_charged_vector_is_in_what_is_released(quantity: Quantity) -> None:
    """Without records' help: rows of zeros leave -b / ridge, or the vector itself, and noise."""
    objective, X, y = Objective(HuberSmoothed(0.5, 0.1), 40.0), np.zeros((4, 3)), np.full(4, 0.5)
    adjacency = Adjacency.REPLACE_ONE
    release = on_grid(objective, adjacency, squared_mu=Fraction(1), n=4)
    charged = vector(quantity, MinimiserLaw.L2, adjacency, objective)
    charged = replace(charged, label="b")
    scale = float(charged.scale) / (40.0 if quantity is Quantity.OBJECTIVE_TERM else 1.0)
    lengths = []
    for seed in range(60):
        noise = ExactNoise(BitSource(RunKey.from_seed(seed)))
        integers = released(X, y, [release, charged], objective, noise)
        lengths.append(float(np.linalg.norm(integers[:-1])) * release.step / scale)
    # |b| is Gamma(4); three of four coordinates hold (8/3) / pi of its length on average.
    expected = 4 * 8 / (3 * math.pi)
    assert abs(np.mean(lengths) - expected) < 7 * 2.2 / math.sqrt(60)


class Watched(ExactNoise):
    """Remembers the steps of its draws."""

    def __init__(self) -> None:
        super().__init__(BitSource(RunKey.from_seed(1)))
        self.steps: list[int] = []

    def integers(self, scale_bits: int, size: int, step: int) -> np.ndarray:
        self.steps.append(step)
        return super().integers(scale_bits, size, step)

    def laplace(self, scale_bits: int, size: int, step: int) -> np.ndarray:
        self.steps.append(step)
        return super().laplace(scale_bits, size, step)


@pytest.mark.parametrize("law", MinimiserLaw)
def test_all_noise_of_a_minimiser_has_steps_of_its_own(law: MinimiserLaw) -> None:
    """Length and direction of the vector, and the integers' noise: none from the same bits."""
    adjacency, noise = Adjacency.REPLACE_ONE, Watched()
    charged = vector(Quantity.MINIMISER_SHIFT, law, adjacency, squared_mu=Fraction(1))
    charged = replace(charged, label="b")
    release = on_grid(HUBER, adjacency, squared_mu=Fraction(1))
    released(np.zeros((4, 3)), np.zeros(4), [release, charged], HUBER, noise)
    assert len(noise.steps) >= (3 if law is MinimiserLaw.L2 else 2)
    assert len(set(noise.steps)) == len(noise.steps)


def test_every_coordinate_has_noise_on_the_grid() -> None:
    """The same records twice, without a random vector: no coordinate stays, empty columns too."""
    release = asked_alone(on_grid(HUBER, Adjacency.REPLACE_ONE, squared_mu=Fraction(1, 100), d=40))
    X, y = np.zeros((5, 40)), np.full(5, 0.5)
    one, other = (
        released(X, y, [release], HUBER, ExactNoise(BitSource(RunKey.from_seed(seed))))
        for seed in (1, 2)
    )
    scale = 2.0**release.noise.scale_bits
    assert np.all(one != other)
    assert 0.4 * scale < np.std(one[:-1]) < 2.0 * scale
