"""What a fit released, as a model file."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dpfit.algorithms.outcome import Outcome
from dpfit.files.linear_model import LinearModel
from dpfit.fitting.linear_fit import LinearFit
from dpfit.privacy.canonical_json import Json


def linear_model(
    fitted: LinearFit,
    outcome: Outcome,
    *,
    feature_map: Json | None,
    hash_bits: int | None = None,
    label: str | None = None,
    attributes: Mapping[str, str] | None = None,
) -> LinearModel:
    """The model document of a finished run.

    It carries the charge but neither time nor run number, so that equal runs give equal bytes;
    the ledger's ``released`` entry names the model by its hash.

    Parameters
    ----------
    fitted : LinearFit
        The run.
    outcome : Outcome
        What it released.
    feature_map : mapping or None
        How named columns become features.
    hash_bits : int or None
        Of sparse input whose columns were folded.
    label : str or None
        Column of the target, where columns have names.
    attributes : mapping of str to str, optional
        Columns of ``weight``, ``offset`` and ``exposure``.
    """
    plan = fitted.plan
    named = attributes or {}
    centring = outcome.centring
    constant = plan.grid.intercept_value if centring is None else centring.constant
    return LinearModel(
        provenance={
            **fitted.description(),
            "events": [event.to_json() for event in plan.events],
        },
        private=fitted.request.private,
        loss=plan.loss.name,
        classes=fitted.classes,
        target_range=fitted.target_range,
        n_features=plan.facts.integer("features"),
        index_base=fitted.index_base,
        feature_map=feature_map,
        label_column=label,
        weight_column=named.get("weight"),
        offset_column=named.get("offset"),
        exposure_column=named.get("exposure"),
        hash_bits=hash_bits,
        row_map=(str(plan.grid.row_map), plan.grid.row_norm),
        entry_clip=plan.grid.entry_clip,
        intercept=outcome.intercept * constant,
        offset=outcome.offset - math.log(fitted.max_exposure),
        centring=None if centring is None else (centring.centre, constant),
        indices=outcome.columns,
        values=outcome.values,
    )
