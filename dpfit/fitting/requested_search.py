"""The search over settings that was asked for, in the words of any face of the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dpfit.errors import UsageError
from dpfit.fitting.algorithm_traits import ALGORITHMS, ORIGINALS, chosen_algorithm
from dpfit.fitting.search import Search, Value

SEARCHABLE: Final[dict[str, Callable[[str], Value]]] = {
    "sparsity": int,
    "iterations": int,
    "step_size": float,
    "residual_clip": float,
    "l1_radius": float,
    "projection_radius": float,
    "smoothing": float,
    "ridge": float,
    "selection": str,
    "threshold": str,
    "batches": str,
    "noise": str,
}
"""Settings that can be searched, and what the text of a value becomes."""


def requested_search(
    grid: Mapping[str, Sequence[str]] | None, runs: float | None, options: Any
) -> Search | None:
    """The search that was asked for; None without one.

    Parameters
    ----------
    grid : mapping of str to sequence of str, or None
        The texts of the values of each setting.
    runs : float or None
        How many runs to expect.
    options : object
        Has the options of a fit as attributes; settings that are searched must be None.

    Raises
    ------
    UsageError
        What is asked for cannot be searched, or is given as a setting as well.
    """
    if grid is None:
        if runs is not None:
            raise UsageError("--tune-runs belongs to --tune")
        return None
    for name in grid:
        if name not in SEARCHABLE:
            known = ", ".join(_option(one) for one in _searchable(options))
            raise UsageError(
                f"--tune {_option(name)}: cannot be searched", hint=f"known are {known}"
            )
    values = {name: _values(name, texts) for name, texts in grid.items()}
    for name in values:
        if getattr(options, name) is not None:
            raise UsageError(f"--tune {_option(name)} and --{_option(name)} exclude each other")
    return Search(values, runs)


def _values(name: str, texts: Sequence[str]) -> tuple[Value, ...]:
    try:
        return tuple(SEARCHABLE[name](text) for text in texts)
    except ValueError:
        raise UsageError(f"--tune {_option(name)} has a value that is not a number") from None


def _searchable(options: Any) -> Sequence[str]:
    """What the algorithm has, where that is known."""
    algorithm = chosen_algorithm(options.algo, options.loss, intercept=options.intercept)
    traits = ALGORITHMS.get(ORIGINALS.get(algorithm, algorithm))
    return tuple(SEARCHABLE) if traits is None else traits.tunable


def _option(name: str) -> str:
    return name.replace("_", "-")
