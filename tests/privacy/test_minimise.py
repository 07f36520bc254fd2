"""The minimiser of an objective: near the real one by as much as its certificate says."""

from __future__ import annotations

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize

from dense_rows import dense_design
from dpfit.data.rows import RowBlock
from dpfit.design.builder import DesignBuilder
from dpfit.design.grid import Grid, RowMap, grid_bits
from dpfit.design.local import LocalDesign
from dpfit.losses.smoothed import HuberSmoothed, LogSmoothed, Smoothed
from dpfit.privacy.minimise import FittedRecords, Minimum, minimise
from dpfit.privacy.minimiser_error import distance_to_reach, gradient_error
from dpfit.privacy.objective import Objective

GRID = Grid(1.0, RowMap.CLIP, 20, True)
BARE = Grid(1.0, RowMap.CLIP, 20, False)
FORMS = (HuberSmoothed, LogSmoothed)
forms = pytest.mark.parametrize("form", FORMS)
quantiles = pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is near enough a search makes all its steps; here they are few."""
    monkeypatch.setattr("dpfit.privacy.minimise._MOST_STEPS", 25)


def rows_of(n: int, d: int, seed: int = 0) -> np.ndarray:
    X = np.random.default_rng(seed).normal(size=(n, d))
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def found(
    design: LocalDesign,
    y: np.ndarray,
    objective: Objective,
    *,
    grid: Grid = GRID,
    term: np.ndarray | None = None,
    shares: np.ndarray | None = None,
    within: float | None = None,
) -> Minimum:
    """As the Curator asks for it."""
    bits = grid_bits(len(y))[1]
    if within is None:
        within = float(distance_to_reach(objective, grid, len(y), bits, Fraction(0), 1)) / 2
    if term is None:
        term = np.zeros(design.n_features + 1)
    return minimise(
        FittedRecords(design, grid, y, shares), objective, term, bits=bits, within=within
    )


def real_rows(design: LocalDesign, grid: Grid) -> np.ndarray:
    constant = np.full(design.n_rows, grid.intercept_integer)
    return np.column_stack([design.by_row().toarray(), constant]) / grid.integer_norm


def loss_of(errors: np.ndarray, loss: Smoothed) -> np.ndarray:
    """The smoothed loss itself, which the package never computes."""
    size, width = np.abs(errors), loss.width
    if isinstance(loss, HuberSmoothed):
        smooth = np.where(size <= width, errors**2 / (2 * width), size - width / 2)
    else:
        smooth = size - width * np.log1p(size / width)
    return np.asarray(smooth + loss.tilt * errors)


@forms
@quantiles
@pytest.mark.parametrize("grid", [GRID, BARE])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("length", [0.0, 3.0, 1e5])
def test_an_independent_solver_finds_no_lower_point(
    form: type[Smoothed], quantile: float, grid: Grid, weighted: bool, length: float
) -> None:
    """Quasi-Newton steps from elsewhere end within their own tolerance of it, and no lower."""
    rng = np.random.default_rng(1)
    n, d = 60, 4
    design = dense_design(rows_of(n, d), grid)
    y = np.clip(0.2 * rng.standard_t(2, n), -1, 1)
    shares = rng.random(n) if weighted else None
    objective = Objective(form(quantile, 0.05), 7.0)
    direction = rng.normal(size=d + 1)
    term = length * direction / np.linalg.norm(direction)
    result = found(design, y, objective, grid=grid, term=term, shares=shares)
    assert result.distance <= 2.0**-27

    Z = real_rows(design, grid)
    weights = np.ones(n) if shares is None else shares

    def value(w: np.ndarray) -> tuple[float, np.ndarray]:
        errors = y - Z @ w
        scores = weights * objective.loss.score(errors)
        penalty = objective.ridge / 2 * (w @ w) + term @ w
        gradient = objective.ridge * w + term - Z.T @ scores
        return float(weights @ loss_of(errors, objective.loss) + penalty), gradient

    other = minimize(
        value, -term / objective.ridge + 0.1, jac=True, method="L-BFGS-B", options={"ftol": 1e-15}
    )
    lowest, gradient = value(result.point)
    assert lowest <= other.fun + 1e-12 * abs(other.fun)
    assert float(np.linalg.norm(gradient)) <= 1e-6 + 1e-13 * length
    assert result.point == pytest.approx(other.x, abs=1e-3, rel=1e-5)


def distance_from_real_minimiser(
    result: Minimum,
    design: LocalDesign,
    y: np.ndarray,
    objective: Objective,
    term: np.ndarray,
) -> float:
    """By damped Newton steps of 40 digits on the exact grid and floats."""
    with mpmath.workdps(40):
        Z = mpmath.matrix(real_rows(design, GRID).tolist())
        ridge, width = mpmath.mpf(objective.ridge), mpmath.mpf(objective.loss.width)
        tilt, linear = mpmath.mpf(objective.loss.tilt), mpmath.matrix(term.tolist())
        huber = isinstance(objective.loss, HuberSmoothed)

        def errors(w: mpmath.matrix) -> mpmath.matrix:
            return mpmath.matrix(y.tolist()) - Z * w

        def height(w: mpmath.matrix) -> mpmath.mpf:
            total = ridge / 2 * (w.T * w)[0] + (linear.T * w)[0]
            for r in errors(w):
                size = abs(r)
                if huber:
                    smooth = r * r / (2 * width) if size <= width else size - width / 2
                else:
                    smooth = size - width * mpmath.log(1 + size / width)
                total += smooth + tilt * r
            return total

        def score(r: mpmath.mpf) -> mpmath.mpf:
            if huber:
                return max(min(r / width, mpmath.mpf(1)), mpmath.mpf(-1)) + tilt
            return r / (abs(r) + width) + tilt

        def bend(r: mpmath.mpf) -> mpmath.mpf:
            if huber:
                return 1 / width if abs(r) <= width else mpmath.mpf(0)
            return width / (abs(r) + width) ** 2

        w = mpmath.matrix(result.point.tolist())
        size = len(result.point)
        for _ in range(100):
            now = errors(w)
            gradient = ridge * w + linear - Z.T * mpmath.matrix([score(r) for r in now])
            if mpmath.norm(gradient) < mpmath.mpf(10) ** -30 * (1 + mpmath.norm(linear)):
                break
            curvature = ridge * mpmath.eye(size)
            curvature += Z.T * mpmath.diag([bend(r) for r in now]) * Z
            step, length = mpmath.lu_solve(curvature, -gradient), mpmath.mpf(1)
            while height(w + length * step) > height(w) and length > 1e-12:
                length /= 2
            w += length * step
        else:
            raise AssertionError("the oracle did not end")
        return float(mpmath.norm(w - mpmath.matrix(result.point.tolist())))


@pytest.mark.parametrize(
    ("form", "quantile", "seed"), list(itertools.product(FORMS, (0.1, 0.5), (1, 2)))
)
@pytest.mark.parametrize("length", [0.0, 2.0, 1e6])
@pytest.mark.parametrize("within", [1e-3, None, 0.0])
def test_the_certificate_bounds_the_distance_from_the_real_minimiser(
    form: type[Smoothed], quantile: float, seed: int, length: float, within: float | None
) -> None:
    """However early or late the search ends, and whatever floats did to the linear term's sum."""
    rng = np.random.default_rng(seed)
    n, d = 1 + 3 * (seed - 1), 2
    design = dense_design(rows_of(n, d, seed), GRID)
    y = rng.uniform(-1, 1, n)
    objective = Objective(form(quantile, 10 ** rng.uniform(-2, 0)), 10 ** rng.uniform(-2, 1))
    term = length * rng.normal(size=d + 1)
    result = found(design, y, objective, term=term, within=within)
    off = distance_from_real_minimiser(result, design, y, objective, term)
    assert off <= result.distance
    if within:
        assert result.distance <= within


@forms
@pytest.mark.parametrize("columns", [3, 300])
def test_a_sparse_design_gives_the_point_of_the_dense_one(
    form: type[Smoothed], columns: int
) -> None:
    """Columns without an entry have the linear term's own minimiser, -b / ridge."""
    n = 50
    rng = np.random.default_rng(2)
    y = rng.uniform(-1, 1, n)
    X = rows_of(n, 3)
    dense, builder = dense_design(X, GRID), DesignBuilder(GRID)
    places = np.tile(np.linspace(0, columns - 1, 3).astype(np.int32), n)
    builder.collect([RowBlock(np.arange(0, 3 * n + 1, 3), places, X.ravel(), None)])
    sparse = builder.build(columns, grid=GRID, index_base=0)
    objective = Objective(form(0.5, 0.1), 5.0)
    term = rng.normal(size=columns + 1)
    used = np.append(places[:3], columns)
    one = found(dense, y, objective, term=term[used])
    other = found(sparse, y, objective, term=term)
    assert other.point[used] == pytest.approx(one.point, abs=one.distance + other.distance)
    empty = np.setdiff1d(np.arange(columns), used)
    assert other.point[empty] == pytest.approx(-term[empty] / 5.0, abs=other.distance)


@forms
@quantiles
@pytest.mark.parametrize("case", ["one record", "all equal", "zero rows", "one weight"])
def test_degenerate_records_are_solved(form: type[Smoothed], quantile: float, case: str) -> None:
    """The ridge alone makes the minimiser unique."""
    n = 1 if case == "one record" else 40
    X, y = np.tile([[0.6, -0.8]], (n, 1)), np.full(n, 0.3)
    if case == "zero rows":
        X[:] = 0.0
    shares = np.eye(n)[0] if case == "one weight" else None
    objective = Objective(form(quantile, 0.01), 2.0)
    result = found(dense_design(X, GRID), y, objective, shares=shares)
    assert result.distance <= 2.0**-27
    assert result.point[0] * 0.8 == pytest.approx(-result.point[1] * 0.6, abs=1e-6)
    assert float(np.linalg.norm(result.point)) <= 1.01 * n * 1.8 / 2.0


@forms
def test_threads_change_no_bit(form: type[Smoothed]) -> None:
    """Sums are of integers: their order cannot matter."""
    X, rng = rows_of(300, 12), np.random.default_rng(4)
    y, term = rng.uniform(-1, 1, 300), rng.normal(size=13)
    objective = Objective(form(0.7, 0.02), 3.0)
    points = [
        found(dense_design(X, GRID, threads=threads), y, objective, term=term).point
        for threads in (1, 2, 5)
    ]
    assert points[0].tobytes() == points[1].tobytes() == points[2].tobytes()


@forms
def test_a_search_that_ends_early_says_so(form: type[Smoothed]) -> None:
    """What was not reached is not certified: nothing reaches the distance zero."""
    objective = Objective(form(0.5, 0.1), 5.0)
    result = found(dense_design(rows_of(20, 2), GRID), np.full(20, 0.2), objective, within=0.0)
    least = gradient_error(objective.loss, GRID, 20, grid_bits(20)[1]) / objective.ridge
    assert result.distance >= least > 0.0


def test_what_is_cut_off_a_point_of_many_columns_is_certified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The two exact parts of a point leave out more the more columns it has."""
    monkeypatch.setattr("dpfit.privacy.minimise._MOST_STEPS", 8)
    d = 1 << 17
    builder = DesignBuilder(GRID)
    builder.collect([RowBlock(np.array([0, 1]), np.zeros(1, np.int32), np.ones(1), None)])
    design = builder.build(d, grid=GRID, index_base=0)
    term = np.random.default_rng(6).normal(size=d + 1) + 1.0
    objective = Objective(LogSmoothed(0.5, 0.5), 1.0)
    result = found(design, np.zeros(1), objective, term=term, within=0.0)
    share = result.distance / float(np.linalg.norm(result.point))
    assert 2.0**-46.5 <= share <= 2.0**-44


@pytest.mark.parametrize("steps", range(6))
def test_the_certificate_is_about_the_point_that_is_returned(
    monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """Out of steps or not, the distance told is that of the point at hand, not of one before it."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(300, 4))
    y = X[:, 0] + rng.standard_t(2, 300)
    objective = Objective(HuberSmoothed(0.5, 0.05), 0.5)

    def minimum(within: float) -> Minimum:
        return found(dense_design(X, GRID), y, objective, term=np.ones(5), within=within)

    best = minimum(1e-9).point
    monkeypatch.setattr("dpfit.privacy.minimise._MOST_STEPS", steps)
    last = minimum(0.0)
    assert np.linalg.norm(last.point - best) <= last.distance + 1e-9
    assert minimum(last.distance).point.tolist() == last.point.tolist()
