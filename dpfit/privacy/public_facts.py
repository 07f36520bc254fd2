"""What the guarantee takes as known about the data, and where each piece of knowledge came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from dpfit.errors import PrivacyError

FactValue = int | float | str | bool | None | list[str] | list[float] | list[str | float]


class Origin(StrEnum):
    """Where a public fact came from.

    ``declared`` by the user (option, schema file, configuration), a ``default`` of the program that
    does not depend on the data, or ``assumed``: read off the private data and taken as public.
    """

    DECLARED = "declared"
    DEFAULT = "default"
    ASSUMED = "assumed"


@dataclass(frozen=True)
class PublicFact:
    """One thing the guarantee treats as public.

    Attributes
    ----------
    name : str
        For instance ``rows``, ``features``, ``labels``.
    value : FactValue
        JSON value.
    origin : Origin
        Who said so.
    option : str
        The option that declares it.
    """

    name: str
    value: FactValue
    origin: Origin
    option: str

    def to_json(self) -> Mapping[str, FactValue]:
        return {"value": self.value, "origin": str(self.origin)}


class PublicFacts:
    """The public facts of one run, in the order in which they became known."""

    def __init__(self, facts: Iterable[PublicFact] = (), *, strict: bool = False) -> None:
        self._facts: dict[str, PublicFact] = {}
        self._strict = strict
        for fact in facts:
            self.add(fact)

    def add(self, fact: PublicFact) -> None:
        """Record a fact.

        Raises
        ------
        PrivacyError
            The fact is assumed and the run is strict.
        """
        if self._strict and fact.origin is Origin.ASSUMED:
            raise PrivacyError(
                f"--strict: {fact.name} was not declared and would be read off the private data",
                hint=f"declare it with {fact.option} or in a --schema file",
            )
        self._facts[fact.name] = fact

    def __getitem__(self, name: str) -> PublicFact:
        return self._facts[name]

    def integer(self, name: str) -> int:
        """The value of a fact that is a whole number."""
        value = self._facts[name].value
        if not isinstance(value, int):
            raise TypeError(f"the public fact {name} is no whole number")
        return value

    def assumed(self) -> list[PublicFact]:
        return [fact for fact in self._facts.values() if fact.origin is Origin.ASSUMED]

    def to_json(self) -> dict[str, Mapping[str, FactValue]]:
        return {name: fact.to_json() for name, fact in self._facts.items()}
