"""Products with a column for each class equal those of dense integer algebra, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dense_rows import dense_design
from dpfit.design.grid import Grid, RowMap
from dpfit.design.integer_point import IntegerPoint
from dpfit.design.local import LocalDesign
from dpfit.design.unit_view import UnitView
from dpfit.privacy.point import Point, quantised

GRID = Grid(1.0, RowMap.NORMALIZE, 20, True)
N, D = 60, 40


def random_design(threads: int = 1) -> LocalDesign:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.3)
    return dense_design(X, GRID, threads=threads)


def random_point(width: int, support: int, k: int) -> tuple[IntegerPoint, np.ndarray]:
    """A sparse point, and the same as a dense array with the intercepts last."""
    rng = np.random.default_rng(support)
    columns = np.sort(rng.choice(width, support, replace=False))
    values = rng.integers(-(2**30), 2**30, (support, k))
    intercept = rng.integers(-(2**30), 2**30, k)
    dense = np.zeros((width + 1, k), np.int64)
    dense[columns], dense[-1] = values, intercept
    return IntegerPoint(columns, values, intercept), dense


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("support", [0, 3, 40])
def test_products_of_a_design(threads: int, k: int, support: int) -> None:
    """Margins and gradients of k classes, for any threads and any sparsity of the point."""
    design = random_design(threads)
    records = np.column_stack([design.by_row().toarray(), np.full(N, GRID.intercept_integer)])
    point, dense = random_point(D, support, k)
    residuals = np.random.default_rng(3).integers(-(2**20), 2**20, (N, k))
    assert np.array_equal(design.margins(point), records @ dense)
    assert np.array_equal(design.gradient(residuals), records.T @ residuals)


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("support", [0, 2, 7])
def test_products_of_a_centred_view(k: int, support: int) -> None:
    """Those of the explicit records ``(x - m, b)``, which are never formed."""
    design, rng = random_design(), np.random.default_rng(k)
    columns = np.sort(rng.choice(D, 7, replace=False))
    centre = rng.integers(-(2**19), 2**19, 7) * (rng.random(7) < 0.6)
    view = UnitView(design.on_columns(columns), centre, 100_000, GRID.integer_norm)
    rows = design.by_row().toarray()[:, columns] - centre
    records = np.column_stack([rows, np.full(N, 100_000)])
    point, dense = random_point(7, support, k)
    residuals = rng.integers(-(2**20), 2**20, (N, k))
    assert np.array_equal(view.margins(point), records @ dense)
    assert np.array_equal(view.gradient(residuals), records.T @ residuals)


@pytest.mark.parametrize("k", [1, 3])
def test_each_class_is_a_product_of_its_own(k: int) -> None:
    """A column of the result is the product with that column alone."""
    design = random_design()
    point, _ = random_point(D, 9, k)
    residuals = np.random.default_rng(4).integers(-(2**20), 2**20, (N, k))
    for c in range(k):
        alone = IntegerPoint(point.support, point.values[:, c], point.intercept[c])
        assert np.array_equal(design.margins(point)[:, c], design.margins(alone))
        assert np.array_equal(design.gradient(residuals)[:, c], design.gradient(residuals[:, c]))


@given(
    st.integers(1, 5).flatmap(
        lambda k: st.lists(
            st.lists(st.one_of(st.floats(), st.floats(-1e3, 1e3)), min_size=k, max_size=k),
            min_size=1,
            max_size=6,
        )
    ),
    st.integers(1, 20),
    st.booleans(),
)
def test_a_quantised_point_keeps_the_margins_of_every_class_exact(
    rows: list[list[float]], bits: int, intercept: bool
) -> None:
    """``sqrt(K2) |theta_c| <= 2^53`` for each class, whatever the floats of the others."""
    grid = Grid(1.0, RowMap.NORMALIZE, bits, intercept)
    theta = np.array(rows)
    point, _ = quantised(Point(theta[:-1], theta[-1]), grid.squared_norm)
    stacked = [*point.values.tolist(), point.intercept.tolist()]
    for column in zip(*stacked, strict=True):
        assert grid.squared_norm * sum(value * value for value in column) <= 2**106


@given(st.lists(st.floats(-1e3, 1e3), min_size=6, max_size=6))
def test_a_quantised_point_of_classes_is_close(numbers: list[float]) -> None:
    """Rounding moves no coefficient by more than 2^-28 of the largest."""
    theta = np.array(numbers).reshape(3, 2)
    point, bits = quantised(Point(theta[:-1], theta[-1]), GRID.squared_norm)
    back = np.zeros_like(theta)
    back[point.support], back[-1] = point.values, point.intercept
    largest = float(np.abs(theta).max())
    assert np.abs(np.ldexp(back, -bits) - theta).max() <= largest * 2.0**-28 + 1e-300
