"""The order of events of an evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpfit.data.rows import RowBlock
from dpfit.files.linear_model import LinearModel
from dpfit.fitting.private_evaluation import EvaluationRequest, PrivateEvaluation
from dpfit.privacy.calibration import Budget
from dpfit.privacy.metric_sums import MetricSums


def model() -> LinearModel:
    return LinearModel(
        provenance={},
        private=True,
        loss="logistic",
        classes=(-1.0, 1.0),
        target_range=None,
        n_features=2,
        index_base=1,
        feature_map=None,
        label_column=None,
        weight_column=None,
        offset_column=None,
        exposure_column=None,
        hash_bits=None,
        row_map=("normalize", 1.0),
        entry_clip=1.0,
        intercept=0.0,
        offset=0.0,
        centring=None,
        indices=np.array([0]),
        values=np.array([1.0]),
    )


def block() -> RowBlock:
    return RowBlock(
        indptr=np.array([0, 1, 2]),
        indices=np.array([1, 1]),
        values=np.array([1.0, -1.0]),
        target=np.array([1.0, -1.0]),
    )


def test_nothing_leaves_before_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reservation comes before the door opens; when it fails, the door stays shut."""
    happened: list[str] = []
    noisy = MetricSums.noisy

    def watched(self: MetricSums, noise: Any) -> Any:
        happened.append("released")
        return noisy(self, noise)

    monkeypatch.setattr(MetricSums, "noisy", watched)
    evaluation = PrivateEvaluation(EvaluationRequest(Budget(mu=1.0), "it"), model())
    evaluation.read([block()], "it")
    with pytest.raises(OSError, match="full"):
        evaluation.run(_fail)
    assert happened == []
    evaluation.run(lambda description: happened.append("charged"))
    assert happened == ["charged", "released"]


def _fail(description: object) -> None:
    raise OSError("full")
