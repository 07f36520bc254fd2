"""What an audit found, as a table and as JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpfit import __version__
from dpfit.audit.audit import Finding

if TYPE_CHECKING:
    from dpfit.audit.audit import Audit
    from dpfit.audit.bounds import LowerBound
    from dpfit.audit.one_run import Guesses, OneRun
    from dpfit.cli.audit import AuditOptions


def result_rows(
    options: AuditOptions, audit: Audit | OneRun, result: Finding | Guesses
) -> tuple[str, list[tuple[str, str]]]:
    """Title and rows: claimed beside audited."""
    title = f"{audit.algorithm}, {audit.attack} attack, {options.adjacency}"
    if options.data is not None:
        title += f", {options.data}: NOT private"
    found = result.epsilon if isinstance(result.epsilon, float) else result.epsilon.value
    rows = [
        (f"claimed epsilon at delta {result.delta:g}", f"{result.claimed_epsilon:.4g}"),
        ("audited, at least", f"{found:.4g}"),
        *(_rows_of_mu(result) if isinstance(result, Finding) else []),
        ("confidence of each", f"{options.confidence:g}"),
    ]
    if isinstance(result, Finding):
        count = f"{result.epsilon.trials} count for epsilon, {result.mu.trials} for mu"
        rows.append(("runs in each world", f"{audit.trials}; {count}"))
    else:
        guessed = f"{result.correct} of {result.guesses}, about {result.canaries} canaries"
        rows.append(("right guesses", guessed))
    return title, [*rows, ("claim", _verdict(result))]


def _verdict(result: Finding | Guesses) -> str:
    """No bound proves a claim; one beyond it breaks it."""
    if result.refuted:
        return "BROKEN"
    return f"not refuted; {100.0 * result.tightness:.0f} % of it was shown"


def _rows_of_mu(finding: Finding) -> list[tuple[str, str]]:
    claimed, by_mu, estimate = finding.claimed.mu(), finding.epsilon_by_mu, finding.estimate
    rows = [
        ("claimed mu", f"{claimed:.4g}" if math.isfinite(claimed) else "no bound"),
        ("audited, at least", f"{finding.mu.value:.4g}"),
    ]
    if by_mu is not None:
        rows.append(("hence epsilon, at least", f"{by_mu:.4g}"))
    interval = f"{estimate.value:.4g} ({estimate.low:.4g} to {estimate.high:.4g})"
    return [*rows, ("estimate of mu, if scores are normal", interval)]


def result_json(
    options: AuditOptions, audit: Audit | OneRun, result: Finding | Guesses
) -> dict[str, object]:
    """The same; a bound that is not finite is null."""
    claimed_mu = result.claimed.mu()
    return {
        "schema_version": 1,
        "dpfit": __version__,
        "algorithm": audit.algorithm,
        "attack": audit.attack,
        "adjacency": str(options.adjacency),
        "data": options.data,
        "private": options.data is None,
        **({} if options.data else _size(options, result)),
        "trials": audit.trials,
        "confidence": options.confidence,
        "reproducible": options.seed is not None,
        "delta": result.delta,
        "claimed": {
            "epsilon": result.claimed_epsilon,
            "mu": claimed_mu if math.isfinite(claimed_mu) else None,
        },
        "audited": _audited(result),
        "tightness": result.tightness if math.isfinite(result.tightness) else None,
        "refuted": result.refuted,
    }


def _size(options: AuditOptions, result: Finding | Guesses) -> dict[str, object]:
    rows = options.rows if isinstance(result, Finding) else result.canaries + 1
    return {"rows": rows, "features": options.features}


def _audited(result: Finding | Guesses) -> dict[str, object]:
    if not isinstance(result, Finding):
        guessed = {"guesses": result.guesses, "correct": result.correct}
        return {"epsilon": {"at_least": result.epsilon, **guessed}}
    estimate = result.estimate
    return {
        "epsilon": _bound(result.epsilon),
        "mu": _bound(result.mu),
        "epsilon_by_mu": result.epsilon_by_mu,
        "mu_estimate": {"value": estimate.value, "low": estimate.low, "high": estimate.high},
    }


def _bound(bound: LowerBound) -> dict[str, object]:
    return {
        "at_least": bound.value,
        "threshold": bound.threshold,
        "false_positives": bound.false_positives,
        "true_positives": bound.true_positives,
        "trials": bound.trials,
    }
