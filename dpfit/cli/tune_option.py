"""What ``--tune NAME=V,V`` says, as a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpfit.errors import UsageError
from dpfit.fitting.requested_search import requested_search

if TYPE_CHECKING:
    from dpfit.cli.fit import FitOptions
    from dpfit.fitting.search import Search


def search_of(options: FitOptions) -> Search | None:
    """The search that was asked for; None without one.

    Raises
    ------
    UsageError
        It is not written as the option wants, or names what cannot be searched.
    """
    return requested_search(grid_of(options.tune or ()) or None, options.tune_runs, options)


def grid_of(texts: Sequence[str]) -> dict[str, list[str]]:
    """The texts of the values of each setting, by its name as a parameter.

    Raises
    ------
    UsageError
        One is not written as the option wants, or there are two of a name.
    """
    grid: dict[str, list[str]] = {}
    for text in texts:
        option, equals, listed = text.partition("=")
        if not equals:
            raise UsageError("--tune wants NAME=V,V", hint="such as --tune sparsity=100,300")
        name = option.strip().replace("-", "_")
        if name in grid:
            raise UsageError(f"--tune {option.strip()} is given twice")
        grid[name] = [part.strip() for part in listed.split(",")]
    return grid
