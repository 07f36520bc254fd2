"""The products on scipy's compiled loops, against scipy's own."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from dpfit.design.by_column import ByColumn

M, D = 60, 41


def of_rows(rows: csr_array) -> ByColumn:
    columns, values = rows.indices.astype(np.int32), rows.data.astype(np.int32)
    return ByColumn.of_rows(np.diff(rows.indptr), columns, values, rows.shape[1])


@pytest.fixture
def rows() -> csr_array:
    rng = np.random.default_rng(0)
    drawn = random_array((M, D), density=0.1, format="csr", rng=rng)
    drawn.data = rng.integers(-(2**20), 2**20, drawn.nnz)
    return drawn


def test_the_matrix_is_that_of_its_rows(rows: csr_array) -> None:
    """Columns of rows, some of them, and a range of them are those of scipy."""
    held, places = of_rows(rows), np.array([40, 3, 3, 0])
    assert np.array_equal(held.matrix().toarray(), rows.toarray())
    assert np.array_equal(held.columns_at(places).matrix().toarray(), rows.toarray()[:, places])
    between = held.columns_between(5, 20).matrix().toarray()
    assert np.array_equal(between, rows.toarray()[:, 5:20])
    assert held.columns_at(places[:0]).matrix().shape == (M, 0)


@pytest.mark.parametrize("classes", [(), (1,), (3,)])
def test_products_are_exact_modulo_two_to_the_64(rows: csr_array, classes: tuple[int, ...]) -> None:
    """Both products are those of integers of any size, reduced; also of strided operands."""
    held, exact = of_rows(rows), rows.toarray().astype(object)
    rng = np.random.default_rng(1)
    for product, matrix in ((held.product, exact), (held.transposed_product, exact.T)):
        wide = rng.integers(-(2**62), 2**62, (2 * matrix.shape[1], *classes))
        for operand in (wide[: matrix.shape[1]], wide[::2]):
            wanted = (matrix @ operand.astype(object) + 2**63) % 2**64 - 2**63
            assert np.array_equal(product(operand), wanted.astype(np.int64))


def test_the_package_around_the_loops_is_not_imported() -> None:
    """A design needs numpy alone, so that a fit of a small file is not spent on imports."""
    code = "import sys, dpfit.design.builder; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
