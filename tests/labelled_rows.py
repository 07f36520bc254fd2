"""Sparse rows with labels, and the same as a LIBSVM file, for tests of both faces."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

BUDGET: dict[str, Any] = {"eps": 4.0, "delta": 1e-3}
FACTS: dict[str, Any] = {"n_rows": 80, "n_features": 12, "labels": (-1, 1)}


@dataclass(frozen=True)
class LabelledRows:
    """Sparse rows with labels."""

    X: csr_array
    y: NDArray[Any]


def labelled_rows(n_rows: int = 80, n_features: int = 12) -> LabelledRows:
    """Rows of numbers with four decimals; the label -1 or 1 decides the first column."""
    generator = np.random.Generator(np.random.PCG64(0))
    X = generator.integers(1, 10_000, (n_rows, n_features)) / 10_000
    X[generator.random(X.shape) < 0.6] = 0.0
    y = np.where(np.arange(n_rows) % 2, 1, -1)
    X[:, 0], X[:, -1] = y * 0.75, 0.5
    return LabelledRows(csr_array(X), y)


def write_svm(path: str, X: csr_array, y: NDArray[Any]) -> None:
    """The rows as LIBSVM, columns from 1."""
    with open(path, "w", encoding="utf-8") as stream:
        for row, label in enumerate(y.tolist()):
            part = slice(X.indptr[row], X.indptr[row + 1])
            cells = zip((X.indices[part] + 1).tolist(), X.data[part].tolist(), strict=True)
            stream.write(f"{label} " + " ".join(f"{j}:{value!r}" for j, value in cells) + "\n")


def fitted_coefficients(pickled: bytes) -> bytes:
    """What a fit of an estimator to these rows gives, in a process that knows this file alone."""
    rows = labelled_rows()
    return bytes(pickle.loads(pickled).fit(rows.X, rows.y).coef_.tobytes())
