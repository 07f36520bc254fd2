"""One fit from rows to a model: the order of events that keeps every promise.

Settings are checked, the charge is tested against the cap, rows are read, the exact charge is
reserved on disk, only then the noise key is made, and what comes out of the Curator becomes the
model. Every face of the program goes through here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from dpfit import __version__
from dpfit.algorithms.outcome import Outcome
from dpfit.data.rows import RowBlock
from dpfit.fitting.plan import FitPlan, finest_grid, plan_fit
from dpfit.fitting.request import FitRequest
from dpfit.fitting.request_checks import check_loss
from dpfit.losses.absolute import Absolute
from dpfit.losses.base import Loss
from dpfit.losses.huber import Huber
from dpfit.losses.logistic import Logistic
from dpfit.losses.multinomial import Multinomial
from dpfit.losses.names import OF_CLASSES
from dpfit.losses.poisson import Poisson
from dpfit.losses.squared import Squared
from dpfit.privacy.canonical_json import Json
from dpfit.privacy.collected_records import Collected, CollectedRecords, RecordMap
from dpfit.privacy.curator import Curator
from dpfit.privacy.declared_facts import Layout
from dpfit.privacy.events import Event
from dpfit.privacy.fact_settler import FactSettler
from dpfit.privacy.mechanisms.noise import Noise, noise_of, prepare_noise
from dpfit.privacy.public_facts import Origin, PublicFact, PublicFacts
from dpfit.privacy.summary import Label


class LinearFit:
    """A fit whose rows were read and whose plan is fixed; nothing was spent yet.

    Parameters
    ----------
    request : FitRequest
        What the user asked for.
    collected : Collected
        The private rows, as read.
    layout : callable
        Tells, once the rows were read, what their format fixes about the columns.
    source : str
        What to call the input in messages.

    Attributes
    ----------
    plan : FitPlan
        Settings, charge and public facts.
    index_base : int
        Number of the input's first column.
    max_exposure : float
        The exposure that the scores of counts are for.
    classes : tuple of labels, or None
        Of two the negative one first.
    target_range : (float, float) or None
        Bounds of a real target.

    Raises
    ------
    DataError, PrivacyError
        The rows cannot be used, or a fact would have to be assumed in a strict run.
    """

    def __init__(
        self,
        request: FitRequest,
        collected: Collected,
        *,
        layout: Callable[[], Layout],
        source: str,
    ) -> None:
        self.request = request
        facts = PublicFacts(strict=request.strict)
        settler = FactSettler(collected.summary(), request.declared, facts, source)
        settler.settle_shape(request.adjacency, layout())
        if request.owners is not None:
            settler.settle_owners(request.adjacency, request.owners)
            origin = Origin.DEFAULT if request.unit_clip is None else Origin.DECLARED
            facts.add(PublicFact("unit_clip", request.owners.clip, origin, "--unit-clip"))
        self.index_base = settler.index_base
        loss_name = self._settle_loss(settler, facts)
        self.classes: tuple[Label, ...] | None = None
        self.target_range: tuple[float, float] | None = None
        span = 1.0
        if loss_name in OF_CLASSES:
            self.classes = settler.settle_labels(loss_name, request.positive_label)
        else:
            self.target_range = settler.settle_range(loss_name)
            span = self.target_range[1] - self.target_range[0]
        loss = self._loss(loss_name)
        self.plan: FitPlan = self._planned(facts, loss, span)
        exposure = settler.settle_exposure(loss_name)
        self.max_exposure = 1.0 if exposure is None else exposure
        record_map = RecordMap(
            grid=self.plan.grid,
            n_features=facts.integer("features"),
            index_base=self.index_base,
            classes=self.classes,
            target_range=self.target_range,
            log_exposure=None if exposure is None else math.log(exposure),
            max_weight=settler.settle_weight(),
            max_rows=None if request.owners is None else request.owners.max_rows,
        )
        self._records = collected.records(record_map)
        self._check(source)

    def _planned(self, facts: PublicFacts, loss: Loss, target_span: float) -> FitPlan:
        """The plan, once the public facts are settled."""
        return plan_fit(self.request, facts, loss, target_span=target_span)

    def _check(self, source: str) -> None:
        """Refuse, before the charge, what would fail after it."""
        plan = self.plan
        self._records.check(plan.releases, plan.loss.n_scores, plan.grid, source)

    @classmethod
    def of(
        cls,
        request: FitRequest,
        blocks: Iterable[RowBlock],
        *,
        layout: Callable[[], Layout],
        source: str,
    ) -> LinearFit:
        """The fit of rows that are read here, once.

        Raises
        ------
        DataError, UsageError, StorageError
            The rows cannot be read, or held.
        """
        collected = CollectedRecords(
            finest_grid(request), source, threads=request.threads, storage=request.storage
        )
        collected.collect(blocks)
        return cls(request, collected, layout=layout, source=source)

    @property
    def events(self) -> Sequence[Event]:
        """The charge."""
        return self.plan.events

    @property
    def protected(self) -> str:
        """The public fact that counts those whom the guarantee protects."""
        return "rows" if self.request.owners is None else "units"

    @property
    def steps(self) -> int:
        """How often :meth:`run` reports progress."""
        return self.plan.algorithm.steps

    def run(
        self, reserve: Callable[[Json], None], report_progress: Callable[[int], None]
    ) -> Outcome:
        """Charge, then fit.

        Parameters
        ----------
        reserve : callable
            Puts the charge of ``plan.events``, described by its argument, on disk; the noise key is
            made only after it returned.
        report_progress : callable
            Called between iterations with the number done.

        Returns
        -------
        Outcome
            Coefficients on rows as the record map leaves them.
        """
        prepare_noise()
        reserve(self.description())
        noise = noise_of(private=not self.request.without_noise, seed=self.request.seed)
        return self.plan.algorithm.run(self.curator(noise), report_progress)

    def curator(self, noise: Noise) -> Curator:
        """The door to these records, with that noise, for the plan.

        A run that is charged goes through :meth:`run`; an audit, whose records are synthetic, makes
        the noise of each trial itself.
        """
        return Curator(
            records=self._records,
            loss=self.plan.loss,
            grid=self.plan.grid,
            n_rows=self.plan.n_rows,
            releases=self.plan.releases,
            noise=noise,
            owners=self.request.owners,
        )

    def description(self) -> Json:
        """What the ledger says about the run, beside its events."""
        request, plan = self.request, self.plan
        of_units: Json = {"record": "unit", "unit": request.unit} if request.owners else {}
        return {
            **of_units,
            "dpfit": __version__,
            "dataset": request.dataset,
            "algorithm": request.algorithm,
            "private": request.private,
            "reproducible": request.seed is not None,
            "adjacency": str(request.adjacency),
            "budget": request.budget.to_json() if request.budget else None,
            "calibration": request.calibration,
            "settings": plan.algorithm.settings(),
            "row_map": {
                "kind": str(plan.grid.row_map),
                "norm": plan.grid.row_norm,
                "entry_clip": plan.grid.entry_clip,
            },
            "public_facts": plan.facts.to_json(),
        }

    def _settle_loss(self, settler: FactSettler, facts: PublicFacts) -> str:
        loss, origin = self.request.loss, Origin.DECLARED
        if loss is None:
            declared = self.request.declared
            said = declared.labels is not None or declared.target_range is not None
            loss = settler.infer_loss(of_classes=self.request.of_classes)
            origin = Origin.DECLARED if said else Origin.ASSUMED
        facts.add(PublicFact("loss", loss, origin, "--loss"))
        check_loss(self.request, loss)
        return loss

    def _loss(self, name: str) -> Loss:
        if name == "multinomial":
            assert self.classes is not None
            return Multinomial(len(self.classes))
        if name == "huber":
            assert self.target_range is not None
            return Huber(self.request.huber_of_range(self.target_range))
        if name == "absolute":
            return Absolute(self.request.quantile or 0.5)
        plain: dict[str, Loss] = {one.name: one for one in (Logistic(), Poisson(), Squared())}
        return plain[name]
