"""Centred rows of length one, as a view."""

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

GRID = Grid(1.0, RowMap.NORMALIZE, 20, True)
N, D = 40, 12


def random_design(seed: int) -> LocalDesign:
    rng = np.random.default_rng(seed)
    return dense_design(rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.5), GRID)


def dense_records(design: LocalDesign, columns: np.ndarray, centre: np.ndarray) -> np.ndarray:
    rows = design.by_row().toarray()[:, columns] - centre
    return np.column_stack([rows, np.full(N, 100_000)])


@pytest.mark.parametrize("seed", range(5))
def test_the_view_equals_the_dense_records(seed: int) -> None:
    """Lengths, margins and sums are those of the centred records, in exact integers."""
    design, rng = random_design(seed), np.random.default_rng(seed)
    columns = np.sort(rng.choice(D, 7, replace=False))
    centre = rng.integers(-(2**19), 2**19, 7) * (rng.random(7) < 0.6)
    view = UnitView(design.on_columns(columns), centre, 100_000, GRID.integer_norm)
    records = dense_records(design, columns, centre)
    support = np.array([0, 3, 6])
    values = rng.integers(-(2**25), 2**25, 3)
    theta = np.zeros(8, np.int64)
    theta[support], theta[-1] = values, 777
    multipliers = rng.integers(-(2**20), 2**20, N)
    assert np.array_equal(view.margins(IntegerPoint(support, values, 777)), records @ theta)
    assert np.array_equal(view.gradient(multipliers), records.T @ multipliers)
    assert np.array_equal(view.lengths, np.sqrt((records.astype(float) ** 2).sum(1)))


@given(st.integers(0, 2**32), st.integers(1, 2**20), st.floats(0.0, 3.0), st.integers(1, 2**20))
def test_no_record_exceeds_its_share(seed: int, unit: int, spread: float, constant: int) -> None:
    """limit^2 |z|^2 <= (unit K_int)^2 in Python integers, for any centre and constant."""
    design, rng = random_design(seed), np.random.default_rng(seed)
    centre = np.rint(rng.standard_normal(D) * spread * GRID.integer_norm).astype(np.int64)
    view = UnitView(design.on_columns(np.arange(D)), centre, constant, GRID.integer_norm)
    records = design.by_row().toarray() - centre
    for limit, record in zip(view.limits(unit).tolist(), records.tolist(), strict=True):
        square = sum(entry * entry for entry in record) + constant**2
        assert limit**2 * square <= (unit * GRID.integer_norm) ** 2


def test_the_limit_is_not_wasteful() -> None:
    """The bound on a multiplier loses at most one unit and one part in 2^39."""
    design = random_design(0)
    view = UnitView(design.on_columns(np.arange(D)), np.zeros(D, int), 100_000, GRID.integer_norm)
    exact = (1 << 20) * GRID.integer_norm / view.lengths
    assert np.all(view.limits(1 << 20) >= exact * (1 - 2.0**-39) - 1)


@given(st.integers(0, 2**32), st.integers(1, 2**20))
def test_column_sums_have_rows_below_the_unit(seed: int, unit: int) -> None:
    """Each record's share of the column sums has norm at most ``unit``, and the sums are exact."""
    design = random_design(seed)
    dense = design.by_row().toarray()
    parts = np.concatenate([np.maximum(dense, 0), np.maximum(-dense, 0)], axis=1)
    scaled = parts * unit // GRID.integer_norm
    assert np.array_equal(design.column_sums(unit, GRID.integer_norm), scaled.sum(0))
    assert np.all((scaled**2).sum(1) <= unit**2)


def test_squared_row_norms_are_exact() -> None:
    """They equal the integer sums of squares."""
    design = random_design(3)
    assert np.array_equal(design.squared_row_norms(), (design.by_row().toarray() ** 2).sum(1))
