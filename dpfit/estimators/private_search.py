"""What ``tune=`` asks for, and what a search found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpfit.errors import UsageError
from dpfit.estimators.privacy_statement import PrivacyStatement
from dpfit.fitting.requested_search import requested_search
from dpfit.fitting.search import Search, Value
from dpfit.privacy.canonical_json import Json


@dataclass(frozen=True)
class SearchStatement:
    """What a private search tried, found and cost.

    Attributes
    ----------
    grid : mapping of str to tuple
        The values of each setting, of which every combination was a candidate.
    expected_runs : float
        How many runs there are on average; their number stays secret.
    chosen : mapping of str to value
        The settings of the model.
    chosen_score : float
        Noisy, the lower the better; chosen for being low, so another score of the same model would
        on average be higher.
    score : str
        What was scored.
    rho_of_run : float
        What a single run may spend, in zero-concentrated differential privacy.
    epsilon, delta : float or None
        The charge of the whole search, with the model; None of a search that is not private.
    """

    grid: Mapping[str, tuple[Value, ...]]
    expected_runs: float
    chosen: Mapping[str, Value]
    chosen_score: float
    score: str
    rho_of_run: float
    epsilon: float | None
    delta: float | None

    @classmethod
    def of(cls, provenance: Json, privacy: PrivacyStatement) -> SearchStatement | None:
        """The statement of a run that a model's provenance describes; None without a search."""
        said: Any = provenance.get("tuning")
        if said is None:
            return None
        return cls(
            grid={name: tuple(values) for name, values in said["grid"].items()},
            expected_runs=said["expected_runs"],
            chosen=dict(said["chosen"]),
            chosen_score=said["chosen_score"],
            score=said["score"],
            rho_of_run=said["rho_of_run"],
            epsilon=privacy.epsilon,
            delta=privacy.delta,
        )

    def __str__(self) -> str:
        chosen = ", ".join(f"{name} {value}" for name, value in self.chosen.items())
        cost = "not private"
        if self.epsilon is not None:
            cost = f"epsilon {self.epsilon:.6g}, delta {self.delta:g} for the whole search"
        return (
            f"chosen: {chosen}; noisy {self.score} {self.chosen_score:.6g}; "
            f"{self.expected_runs:g} runs expected; {cost}"
        )


def search_of(tune: Any, runs: float | None, options: object) -> Search | None:
    """The search that the parameters ask for; None without one.

    Values go through their texts, so that they are read as on the command line, whose spelling of
    a setting, ``step-size``, is taken as well.

    Raises
    ------
    UsageError
        They are no grid, or name what cannot be searched.
    """
    if tune is None:
        return requested_search(None, runs, options)
    hint = "such as tune={'sparsity': [100, 300]}"
    if not isinstance(tune, Mapping):
        raise UsageError("--tune must be a dict of lists", hint=hint)
    grid: dict[str, list[str]] = {}
    for name, values in tune.items():
        if isinstance(values, str) or not hasattr(values, "__iter__"):
            raise UsageError("--tune must be a dict of lists", hint=hint)
        setting = str(name).replace("-", "_")
        if setting in grid:
            raise UsageError(f"--tune names {setting} twice")
        grid[setting] = [str(value) for value in values]
    return requested_search(grid, runs, options)
