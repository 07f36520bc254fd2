"""What ``dpfit fit`` tells: the assumed facts, the plan, the result. Public quantities only."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dpfit.cli.fit_inputs import FitInputs
from dpfit.cli.streams import Streams
from dpfit.fitting.linear_fit import LinearFit
from dpfit.privacy.accountant import compose


def report_assumptions(fitted: LinearFit, streams: Streams) -> None:
    """Name, in one line, what was read off the data and is taken as public."""
    assumed = fitted.plan.facts.assumed()
    if assumed:
        listed = ", ".join(f"{fact.name}={_shown(fact.value)} ({fact.option})" for fact in assumed)
        streams.inform(f"assumed from the data and taken as public: {listed}")
    budget = fitted.request.budget
    if budget is not None and budget.delta is not None:
        n_rows = fitted.plan.facts.integer("rows")
        if budget.delta * n_rows > 1.0:
            streams.warn(f"delta {budget.delta:g} is above 1/rows: a whole record may leak")


def report_ridge(fitted: LinearFit, streams: Streams) -> None:
    """Warn of a penalty that leaves nothing to fit."""
    ridge = fitted.plan.algorithm.settings().get("ridge")
    if isinstance(ridge, float) and ridge > fitted.plan.facts.integer("rows"):
        streams.warn(f"ridge {ridge:.3g} is above the number of rows: hardly anything is fitted")


def report_printed(fitted: LinearFit, streams: Streams) -> None:
    """Say what noise as printed in a paper really costs."""
    request = fitted.request
    if request.budget is None or not request.printed:
        return
    asked, delta = request.budget.approximate()
    cost = compose([one.event() for one in fitted.plan.releases], request.adjacency)
    streams.warn(
        f"calibration as printed: really epsilon {cost.epsilon(delta):.4g} at delta {delta:g} "
        f"under {request.adjacency}, not {asked:g}"
    )


def report_plan(fitted: LinearFit, inputs: FitInputs, streams: Streams, *, as_json: bool) -> None:
    """Show what the run would do and cost."""
    if as_json:
        streams.result_json({"schema_version": 1, "dry_run": True, **_plan_json(fitted, inputs)})
    else:
        streams.result_table("dry run: nothing was spent", _summary(fitted, inputs))


def report_result(fitted: LinearFit, inputs: FitInputs, streams: Streams, *, as_json: bool) -> None:
    """Show what the run did: JSON on stdout if asked, a table to a person at a terminal."""
    if as_json:
        streams.result_json({"schema_version": 1, **_plan_json(fitted, inputs)})
    streams.summary_table("dpfit fit", _summary(fitted, inputs))


def _plan_json(fitted: LinearFit, inputs: FitInputs) -> dict[str, object]:
    plan = fitted.plan
    return {
        "model": inputs.model_path,
        "ledger": inputs.ledger.path,
        **fitted.description(),
        "loss": plan.loss.name,
        "noise_multipliers": plan.noise_multipliers(),
        "charge": _charge(fitted),
        "events": [event.to_json() for event in plan.events],
        "assumed": [fact.name for fact in plan.facts.assumed()],
    }


def _charge(fitted: LinearFit) -> dict[str, float] | None:
    request = fitted.request
    cost = compose(fitted.plan.events, request.adjacency)
    if cost.infinite or request.budget is None:
        return None
    charge = {"mu": cost.mu(), "rho": cost.rho_bound()}
    delta = 0.0 if request.budget.pure else request.budget.delta
    if delta is not None:
        charge |= {"epsilon": cost.epsilon(delta), "delta": delta}
    return {name: value for name, value in charge.items() if math.isfinite(value)}


def _summary(fitted: LinearFit, inputs: FitInputs) -> list[tuple[str, str]]:
    plan, request = fitted.plan, fitted.request
    charge = _charge(fitted)
    spent = "NOT PRIVATE" if charge is None else _listed(charge)
    settings = _listed(plan.algorithm.settings())
    shape = f"{plan.facts.integer('rows')} rows, {plan.facts.integer('features')} features"
    return [
        ("data", f"{request.dataset}: {shape}"),
        ("algorithm", f"{plan.algorithm.name}, {plan.loss.name} loss"),
        ("settings", settings),
        ("row map", f"{plan.grid.row_map} to norm {plan.grid.row_norm:g}"),
        ("charge", f"{spent} ({request.adjacency})"),
        ("calibration", request.calibration),
        ("noise", _noise(fitted)),
        ("model", inputs.model_path),
        ("ledger", inputs.ledger.path),
    ]


def _noise(fitted: LinearFit) -> str:
    if fitted.request.without_noise:
        return "none"
    return f"{_listed(fitted.plan.noise_multipliers())} (times the largest share of a record)"


def _listed(values: Mapping[str, object]) -> str:
    texts = {k: f"{v:.6g}" if isinstance(v, float) else str(v) for k, v in values.items()}
    return ", ".join(f"{name} {text}" for name, text in texts.items())


def _shown(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_shown(item) for item in value) + "]"
    if isinstance(value, float):
        return f"{value:g}" if math.isfinite(value) else "?"
    return str(value)
