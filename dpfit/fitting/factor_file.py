"""What a completion released, as a model file and back; constants go by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from dpfit.algorithms.factor_outcome import FactorOutcome
from dpfit.files.factor_model import FactorModel
from dpfit.privacy.canonical_json import Json

_LARGEST: Final = 1e40  # of a feature, so that a user's Gram matrix stays finite
_POSITIVE: Final = ("noise_variance", "offset_ridge", "huber_threshold")


def factor_model(
    outcome: FactorOutcome,
    *,
    provenance: Json,
    private: bool,
    columns: Mapping[str, str | None],
    items: Sequence[str],
) -> FactorModel:
    """The model of a finished run.

    Parameters
    ----------
    outcome : FactorOutcome
        What was released.
    provenance : mapping
        The run's description, with its events.
    private : bool
        Whether noise protects it.
    columns : mapping
        Names of the columns of the ratings, by role.
    items : sequence of str
        The public items, in the order of the outcome.
    """
    return FactorModel(
        provenance=provenance,
        private=private,
        value_range=outcome.value_range,
        global_mean=outcome.global_mean,
        constants=outcome.constants(),
        columns=columns,
        items=tuple(items),
        bias=outcome.item_bias,
        count=outcome.item_count,
        factors=outcome.item_factors,
    )


def factor_outcome(model: FactorModel) -> FactorOutcome:
    """What a model file holds, ready for each user's own solve.

    Raises
    ------
    ValueError
        A constant is missing, or no number to compute with.
    """
    constants = model.constants
    for name in _POSITIVE:
        if not 1.0 / _LARGEST <= constants.get(name, 1.0) <= _LARGEST:
            raise ValueError(f"{name} is not a sensible number")
    if not np.all(model.count > 0.0):
        raise ValueError("a count is not positive")
    try:
        outcome = FactorOutcome.of_constants(
            constants,
            factors=model.factors,
            bias=model.bias,
            count=model.count,
            global_mean=model.global_mean,
            value_range=model.value_range,
        )
    except KeyError as error:
        raise ValueError(f"constants.{error.args[0]} is missing") from None
    local = outcome.local_model()
    if not (np.abs(local.features).max() <= _LARGEST and np.abs(local.baseline).max() <= _LARGEST):
        raise ValueError("a number is too large to compute with")
    return outcome
