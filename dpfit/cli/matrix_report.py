"""What ``dpfit complete-matrix`` tells: the plan, the result. Public quantities only."""

from __future__ import annotations

from dpfit.algorithms.factor_outcome import FactorOutcome
from dpfit.cli.run_files import RunFiles
from dpfit.cli.run_report import charge_text, listed
from dpfit.cli.streams import Streams
from dpfit.fitting.charge import charge_of
from dpfit.fitting.matrix_fit import MatrixFit


def report_plan(fitted: MatrixFit, files: RunFiles, streams: Streams, *, as_json: bool) -> None:
    """Show what the run would do and cost."""
    if as_json:
        plan = _plan_json(fitted, files)
        streams.result_json({"schema_version": 1, "dry_run": True, **plan})
    else:
        streams.result_table("dry run: nothing was spent", _summary(fitted, files))


def report_outcome(fitted: MatrixFit, outcome: FactorOutcome, streams: Streams) -> None:
    """Say that there are no factors where the user did not ask for none."""
    if outcome.rank == 0 and fitted.request.rank != 0:
        planned = not fitted.plan.falls_back
        why = "no factors stood out of the noise" if planned else "the budget bears no factors"
        streams.inform(f"{why}: the model holds item biases only")


def report_result(
    fitted: MatrixFit, outcome: FactorOutcome, files: RunFiles, streams: Streams, *, as_json: bool
) -> None:
    """Show what the run did: JSON on stdout if asked, a table to a person at a terminal."""
    if as_json:
        done = {"schema_version": 1, "rank": outcome.rank, **_plan_json(fitted, files)}
        streams.result_json(done)
    streams.summary_table("dpfit complete-matrix", _summary(fitted, files))


def _plan_json(fitted: MatrixFit, files: RunFiles) -> dict[str, object]:
    plan = fitted.plan
    return {
        "model": files.model_path,
        "ledger": files.ledger.path,
        **fitted.description(),
        "noise_multipliers": None if fitted.request.without_noise else plan.noise_multipliers(),
        "charge": charge_of(plan.events, fitted.request.budget, fitted.request.adjacency),
        "events": [event.to_json() for event in plan.events],
        "assumed": [fact.name for fact in plan.facts.assumed()],
    }


def _summary(fitted: MatrixFit, files: RunFiles) -> list[tuple[str, str]]:
    plan, request = fitted.plan, fitted.request
    shape = f"{plan.grid.n_users} users, {plan.grid.n_items} items"
    noise = "no" if request.without_noise else request.noise
    rows = [
        ("data", f"{request.dataset}: {shape}"),
        ("algorithm", f"{request.algorithm}, {noise} noise, {request.users_loss} loss"),
        ("settings", listed(plan.algorithm.settings())),
        ("protects", "all ratings of one user" if request.private else "nobody"),
        ("charge", charge_text(plan.events, request)),
    ]
    rows += [("model", files.model_path), ("ledger", files.ledger.path)]
    if request.without_noise:
        return rows
    rows.append(("noise", "times the largest share of a user"))
    shares = plan.shares if request.budget_report else {}
    for label, multiplier in plan.noise_multipliers().items():
        share = f", {100.0 * shares[label]:.3g} % of the budget" if label in shares else ""
        rows.append((label, f"{multiplier:.6g}{share}"))
    return rows
