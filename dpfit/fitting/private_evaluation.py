"""A private evaluation from rows to metrics, in the order that keeps its promise.

The release is planned and its charge fixed, rows are read and added up behind the door, the charge
is reserved on disk, only then the noise key is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit import __version__
from dpfit.data.rows import RowBlock
from dpfit.files.linear_model import LinearModel
from dpfit.fitting.evaluated_target import classes_of, values_of
from dpfit.fitting.metric_choice import metric_choice
from dpfit.fitting.prediction import LinearPredictor
from dpfit.fitting.released_metrics import NoisyMetric, SumNoise
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.canonical_json import Json
from dpfit.privacy.events import Event, NonPrivateEvent
from dpfit.privacy.fact_settler import rows_fact
from dpfit.privacy.laplace_release import LaplaceRelease
from dpfit.privacy.mechanisms.noise import noise_of, prepare_noise
from dpfit.privacy.metric_release import plan_metrics
from dpfit.privacy.metric_sums import MetricSums
from dpfit.privacy.public_facts import Origin, PublicFact, PublicFacts
from dpfit.privacy.target_map import in_range

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class EvaluationRequest:
    """What a user may say about an evaluation.

    Attributes
    ----------
    budget : Budget
        To spend on it.
    dataset : str
        What the ledger calls the data.
    adjacency : Adjacency
        The neighbouring relation of the guarantee.
    n_rows : int or None
        The public number of rows, where declared.
    loss_clip : float or None
        Bound on a record's log loss or deviance; None: the default.
    strict : bool
        Refuse to assume the number of rows.
    seed : int or None
        Repeats the noise; the result is not private.
    """

    budget: Budget
    dataset: str
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    n_rows: int | None = None
    loss_clip: float | None = None
    strict: bool = False
    seed: int | None = None

    @property
    def private(self) -> bool:
        return self.seed is None

    @property
    def without_noise(self) -> bool:
        return False


class PrivateEvaluation:
    """An evaluation whose charge is fixed; nothing was read or spent yet.

    Parameters
    ----------
    request : EvaluationRequest
        What the user asked for.
    model : LinearModel
        Public with respect to these records: whatever it cost was charged by its own run.

    Attributes
    ----------
    events : sequence of Event
        The charge.
    facts : PublicFacts
        Declared and assumed.

    Raises
    ------
    UsageError, PrivacyError
        The clip does not belong here, or the budget is too small.
    """

    def __init__(self, request: EvaluationRequest, model: LinearModel) -> None:
        self.request = request
        self.facts = PublicFacts(strict=request.strict)
        self._model = model
        self._predictor = LinearPredictor(model)
        self._choice = metric_choice(model, request.loss_clip)
        metrics = self._choice.records
        self._release = plan_metrics(metrics, request.budget, request.adjacency)
        self._sums = MetricSums(metrics, self._release)
        self.events: Sequence[Event] = [self._release.event()]
        if not request.private:
            self.events = [NonPrivateEvent(label=self._release.label)]

    def read(self, blocks: Iterable[RowBlock], source: str) -> None:
        """Add up what the records contribute.

        Parameters
        ----------
        blocks : iterable of RowBlock
            With targets.
        source : str
            What to call the input in messages.

        Raises
        ------
        DataError, PrivacyError
            They hold what the model cannot be held against, or not the declared number of rows; or
            that number would have to be assumed in a strict run.
        """
        for block in blocks:
            scores = self._predictor.margins(block)
            self._sums.add(scores, _mapped_target(self._model, block, source))
        request = self.request
        found = self._sums.n_rows
        self.facts.add(rows_fact(found, request.n_rows, request.adjacency, source))
        for name, value in self._of_model().items():
            self.facts.add(PublicFact(name, value, Origin.DECLARED, "MODEL"))

    def _of_model(self) -> dict[str, Any]:
        """Public facts that the model brings."""
        model = self._model
        if model.classes is not None:
            return {"features": model.n_features, "labels": list(model.classes)}
        assert model.target_range is not None
        return {"features": model.n_features, "target_range": list(model.target_range)}

    @property
    def warnings(self) -> list[str]:
        """What its promise is not, if the model's is to more than rows."""
        provenance = self._model.provenance
        record, unit = provenance.get("record", "row"), provenance.get("unit")
        if record == "row":
            return []
        named = f"{record} ({unit})" if isinstance(unit, str) else f"{record}"
        return [
            f"the model protects each whole {named}, but this evaluation single rows: of k rows of "
            "one, as if the noise were k times smaller; give a file with one row of each"
        ]

    @property
    def noise(self) -> SumNoise:
        """On each sum, in records."""
        release = self._release
        scale = float(1 << release.scale_bits) / release.unit
        return SumNoise(scale, isinstance(release, LaplaceRelease))

    def run(self, reserve: Callable[[Json], None]) -> list[NoisyMetric]:
        """Charge, then release.

        Parameters
        ----------
        reserve : callable
            Puts the charge of ``events``, described by its argument, on disk.
        """
        prepare_noise()
        reserve(self.description())
        noise = noise_of(private=True, seed=self.request.seed)
        sums = self._sums.noisy(noise)
        return self._choice.metrics(sums, self.facts.integer("rows"), self.noise)

    def description(self) -> Json:
        """What the ledger says about the run, beside its events."""
        request = self.request
        clip = getattr(self._choice.records, "clip", None)
        return {
            "dpfit": __version__,
            "dataset": request.dataset,
            "algorithm": "evaluate",
            "private": request.private,
            "reproducible": request.seed is not None,
            "adjacency": str(request.adjacency),
            "budget": request.budget.to_json(),
            "settings": {} if clip is None else {"loss_clip": clip},
            "public_facts": self.facts.to_json(),
        }


def _mapped_target(model: LinearModel, block: RowBlock, source: str) -> Floats:
    """A block's targets as the numbers of their classes, or clipped to the range and in [0, 1]."""
    if model.classes is not None:
        return classes_of(block, model.classes, source)
    assert model.target_range is not None
    return in_range(values_of(block, source), model.target_range)
