"""Algorithms on several classes, through the fit that users run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from dense_rows import dense_block
from dpfit.algorithms.outcome import Outcome
from dpfit.data.rows import RowBlock
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.request import FitRequest
from dpfit.privacy.calibration import Budget
from dpfit.privacy.declared_facts import Layout

N, D = 600, 24
BUDGET = Budget.from_request(8.0, 1e-4, None, None)


def blocks(k: int) -> Iterator[RowBlock]:
    """Rows whose class is the larger of k sums of two columns each."""
    rng = np.random.default_rng(1)
    X = np.abs(rng.standard_normal((N, D))) * (rng.random((N, D)) < 0.5)
    X[:, : 2 * k] *= 3.0
    target = X[:, : 2 * k].reshape(N, k, 2).sum(axis=2).argmax(axis=1).astype(float)
    for part in np.array_split(np.arange(N), 3):
        yield dense_block(X[part], target[part])


def fitted(k: int, **request: object) -> Outcome:
    asked = FitRequest(**{"sparsity": None, "budget": None, "dataset": "toy", **request})
    fit = LinearFit.of(asked, blocks(k), layout=Layout, source="toy.svm")
    return fit.run(lambda described: None, lambda done: None)


def test_two_classes_are_a_logistic_model() -> None:
    """With the clip times sqrt(2) and half the step, the scores' difference is the logistic one.

    The residuals of the two classes are r and -r: their norm is sqrt(2) |r|, and their difference
    moves twice.
    """
    plain = {"without_noise": True, "algorithm": "gd", "iterations": 30}
    one = fitted(2, loss="logistic", step_size=40.0, residual_clip=0.25, **plain)
    two = fitted(2, loss="multinomial", step_size=20.0, residual_clip=0.25 * 2**0.5, **plain)
    assert two.values[:, 1] - two.values[:, 0] == pytest.approx(one.values, abs=2e-3)
    assert two.values.sum(axis=1) == pytest.approx(np.zeros(D), abs=2e-3)
    assert two.intercept[1] - two.intercept[0] == pytest.approx(one.intercept, abs=2e-3)


@pytest.mark.parametrize("algorithm", ["dp-ight", "dp-gd", "dp-screen"])
@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("k", [2, 4])
def test_sparsity_is_per_class_or_of_rows(algorithm: str, joint: bool, k: int) -> None:
    """s coefficients for each class, or s columns for all; the model lists used columns only.

    With a seed: a noisy coefficient is 0 once in a million.
    """
    asked = {"budget": BUDGET, "sparsity": 3, "joint_rows": joint, "seed": 4}
    outcome = fitted(k, loss="multinomial", algorithm=algorithm, **asked)
    used = outcome.values != 0.0
    assert outcome.values.shape == (len(outcome.columns), k)
    assert np.shape(outcome.intercept) == (k,)
    assert used.any(axis=1).all()
    if joint:
        assert len(outcome.columns) == 3
        assert used.all()
    else:
        assert used.sum(axis=0).tolist() == [3] * k


@pytest.mark.parametrize("algorithm", ["dp-ight", "dp-gd", "dp-screen"])
@pytest.mark.parametrize("joint", [False, True])
def test_without_noise_each_class_finds_its_columns(algorithm: str, joint: bool) -> None:
    """The two columns that speak for a class are kept for it."""
    outcome = fitted(
        3,
        loss="multinomial",
        algorithm=algorithm,
        without_noise=True,
        sparsity=6 if joint else 2,
        joint_rows=joint,
    )
    assert outcome.columns.tolist() == [0, 1, 2, 3, 4, 5]
    for c in range(3):
        assert np.argsort(-outcome.values[:, c])[:2].tolist() in (
            [2 * c, 2 * c + 1],
            [2 * c + 1, 2 * c],
        )


@pytest.mark.parametrize("algorithm", ["dp-ight", "dp-gd", "dp-screen"])
def test_threads_do_not_change_a_bit(algorithm: str) -> None:
    """A seeded model of several classes is the same for any number of threads."""
    asked = {"loss": "multinomial", "algorithm": algorithm, "sparsity": 3, "budget": BUDGET}
    one, many = (fitted(3, seed=4, threads=threads, **asked) for threads in (1, 3))
    assert np.array_equal(one.columns, many.columns)
    assert np.array_equal(one.values, many.values)
    assert np.array_equal(one.intercept, many.intercept)
