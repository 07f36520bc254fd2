"""Bounds of perturbed minimisers at the ends of what floats hold, and the plan at the same ends."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpfit.data.rows import RowBlock
from dpfit.errors import DataError
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.request import FitRequest
from dpfit.privacy.accountant import Cost, compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.declared_facts import DeclaredFacts, Layout


def _cost(doublings: int, noise: Fraction) -> Cost:
    return Cost(gaussian=None, rho=None, noise=noise, pure=Fraction(0), doublings=doublings)


@pytest.mark.parametrize("doublings", [1, 900, 1001, 1100, 10**9])
@pytest.mark.parametrize("epsilon", [0.5, 9.0, 40.0])
def test_no_doubling_is_forgotten(doublings: int, epsilon: float) -> None:
    """However often delta doubles, it is at least the undoubled one times that, or 1."""
    once = _cost(0, Fraction(6, 100)).delta(epsilon)
    log_delta = float(np.log2(_cost(doublings, Fraction(6, 100)).delta(epsilon)))
    assert log_delta >= min(0.0, float(np.log2(once)) + doublings) - 1e-9


def test_a_share_of_delta_is_never_rounded_up() -> None:
    """Below the normal floats a share of delta counts as zero, which has no finite epsilon."""
    assert np.isinf(_cost(1060, Fraction(1)).epsilon(1.0 - 2.0**-53))
    assert np.isfinite(_cost(900, Fraction(1)).epsilon(0.5))


def _fit(rows: int, **asked: object) -> LinearFit:
    chance = np.random.default_rng(1)
    columns = 3
    values = chance.normal(size=rows * columns)
    block = RowBlock(
        np.arange(rows + 1, dtype=np.int64) * columns,
        np.tile(np.arange(columns, dtype=np.int32), rows),
        values,
        chance.normal(size=rows),
    )
    n_rows = asked.pop("n_rows", rows)
    declared = DeclaredFacts(n_rows=n_rows, n_features=columns, index_base=0, target_range=(-1, 1))  # type: ignore[arg-type]
    request = FitRequest(
        **{  # type: ignore[arg-type]
            "sparsity": None,
            "without_noise": False,
            "dataset": "t",
            "loss": "absolute",
            "adjacency": Adjacency.ADD_REMOVE,
            "declared": declared,
            "positive_label": None,
            "strict": False,
            "seed": 1,
            "threads": 1,
        }
        | asked
    )
    return LinearFit.of(request, [block], layout=Layout, source="t")


@pytest.mark.parametrize("algorithm", ["median-objective", "median-irls"])
@pytest.mark.parametrize("noise", ["l2", "l1"])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 1.0, 1e5])
@pytest.mark.parametrize("ridge", [None, 1e-4])
def test_no_noise_is_too_long_for_its_floats(
    algorithm: str, noise: str, epsilon: float, ridge: float | None
) -> None:
    """The radius that is charged grows with the noise: no run fails after its charge for it."""
    smoothing = 2e9 if ridge is not None and algorithm == "median-objective" else None
    if smoothing is not None and epsilon < 1e-4:
        return  # no ridge this small is feasible
    fit = _fit(
        4,
        algorithm=algorithm,
        noise=noise,
        ridge=ridge,
        smoothing=smoothing,
        budget=Budget(epsilon=epsilon),
    )
    assert np.isfinite(fit.run(lambda _: None, lambda _: None).intercept)


@pytest.mark.parametrize("algorithm", ["median-objective", "median-irls"])
def test_far_more_records_than_declared_are_refused_ahead(algorithm: str) -> None:
    """The radius is for the declared number; what cannot be kept ends before the charge."""
    with pytest.raises(DataError, match="far more records than declared"):
        _fit(3000, n_rows=1, algorithm=algorithm, ridge=0.01, budget=Budget(epsilon=100.0))


@pytest.mark.parametrize("delta", [1e-300, 1e-12, 0.5])
@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 2e3, 1e5])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_ends_of_budgets(epsilon: float, delta: float, adjacency: Adjacency) -> None:
    """Every budget that may be asked for has a plan within it."""
    fit = _fit(
        50,
        algorithm="median-objective",
        budget=Budget(epsilon=epsilon, delta=delta),
        adjacency=adjacency,
    )
    cost = compose([release.event() for release in fit.plan.releases], adjacency)
    assert cost.epsilon(delta) <= epsilon


def test_what_is_minimised_is_what_was_charged() -> None:
    """An objective with less ridge than the charge reckons with is refused."""
    fit = _fit(50, algorithm="median-irls", budget=Budget(epsilon=1.0))
    fit.plan = replace(fit.plan, algorithm=replace(fit.plan.algorithm, ridge=0.5))  # type: ignore[type-var]
    with pytest.raises(RuntimeError, match="another objective"):
        fit.run(lambda _: None, lambda _: None)
