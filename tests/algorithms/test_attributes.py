"""Counts, Huber's loss, weights, offsets and exposures: what they mean to a fit without noise."""

from __future__ import annotations

import numpy as np
import pytest

from dense_rows import dense_block
from dpfit.algorithms.outcome import Outcome
from dpfit.data.rows import RowBlock
from dpfit.design.builder import DesignBuilder
from dpfit.design.grid import Grid, RowMap
from dpfit.errors import DataError
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.request import FitRequest
from dpfit.losses.base import Loss
from dpfit.losses.logistic import Logistic
from dpfit.losses.multinomial import Multinomial
from dpfit.losses.poisson import Poisson
from dpfit.losses.squared import Squared
from dpfit.privacy.curator import Curator
from dpfit.privacy.declared_facts import DeclaredFacts, Layout
from dpfit.privacy.gaussian_release import GaussianRelease, squared_factor
from dpfit.privacy.mechanisms.noise import NoNoise
from dpfit.privacy.point import Point
from dpfit.privacy.private_records import PrivateRecords
from dpfit.privacy.quantity import Quantity

D = 6
GRID = Grid(1.0, RowMap.NORMALIZE, 20, True)
PLAIN = {"without_noise": True, "sparsity": None, "budget": None, "dataset": "toy"}


def loaded(rows: RowBlock, **request: object) -> LinearFit:
    asked = FitRequest(**{**PLAIN, "exposed": rows.offset is not None, **request})
    return LinearFit.of(asked, [rows], layout=Layout, source="toy.csv")


def fitted(rows: RowBlock, **request: object) -> Outcome:
    return loaded(rows, **request).run(lambda described: None, lambda done: None)


def toy(n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows and a noisy real target in [0, 1]."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    score = X @ np.linspace(-1, 1, D) + 0.3 * rng.standard_normal(n)
    return X, (score - score.min()) / (score.max() - score.min())


# --- counts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["gd", "dp-gd", "dp-ight", "dp-screen"])
def test_counts_under_exposures_give_their_rates(algorithm: str) -> None:
    """Counts that are a level's rate times the exposure give that rate back, to a few percent."""
    rng = np.random.default_rng(0)
    level, exposure = rng.integers(0, D, 600), rng.uniform(0.2, 4.0, 600)
    rates = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    rows = dense_block(np.eye(D)[level], exposure * rates[level], offset=np.log(exposure))
    declared = DeclaredFacts(target_range=(0.0, 30.0), max_exposure=4.0)
    sparsity = D if algorithm == "dp-ight" else None
    fit = loaded(
        rows,
        loss="poisson",
        algorithm=algorithm,
        declared=declared,
        sparsity=sparsity,
        iterations=400 if algorithm != "gd" else 2000,
        residual_clip=1.0,
    )
    outcome = fit.run(lambda described: None, lambda done: None)
    theta = np.zeros(D)
    theta[outcome.columns] = outcome.values
    constant = GRID.intercept_value
    if outcome.centring is None:
        scores = theta + outcome.intercept * constant
    else:
        z = np.eye(D)[:, outcome.columns] - outcome.centring.centre
        lengths = np.sqrt((z**2).sum(1) + outcome.centring.constant**2)
        scores = (z @ outcome.values + outcome.intercept * outcome.centring.constant) / lengths
    found = 30.0 * np.exp(outcome.offset - np.log(fit.max_exposure) + scores)
    assert found == pytest.approx(rates, rel=0.05)


def test_one_exposure_for_all_shifts_the_start_alone() -> None:
    """The scores of counts start lower by its logarithm; no coefficient changes."""
    X, y = toy()
    asked = {"loss": "poisson", "algorithm": "gd", "iterations": 20}
    declared = DeclaredFacts(target_range=(0.0, 1.0), max_exposure=1.0)
    bare = fitted(dense_block(X, y), declared=declared, **asked)
    half = fitted(dense_block(X, y, offset=np.full(200, np.log(0.5))), declared=declared, **asked)
    assert half.offset - bare.offset == pytest.approx(np.log(2.0), abs=1e-5)
    assert half.values == pytest.approx(bare.values, abs=1e-4)


def test_an_exposure_beyond_the_bound_counts_as_the_bound() -> None:
    """Bit by bit; the bound is part of what the model says."""
    X, y = toy()
    exposure = np.random.default_rng(1).uniform(0.1, 9.0, 200)
    declared = DeclaredFacts(target_range=(0.0, 1.0), max_exposure=3.0)
    asked = {"loss": "poisson", "algorithm": "gd", "iterations": 5, "declared": declared}
    raw = fitted(dense_block(X, y, offset=np.log(exposure)), **asked)
    cut = fitted(dense_block(X, y, offset=np.log(np.minimum(exposure, 3.0))), **asked)
    assert np.array_equal(raw.values, cut.values)
    assert loaded(dense_block(X, y, offset=np.log(exposure)), **asked).max_exposure == 3.0


@pytest.mark.parametrize("shift", [0.0, 50.0, -2000.0, 1e300, -1e300])
def test_an_undeclared_largest_exposure_is_assumed(shift: float) -> None:
    """It is listed as read off the data, and any finite offsets leave a finite model."""
    X, y = toy()
    offset = np.random.default_rng(1).uniform(-1.0, 0.5, 200) + shift
    declared = DeclaredFacts(target_range=(0.0, 1.0))
    asked = {"loss": "poisson", "algorithm": "gd", "iterations": 5, "declared": declared}
    fit = loaded(dense_block(X, y, offset=offset), **asked)
    assert "max_exposure" in {fact.name for fact in fit.plan.facts.assumed()}
    assert 0.0 < fit.max_exposure < np.inf
    if shift == 0.0:
        assert fit.max_exposure == pytest.approx(np.exp(offset.max()))
    assert np.all(np.isfinite(fitted(dense_block(X, y, offset=offset), **asked).values))


# --- Huber ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["gd", "dp-screen", "dp-ight"])
def test_a_wide_huber_threshold_is_the_squared_loss(algorithm: str) -> None:
    """Bit by bit, where neither the threshold nor the clip touches a residual."""
    X, y = toy()
    sparsity = 4 if algorithm == "dp-ight" else None
    asked = {"algorithm": algorithm, "iterations": 30, "residual_clip": 8.0, "sparsity": sparsity}
    squared = fitted(dense_block(X, y), loss="squared", **asked)
    huber = fitted(dense_block(X, y), loss="huber", huber_threshold=8.0, **asked)
    assert np.array_equal(huber.values, squared.values)
    assert huber.intercept == squared.intercept


def test_huber_clips_at_its_threshold() -> None:
    """Without a clip of one's own, the clip is the threshold, a share of the target's range."""
    X, y = toy()
    plan = loaded(
        dense_block(X, 50.0 * y),
        loss="huber",
        huber_threshold=2.0,
        algorithm="gd",
        declared=DeclaredFacts(target_range=(0.0, 40.0)),
    ).plan
    assert plan.algorithm.settings()["residual_clip"] == 2.0 / 40.0


# --- weights and offsets -------------------------------------------------------------------------


def door(
    loss: Loss,
    X: np.ndarray,
    target: np.ndarray,
    *,
    offset: np.ndarray | None = None,
    shares: np.ndarray | None = None,
) -> Curator:
    """A Curator without noise and with a divisor of 1."""
    builder = DesignBuilder(GRID)
    builder.collect([dense_block(X, target)])
    design = builder.build(D, grid=GRID, index_base=0)
    factor = squared_factor(Quantity.GRADIENT, GRID, 0)
    release = GaussianRelease("it", Quantity.GRADIENT, factor, 1 << 20, 0, 1)
    return Curator(
        records=PrivateRecords(design, target, offset, shares),
        loss=loss,
        grid=GRID,
        n_rows=1,
        releases=[release],
        noise=NoNoise(),
    )


def stacked(gradient: Point) -> np.ndarray:
    return np.concatenate([gradient.coefficients, np.asarray(gradient.intercept)[None]])


LOSSES = [Logistic(), Squared(), Poisson(), Multinomial(3)]


def case(loss: Loss) -> tuple[np.ndarray, np.ndarray, Point]:
    """Rows, a target of the loss's kind, and a point."""
    X, y = toy(60)
    rng, k = np.random.default_rng(5), loss.n_scores
    if k > 1:
        point = Point(rng.standard_normal((D, k)), rng.standard_normal(k))
        return X, np.arange(60.0) % k, point
    return X, y, Point(rng.standard_normal(D), 0.4)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_a_weight_is_a_number_of_copies(loss: Loss) -> None:
    """A row of weight w adds what w copies of it add, to the rounding of its integers."""
    X, target, point = case(loss)
    copies = np.arange(60) % 4
    weighted = door(loss, X, target, shares=copies / 3)
    copied = door(loss, np.repeat(X, copies, axis=0), np.repeat(target, copies))
    left = 3 * stacked(weighted.gradient("it", point, clip=0.6))
    right = stacked(copied.gradient("it", point, clip=0.6))
    assert left == pytest.approx(right, abs=60 * 3 * 5 * 2.0**-20)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_weight_zero_leaves_a_row_out(loss: Loss) -> None:
    """Bit by bit, in gradients; weight one changes nothing."""
    X, target, point = case(loss)
    kept = np.arange(60) % 3 != 0
    weighted = door(loss, X, target, shares=kept.astype(float))
    without = door(loss, X[kept], target[kept])
    left, right = (stacked(one.gradient("it", point, clip=0.6)) for one in (weighted, without))
    assert np.array_equal(left, right)


@pytest.mark.parametrize("loss", [Logistic(), Poisson()], ids=lambda loss: loss.name)
def test_an_offset_common_to_all_rows_is_one_of_the_point(loss: Loss) -> None:
    """Bit by bit: it moves every score, which the intercept could do as well."""
    X, target, point = case(loss)
    common = door(loss, X, target, offset=np.full(60, 0.7)).gradient("it", point, clip=0.6)
    moved = Point(point.coefficients, point.intercept, 0.7)
    assert np.array_equal(
        stacked(common), stacked(door(loss, X, target).gradient("it", moved, clip=0.6))
    )
    shifted = Point(point.coefficients, point.intercept + 0.7 / GRID.intercept_value)
    by_intercept = door(loss, X, target).gradient("it", shifted, clip=0.6)
    assert stacked(common) == pytest.approx(stacked(by_intercept), abs=60 * 2.0**-19)


def test_an_offset_common_to_all_rows_moves_the_intercept_alone() -> None:
    """At the optimum of the logistic loss the coefficients stay and the intercept gives way."""
    X, y = toy()
    target = (y + 0.3 * np.random.default_rng(2).standard_normal(200) > 0.5).astype(float)
    asked = {"loss": "logistic", "algorithm": "gd", "residual_clip": 1.0, "step_size": 6.0}
    bare = fitted(dense_block(X, target), iterations=800, **asked)
    moved = fitted(dense_block(X, target, offset=np.full(200, 0.4)), iterations=800, **asked)
    assert moved.values == pytest.approx(bare.values, abs=0.01)
    shift = (moved.intercept - bare.intercept) * GRID.intercept_value
    assert shift == pytest.approx(-0.4, abs=0.01)


def test_a_weight_beyond_the_bound_counts_as_the_bound() -> None:
    """Bit by bit, however far beyond; the largest found is taken as public when none is said."""
    X, y = toy()
    weight = np.random.default_rng(3).uniform(0.0, 5.0, 200)
    weight[:2] = (1e308, 0.0)
    asked = {"loss": "squared", "algorithm": "gd", "iterations": 5}
    for bound in (2.0, 1e-300):
        declared = DeclaredFacts(max_weight=bound)
        raw = fitted(dense_block(X, y, weight=weight), declared=declared, **asked)
        cut = fitted(
            dense_block(X, y, weight=np.minimum(weight, bound)), declared=declared, **asked
        )
        assert np.array_equal(raw.values, cut.values)
    facts = loaded(dense_block(X, y, weight=weight), **asked).plan.facts
    assert facts["max_weight"].value == 1e308
    assert "max_weight" in {fact.name for fact in facts.assumed()}


def test_weights_that_are_all_zero_are_refused() -> None:
    """Unless a bound is declared, which makes them shares of something."""
    X, y = toy()
    nothing = dense_block(X, y, weight=np.zeros(200))
    with pytest.raises(DataError, match="weight zero"):
        loaded(nothing, loss="squared", algorithm="gd")
    loaded(nothing, loss="squared", algorithm="gd", declared=DeclaredFacts(max_weight=1.0))


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
@pytest.mark.parametrize("algorithm", ["dp-gd", "dp-ight", "dp-screen"])
def test_offsets_of_any_size_end_with_a_model(loss: str, algorithm: str) -> None:
    """Scores saturate; nothing overflows and no coefficient is infinite."""
    X, y = toy()
    offset = np.resize([1e308, -1e308, 0.0, 700.0, -745.0], 200)
    target = (y > 0.5).astype(float) if loss == "logistic" else y
    outcome = fitted(
        dense_block(X, target, offset=offset),
        loss=loss,
        algorithm=algorithm,
        iterations=5,
        sparsity=3,
    )
    assert np.all(np.isfinite(outcome.values))
    assert np.isfinite(outcome.intercept)
