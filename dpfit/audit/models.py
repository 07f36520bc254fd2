"""A released model as numbers, for an attacker who sees nothing else."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dpfit.algorithms.factor_outcome import FactorOutcome
from dpfit.algorithms.outcome import Outcome
from dpfit.audit.stand_ins import Floats
from dpfit.audit.witness import flat
from dpfit.errors import UsageError
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.matrix_fit import MatrixFit

MOST_NUMBERS: Final = 4000  # a learner's time goes by their cube, its memory by their square


def numbers_of(model: Outcome | FactorOutcome, n_features: int) -> Floats:
    """All that a model tells, always at the same places.

    Parameters
    ----------
    model : Outcome or FactorOutcome
        As released.
    n_features : int
        Columns of the data; of no meaning to ratings.
    """
    if isinstance(model, FactorOutcome):
        # Factors are known up to a rotation, the products of theirs for each pair exactly.
        factors = model.item_factors
        parts: list[Any] = [factors @ factors.T] if model.rank else [np.zeros((len(factors),) * 2)]
        parts += [model.item_bias, model.item_count, model.global_mean, model.noise_variance]
        return np.concatenate([flat(part) for part in parts])
    shape = (n_features, *model.values.shape[1:])
    coefficients, centre = np.zeros(shape), np.zeros(n_features)
    coefficients[model.columns] = model.values
    constant = 0.0
    if model.centring is not None:
        centre[model.columns] = model.centring.centre
        constant = model.centring.constant
    parts = [coefficients, centre, constant, model.intercept, model.offset]
    return np.concatenate([flat(part) for part in parts])


def numbers_by_column(world: LinearFit | MatrixFit) -> int:
    """How many of :func:`numbers_of` belong to columns or pairs of items; few others do not."""
    if isinstance(world, MatrixFit):
        n_items = world.plan.grid.n_items
        return n_items * (n_items + 2)
    return world.plan.facts.integer("features") * (world.plan.loss.n_scores + 1)


def check_learnable(world: LinearFit | MatrixFit) -> None:
    """Refuse, before the first run, models that a learner cannot learn from.

    Raises
    ------
    UsageError
        There are more than :data:`MOST_NUMBERS` numbers.
    """
    if numbers_by_column(world) > MOST_NUMBERS:
        raise UsageError(
            f"--attack black-box is for models of at most {MOST_NUMBERS} numbers",
            hint="attack white-box, or synthetic data of fewer --features",
        )
