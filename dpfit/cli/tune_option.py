"""What ``--tune NAME=V,V`` says, as a search."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dpfit.errors import UsageError
from dpfit.fitting.search import Search, Value

if TYPE_CHECKING:
    from dpfit.cli.fit import FitOptions

_KINDS: Final[dict[str, Callable[[str], Value]]] = {
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


def search_of(options: FitOptions) -> Search | None:
    """The search that was asked for; None without one.

    Raises
    ------
    UsageError
        It is not written as the option wants, or names what cannot be searched.
    """
    if not options.tune:
        if options.tune_runs is not None:
            raise UsageError("--tune-runs belongs to --tune")
        return None
    grid: dict[str, tuple[Value, ...]] = {}
    for text in options.tune:
        name, values = _parsed(text)
        if name in grid:
            raise UsageError(f"--tune {_option(name)} is given twice")
        if getattr(options, name) is not None:
            raise UsageError(f"--tune {_option(name)} and --{_option(name)} exclude each other")
        grid[name] = values
    return Search(grid, options.tune_runs)


def _parsed(text: str) -> tuple[str, tuple[Value, ...]]:
    option, equals, listed = text.partition("=")
    name = option.strip().replace("-", "_")
    if not equals:
        raise UsageError("--tune wants NAME=V,V", hint="such as --tune sparsity=100,300")
    if name not in _KINDS:
        known = ", ".join(_option(one) for one in _KINDS)
        raise UsageError(f"--tune {_option(name)}: cannot be searched", hint=f"known are {known}")
    try:
        return name, tuple(_KINDS[name](part.strip()) for part in listed.split(","))
    except ValueError:
        raise UsageError(f"--tune {_option(name)} has a value that is not a number") from None


def _option(name: str) -> str:
    return name.replace("_", "-")
