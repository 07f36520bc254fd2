"""A released model as numbers, for an attacker who sees nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfit.algorithms.factor_outcome import FactorOutcome
from dpfit.algorithms.outcome import Outcome
from dpfit.audit.stand_ins import Floats
from dpfit.audit.witness import flat


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
