"""What ``dpfit budget LEDGER`` shows, recomputed from the ledger's events alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

from dpfit.privacy.accountant import Cost, gaussian_cost
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.canonical_json import Json
from dpfit.privacy.conversion import gaussian_mu
from dpfit.privacy.ledger_document import LedgerDocument
from dpfit.privacy.ledger_frame import Cap
from dpfit.report.protected import Protected, Share, SpentOnEach

Rows: TypeAlias = list[tuple[str, str]]

_BISECTIONS: Final = 40
_REMEMBERED: Final = 1024  # costs of runs; most are alike


def ledger_json(
    document: LedgerDocument, adjacency: Adjacency, deltas: tuple[float, ...]
) -> dict[str, object]:
    """The whole report as JSON values; an unbounded epsilon is null."""
    outcomes = document.outcomes()
    total = document.cost(adjacency)
    spent = SpentOnEach.of(document, adjacency)
    return {
        "schema_version": 1,
        "adjacency": str(adjacency),
        "cap": document.cap.to_json() if document.cap else None,
        "entries": [
            {
                "run": entry["run"],
                "time": entry.get("time"),
                "dataset": entry.get("dataset"),
                "algorithm": entry.get("algorithm"),
                "record": entry.get("record", "row"),
                **({"unit": entry["unit"]} if "unit" in entry else {}),
                "asked": entry.get("budget"),
                "adjacency": entry.get("adjacency"),
                "outcome": outcomes[str(entry["run"])],
                "assumed": _assumed(entry),
                **_cost_json(cost, deltas),
            }
            for entry, cost in document.charges(adjacency)
        ],
        "protected": [
            {**one.to_json(), "runs": found.runs, **_cost_json(found.cost, deltas)}
            for one, found in spent.by.items()
        ],
        "whole_units": _units_json(spent, deltas),
        "total": _cost_json(total, deltas),
        "left": _left_json(document.cap, total),
    }


def ledger_rows(
    document: LedgerDocument, adjacency: Adjacency, deltas: tuple[float, ...]
) -> Iterator[tuple[str, Rows]]:
    """Titled two-column tables: each run, what was spent on units, then the total."""
    outcomes = document.outcomes()
    for number, (entry, cost) in enumerate(document.charges(adjacency), start=1):
        rows = [
            ("data", str(entry.get("dataset"))),
            ("algorithm", _method(entry)),
            ("asked", _asked(entry)),
            ("outcome", outcomes[str(entry["run"])]),
            ("assumed", ", ".join(_assumed(entry)) or "nothing"),
            *_cost_rows(cost, deltas),
        ]
        yield f"run {number}, {entry.get('time')}", rows
    total, spent = document.cost(adjacency), SpentOnEach.of(document, adjacency)
    of_what: Rows = [("protects", spent.of_total)] if spent.mixed else []
    for share in spent.shares():
        yield f"spent on {share.on} ({adjacency})", _share_rows(share, deltas)
    yield (
        f"spent in total ({adjacency})",
        [*of_what, *_cost_rows(total, deltas), *_left_rows(document.cap, total)],
    )


def _units_json(spent: SpentOnEach, deltas: tuple[float, ...]) -> dict[str, object] | None:
    """The sum over all names of units: what one person may have behind them."""
    units = spent.on_units
    if not units.runs:
        return None
    names = [one.to_json() for one in spent.names]
    return {"names": names, "runs": units.runs, **_cost_json(units.cost, deltas)}


def _share_rows(share: Share, deltas: tuple[float, ...]) -> Rows:
    names = [] if share.names is None else [("names", share.names)]
    runs = f"{share.counted}; {share.others}" if share.others else share.counted
    return [*names, ("runs", runs), *_cost_rows(share.spent.cost, deltas)]


def _method(entry: Json) -> str:
    """The algorithm, with what it was fitted for."""
    parts = [str(entry.get("algorithm"))]
    facts, settings = entry.get("public_facts"), entry.get("settings")
    loss = facts.get("loss") if isinstance(facts, dict) else None
    if isinstance(loss, dict):
        parts.append(f"{loss.get('value')} loss")
    if isinstance(settings, dict) and "quantile" in settings:
        parts.append(f"quantile {settings['quantile']}")
    return ", ".join(parts)


def _asked(entry: Json) -> str:
    """The run's own budget and relation, which the costs below need not be under."""
    budget = entry.get("budget")
    numbers = budget.items() if isinstance(budget, dict) else ()
    asked = ", ".join(f"{name} {value:g}" for name, value in numbers if isinstance(value, float))
    relation = f"{entry.get('adjacency')} of a {Protected.by(entry)}"
    return f"{asked or 'no budget'} ({relation})"


def _assumed(entry: Json) -> list[str]:
    facts = entry.get("public_facts")
    if not isinstance(facts, dict):
        return []
    return [
        str(name)
        for name, fact in facts.items()
        if isinstance(fact, dict) and fact.get("origin") == "assumed"
    ]


@lru_cache(_REMEMBERED)
def _cost_json(cost: Cost, deltas: tuple[float, ...]) -> dict[str, object]:
    return {
        "private": not cost.infinite,
        "mu": _finite(cost.mu()),
        "rho": _finite(cost.rho_bound()),
        "epsilon": [
            {"delta": d, "epsilon": _finite(cost.epsilon(d))} for d in _shown(cost, deltas)
        ],
    }


@lru_cache(_REMEMBERED)
def _cost_rows(cost: Cost, deltas: tuple[float, ...]) -> Rows:
    if cost.infinite:
        return [("epsilon", "unbounded: NOT PRIVATE")]
    named = {"mu": cost.mu(), "rho": cost.rho_bound()}
    rows = [
        (name, f"{value:.6g}" if math.isfinite(value) else "none") for name, value in named.items()
    ]
    shown = _shown(cost, deltas)
    return rows + [(f"epsilon at delta {d:g}", f"{cost.epsilon(d):.6g}") for d in shown]


def _shown(cost: Cost, deltas: Sequence[float]) -> Sequence[float]:
    """With a delta of zero where that has an epsilon."""
    pure = math.isfinite(cost.epsilon(0.0)) and cost.pure != 0
    return [0.0, *deltas] if pure else deltas


def epsilon_left(cap: Cap, spent: Cost) -> float:
    """The largest epsilon, at the cap's delta, that one more run of Gaussian releases may ask for.

    Found by bisection on the very comparison that a run's reservation makes, from below.
    """
    low, high = 0.0, cap.epsilon
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        squared_mu = Fraction(gaussian_mu(middle, cap.delta)) ** 2
        after = spent + gaussian_cost(squared_mu)
        if after.epsilon(cap.delta) <= cap.epsilon:
            low = middle
        else:
            high = middle
    return low


def _left_json(cap: Cap | None, spent: Cost) -> dict[str, float] | None:
    if cap is None:
        return None
    return {"delta": cap.delta, "epsilon": epsilon_left(cap, spent)}


def _left_rows(cap: Cap | None, spent: Cost) -> Rows:
    if cap is None:
        return [("cap", "none")]
    return [
        ("cap", f"epsilon {cap.epsilon:g} at delta {cap.delta:g}"),
        ("left", f"epsilon {epsilon_left(cap, spent):.6g} at delta {cap.delta:g}"),
    ]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
