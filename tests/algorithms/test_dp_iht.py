"""dp-iht: its two selections."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import dpfit.fitting.linear_fit as linear_fit
from dense_rows import dense_block
from dpfit.data.rows import RowBlock
from dpfit.errors import UsageError
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.request import FitRequest
from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.declared_facts import Layout
from dpfit.privacy.mechanisms.noise import NoNoise

N, D, S, T = 300, 20, 4, 3
BUDGET = Budget.from_request(None, None, 0.1, None)


def blocks() -> Iterator[RowBlock]:
    rng = np.random.default_rng(0)
    values = rng.standard_normal((N, D))
    yield dense_block(values, (values @ np.linspace(-1, 1, D) > 0).astype(np.float64))


def loaded(selection: str | None, budget: Budget | None, **changes: object) -> LinearFit:
    facts = {"algorithm": "dp-iht", "iterations": T, "selection": selection, **changes}
    facts["without_noise"] = budget is None
    asked = FitRequest(sparsity=S, budget=budget, dataset="toy", **facts)
    return LinearFit.of(asked, blocks(), layout=Layout, source="toy.svm")


def ignore(*_: object) -> None:
    pass


def test_without_noise_both_selections_fit_the_same_model() -> None:
    """The same support at every step, hence the same bits."""
    one, other = (
        loaded(selection, None).run(ignore, ignore) for selection in ("one-shot", "peeling")
    )
    assert one.columns.tolist() == other.columns.tolist()
    assert one.values.tolist() == other.values.tolist()
    assert one.intercept == other.intercept


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("selection", [None, "one-shot", "peeling"])
def test_the_charge_keeps_the_budget(selection: str | None, adjacency: Adjacency) -> None:
    """Supports and values together cost at most and nearly all of rho."""
    plan = loaded(selection, BUDGET, adjacency=adjacency).plan
    spent = compose(plan.events, adjacency).rho
    assert spent <= BUDGET.total_rho
    assert float(spent) == pytest.approx(0.1, rel=1e-3)
    assert plan.algorithm.settings()["selection"] == (selection or "one-shot")
    assert sum(one.budget_part for one in plan.algorithm.planned()) == 1


def test_peeling_has_one_scale_for_scores_and_values() -> None:
    """As in the paper: where no l2 bound helps the values, both noises are equally large."""
    support, values = loaded("peeling", BUDGET, entry_clip=0.1).plan.releases
    entry = support.sensitivity.add_remove
    of_scores = support.noise_multiplier
    of_values = (1 << values.scale_bits) / (values.unit * entry)
    assert of_values == pytest.approx(of_scores * ((S + 1) / S) ** 0.5, rel=0.01)


def test_every_round_and_every_reading_has_a_noise_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """s rounds and one reading a step, no step number twice."""
    steps: list[int] = []

    class Counted(NoNoise):
        def laplace(self, scale_bits: int, size: int, step: int) -> np.ndarray:
            steps.append(step)
            return super().laplace(scale_bits, size, step)

    monkeypatch.setattr(linear_fit, "noise_of", lambda **_: Counted())
    loaded("peeling", BUDGET).run(ignore, ignore)
    assert len(steps) == len(set(steps)) == T * (S + 1)


def test_a_private_run_by_peeling_ends_with_s_columns() -> None:
    """End to end with real noise."""
    outcome = loaded("peeling", BUDGET).run(ignore, ignore)
    assert len(outcome.columns) == S
    assert np.all(np.isfinite(outcome.values))


@pytest.mark.parametrize(
    ("algorithm", "selection"), [("dp-ight", "peeling"), ("dp-iht", "lottery")]
)
def test_a_selection_that_is_not_there_is_refused(algorithm: str, selection: str) -> None:
    """--selection belongs to dp-iht, and has two values."""
    with pytest.raises(UsageError, match="--selection"):
        FitRequest(
            sparsity=S,
            budget=None,
            without_noise=True,
            dataset="toy",
            algorithm=algorithm,
            selection=selection,
        )


@pytest.mark.parametrize("selection", ["one-shot", "peeling"])
@pytest.mark.parametrize("step_size", [1e-320, 1e308])
def test_no_step_size_costs_the_model(selection: str, step_size: float) -> None:
    """Every number of the model is finite, its intercept too: the charge is made by then."""
    outcome = loaded(selection, BUDGET, step_size=step_size, row_norm=1e6).run(ignore, ignore)
    assert np.isfinite(np.append(outcome.values, outcome.intercept)).all()
