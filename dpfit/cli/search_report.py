"""What ``dpfit fit --tune`` tells of its search. Public quantities only."""

from __future__ import annotations

from dpfit.cli.run_report import listed
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.tuned_fit import TunedFit


def search_rows(fitted: LinearFit) -> list[tuple[str, str]]:
    """The grid, the expected runs, once the search has ended what it chose, and the settings."""
    assert isinstance(fitted, TunedFit)
    search, candidates = fitted.search, fitted.search.candidates()
    grid = "; ".join(
        f"{name} {', '.join(map(str, values))}" for name, values in search.grid.items()
    )
    rows = [
        ("search", f"{len(candidates)} candidates: {grid}"),
        ("runs", f"{search.runs:g} expected, their number secret; scored by {fitted.score.name}"),
        ("one run", f"rho {float(fitted.rho_of_run):.6g}"),
    ]
    settings = listed(fitted.plan.algorithm.settings())
    if fitted.best is None:
        return [*rows, ("settings", f"of the first candidate: {settings}")]
    found = f"{listed(fitted.best.settings)}; score {fitted.best.score:.6g}"
    return [*rows, ("chosen", found), ("settings", settings)]
