"""What a model's file says about the run that made it, checked before anything is computed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dpfit.files.json_checks import Json, as_mapping, not_a_document
from dpfit.privacy.accountant import Cost, compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.events import Event
from dpfit.privacy.ledger_checkpoint import events_of
from dpfit.report.elements import shortened

_WORD: Final = re.compile(r"[a-z]{1,20}", re.ASCII)
_SHOWN: Final = 12  # members of a list
USUAL_DELTA: Final = 1e-6  # where the run asked for a budget without one


@dataclass(frozen=True)
class Fact:
    """A public fact: its name, its value for the eye, and whose word it is."""

    name: str
    value: str
    origin: str


@dataclass(frozen=True)
class ReleasedRun:
    """A run, by the provenance in its model.

    Attributes
    ----------
    dataset, algorithm, record, program : str
        Names; ``record`` is who is protected, ``row``, ``unit`` or ``user``.
    private : bool
        Whether there is a promise at all.
    reproducible : bool
        Whether anybody can repeat its noise.
    adjacency : Adjacency
    delta : float
        Where its epsilon is stated; 0 for pure differential privacy.
    events : tuple of Event
    cost : Cost
        Of the events, under the run's own relation.
    facts : tuple of Fact
    settings : mapping of str to str
    numbers : mapping of str to int
        Public facts and settings that are whole numbers.
    """

    dataset: str
    algorithm: str
    record: str
    program: str
    private: bool
    reproducible: bool
    adjacency: Adjacency
    delta: float
    events: tuple[Event, ...]
    cost: Cost
    facts: tuple[Fact, ...]
    settings: Mapping[str, str]
    numbers: Mapping[str, int]

    @property
    def epsilon(self) -> float:
        """At ``delta``; infinite if nothing is promised."""
        return self.cost.epsilon(self.delta) if self.private else math.inf

    @classmethod
    def read(cls, provenance: Json, *, private: bool, path: str) -> ReleasedRun:
        """The run of a model.

        Parameters
        ----------
        provenance : mapping
            Of the model.
        private : bool
            What the model says of itself.
        path : str
            The model's, for errors.

        Raises
        ------
        DataError
            The provenance is not as dpfit writes it.
        """
        try:
            return _run(provenance, private)
        except RecursionError:
            error = ValueError("it is nested too deeply")
            raise not_a_document("model's provenance", error, path) from None
        except (ValueError, KeyError, TypeError, ArithmeticError) as error:
            raise not_a_document("model's provenance", error, path) from None


def _run(provenance: Json, private: bool) -> ReleasedRun:
    adjacency = Adjacency(str(provenance["adjacency"]))
    events = tuple(events_of(provenance["events"]))
    cost = compose(events, adjacency)
    facts = as_mapping(provenance["public_facts"], "public_facts")
    settings = as_mapping(provenance["settings"], "settings")
    numbers = {name: value for name, value in settings.items() if type(value) is int}
    for name, fact in facts.items():
        value = as_mapping(fact, f"the public fact {name:.60}").get("value")
        if type(value) is int:
            numbers[name] = value
    reproducible = provenance["reproducible"] is True
    return ReleasedRun(
        dataset=str(provenance["dataset"]),
        algorithm=str(provenance["algorithm"]),
        record=_record(provenance.get("record", "row")),
        program=str(provenance["dpfit"]),
        private=private and not reproducible and not cost.infinite,
        reproducible=reproducible,
        adjacency=adjacency,
        delta=_delta(provenance["budget"], cost),
        events=events,
        cost=cost,
        facts=tuple(_fact(name, as_mapping(fact, "a fact")) for name, fact in facts.items()),
        settings=_settings(provenance),
        numbers=numbers,
    )


def _record(name: object) -> str:
    """Who is protected, if that is a word: sentences of the promise are built around it."""
    return name if isinstance(name, str) and _WORD.fullmatch(name) else "record"


def _delta(budget: object, cost: Cost) -> float:
    """The delta that was asked for, or none where none is needed."""
    asked = budget.get("delta") if isinstance(budget, dict) else None
    if isinstance(asked, float) and 0.0 < asked < 1.0:
        return asked
    return 0.0 if math.isfinite(cost.epsilon(0.0)) else USUAL_DELTA


def _fact(name: str, fact: Json) -> Fact:
    return Fact(name, plain(fact.get("value")), str(fact.get("origin")))


def _settings(provenance: Json) -> dict[str, str]:
    """In one level: ``budget_parts: descent`` and so on."""
    listed = {"program": f"dpfit {provenance['dpfit']}", "algorithm": provenance["algorithm"]}
    for name in ("budget", "calibration", "loss", "noise", "row_map", "tuning", "settings"):
        value = provenance.get(name)
        if name == "settings" and isinstance(value, dict):
            listed |= value
        elif value is not None:
            listed[name] = value
    return {name.replace("_", " "): plain(value) for name, value in listed.items()}


def plain(value: object) -> str:
    """A JSON value for the eye: no brackets, and no more of a long list than its beginning."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        parts = [f"{name.replace('_', ' ')} {plain(part)}" for name, part in value.items()]
        return _beginning(parts)
    if isinstance(value, list):
        return _beginning([plain(part) for part in value])
    return shortened(str(value))


def _beginning(parts: list[str]) -> str:
    more = f", … ({len(parts)} in all)" if len(parts) > _SHOWN else ""
    return ", ".join(parts[:_SHOWN]) + more
