"""What ``dpfit fit`` tells: the assumed facts, the plan, the result. Public quantities only."""

from __future__ import annotations

from dpfit.cli.fit_inputs import FitInputs
from dpfit.cli.run_report import charge_text, listed, report_assumed
from dpfit.cli.streams import Streams
from dpfit.fitting.charge import charge_of
from dpfit.fitting.linear_fit import LinearFit
from dpfit.privacy.accountant import compose


def report_assumptions(fitted: LinearFit, streams: Streams) -> None:
    """Name, in one line, what was read off the data and is taken as public."""
    report_assumed(fitted.plan.facts, fitted.request.budget, streams, records=fitted.protected)


def report_sparsity(fitted: LinearFit, streams: Streams) -> None:
    """Warn of a number of coefficients that is no bound."""
    request, features = fitted.request, fitted.plan.facts.integer("features")
    searched = None if request.search is None else request.search.grid.get("sparsity")
    for sparsity in searched or (request.sparsity,):
        if isinstance(sparsity, int) and sparsity > features:
            streams.warn(f"--sparsity {sparsity} is above the {features} features: all are kept")


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
        "model": inputs.files.model_path,
        "ledger": inputs.files.ledger.path,
        **fitted.description(),
        "loss": plan.loss.name,
        "noise_multipliers": plan.noise_multipliers(),
        "charge": charge_of(plan.events, fitted.request.budget, fitted.request.adjacency),
        "events": [event.to_json() for event in plan.events],
        "assumed": [fact.name for fact in plan.facts.assumed()],
    }


def _summary(fitted: LinearFit, inputs: FitInputs) -> list[tuple[str, str]]:
    plan, request = fitted.plan, fitted.request
    if request.search is None:
        settings = [("settings", listed(plan.algorithm.settings()))]
    else:
        from dpfit.cli.search_report import search_rows  # late: few runs are searches

        settings = search_rows(fitted)
    shape = f"{plan.facts.integer('rows')} rows, {plan.facts.integer('features')} features"
    return [
        ("data", f"{request.dataset}: {shape}"),
        ("algorithm", f"{plan.algorithm.name}, {plan.loss.name} loss"),
        *settings,
        ("protects", _protected(fitted)),
        ("row map", f"{plan.grid.row_map} to norm {plan.grid.row_norm:g}"),
        ("charge", charge_text(plan.events, request)),
        ("calibration", request.calibration),
        ("noise", _noise(fitted)),
        ("model", inputs.files.model_path),
        ("ledger", inputs.files.ledger.path),
    ]


def _noise(fitted: LinearFit) -> str:
    if fitted.request.without_noise:
        return "none"
    record = "record" if fitted.request.owners is None else "unit"
    return f"{listed(fitted.plan.noise_multipliers())} (times the largest share of a {record})"


def _protected(fitted: LinearFit) -> str:
    """Whom the guarantee is for."""
    request, rule = fitted.request, fitted.request.owners
    if not request.private:
        return "nobody"
    if rule is None:
        return "every single row, not all rows of a person: see --unit"
    return (
        f"all rows of one {rule.column}: {fitted.plan.facts.integer('units')} units, "
        f"{rule.max_rows} rows of each at most, together like {rule.clip:.4g}"
    )
