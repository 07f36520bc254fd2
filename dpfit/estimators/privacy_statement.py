"""What a fitted estimator says of its guarantee."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from dpfit.estimators.privacy_warnings import AssumedFactWarning, PrivacyWarning
from dpfit.estimators.python_words import python_words
from dpfit.fitting.charge import charge_of
from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.canonical_json import Json
from dpfit.privacy.events import Event
from dpfit.privacy.ledger import Ledger
from dpfit.privacy.ledger_checkpoint import events_of
from dpfit.privacy.public_facts import Origin, PublicFacts


@dataclass(frozen=True)
class PrivacyStatement:
    """What one run promises, by itself; the ledger adds up several.

    Attributes
    ----------
    private : bool
        False for a run without noise or with a seed, which promises nothing.
    epsilon, delta : float or None
        The guarantee, as charged; None without a delta to report an epsilon at.
    mu, rho : float or None
        The same in Gaussian and in zero-concentrated differential privacy, where finite.
    adjacency : str
        The neighbouring relation.
    record : str
        Who is protected: ``row``, ``unit`` or ``user``.
    assumed : mapping of str to value
        Facts that were read off the data and are taken as public.
    declared : mapping of str to value
        Facts that were declared.
    ledger : str, False or None
        The file that the run was charged to; False: to none; None: a model file does not tell.
    """

    private: bool
    epsilon: float | None
    delta: float | None
    mu: float | None
    rho: float | None
    adjacency: str
    record: str
    assumed: Mapping[str, Any]
    declared: Mapping[str, Any]
    ledger: str | Literal[False] | None
    _events: tuple[Event, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, provenance: Json, ledger: str | Literal[False] | None) -> PrivacyStatement:
        """The statement of a run that a model's provenance describes.

        Raises
        ------
        ValueError, KeyError, TypeError
            It is not as this version writes it.
        """
        document: Any = provenance
        events = tuple(events_of(document["events"]))
        adjacency, budget = Adjacency(document["adjacency"]), document["budget"]
        asked = None if budget is None else Budget(**budget)
        private = document["private"] is True and not compose(events, adjacency).infinite
        charge = (charge_of(events, asked, adjacency) if private else None) or {}
        record = document.get("record", "row")
        if not isinstance(record, str):
            raise TypeError("its record is no text")
        return cls(
            private=private,
            epsilon=charge.get("epsilon"),
            delta=charge.get("delta"),
            mu=charge.get("mu"),
            rho=charge.get("rho"),
            adjacency=str(adjacency),
            record=record,
            assumed=_facts(document, Origin.ASSUMED),
            declared=_facts(document, Origin.DECLARED),
            ledger=ledger,
            _events=events,
        )

    def epsilon_at(self, delta: float) -> float:
        """The epsilon that the run costs at another delta; infinite if it is not private."""
        if not self.private:
            return float("inf")
        return compose(self._events, Adjacency(self.adjacency)).epsilon(delta)

    def __str__(self) -> str:
        if not self.private:
            return "not private: there is no noise, or a seed repeats it"
        parts = [f"{name} {value:.6g}" for name, value in self._numbers().items()]
        text = f"{', '.join(parts)} for each {self.record} under {self.adjacency}"
        if self.assumed:
            text += f"; assumed to be public: {', '.join(self.assumed)}"
        if self.ledger is None:
            return f"{text}; the model file does not tell the ledger that was charged"
        return f"{text}; charged to {self.ledger or 'no ledger'}"

    def _numbers(self) -> dict[str, float]:
        named = {"epsilon": self.epsilon, "delta": self.delta, "mu": self.mu, "rho": self.rho}
        return {name: value for name, value in named.items() if value is not None}


def _facts(document: Any, origin: Origin) -> dict[str, Any]:
    facts = document["public_facts"].items()
    return {name: fact["value"] for name, fact in facts if fact["origin"] == origin}


def warn_before_run(
    facts: PublicFacts,
    events: Sequence[Event],
    request: Any,
    *,
    records: str,
    ledger: Ledger | None,
    stacklevel: int,
) -> None:
    """Warn of what the guarantee lacks; as an error each of these stops a run that cost nothing.

    Parameters
    ----------
    facts : PublicFacts
        Those that were assumed are told, each as the parameter that declares it.
    events : sequence of Event
        The charge.
    request : FitRequest or MatrixRequest
        What was asked for.
    records : str
        The fact that counts those whom the guarantee protects: ``rows``, ``units`` or ``users``.
    ledger : Ledger or None
        What the run is charged to, which after one that is not private has no bound.
    stacklevel : int
        Of the warnings.
    """
    if not request.private:
        why = "there is no noise" if request.without_noise else "a seed repeats the noise"
        spoilt = "" if ledger is None else f", and {ledger.path} counts as unbounded from now on"
        warnings.warn(
            f"{why}: the model is not private{spoilt}", PrivacyWarning, stacklevel=stacklevel
        )
        return
    if assumed := facts.assumed():
        told = ", ".join(f"{python_words(fact.option)}={fact.value!r}" for fact in assumed)
        warnings.warn(
            f"assumed from the data and taken as public: {told}; declare them",
            AssumedFactWarning,
            stacklevel=stacklevel,
        )
    delta = request.budget.delta
    if delta is not None and delta * facts.integer(records) > 1.0:
        warnings.warn(
            f"delta {delta:g} is above 1/{records}: one of them may leak as a whole",
            PrivacyWarning,
            stacklevel=stacklevel,
        )
    if request.budget.delta is not None and getattr(request, "printed", False):
        epsilon = compose(events, request.adjacency).epsilon(delta)
        warnings.warn(
            f"calibration as printed really costs epsilon {epsilon:.4g} at delta {delta:g}",
            PrivacyWarning,
            stacklevel=stacklevel,
        )
