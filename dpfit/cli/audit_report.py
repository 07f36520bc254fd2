"""What an audit found, as a table and as JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpfit import __version__

if TYPE_CHECKING:
    from dpfit.audit.audit import Audit, Finding
    from dpfit.audit.bounds import LowerBound
    from dpfit.cli.audit import AuditOptions


def finding_rows(
    options: AuditOptions, audit: Audit, finding: Finding
) -> tuple[str, list[tuple[str, str]]]:
    """Title and rows: claimed beside audited."""
    title = f"{audit.algorithm}, {audit.attack} attack, {options.adjacency}"
    epsilon = f"epsilon at delta {finding.delta:g}"
    claimed_mu, estimate = finding.claimed.mu(), finding.estimate
    by_mu = finding.epsilon_by_mu
    rows = [
        (f"claimed {epsilon}", f"{finding.claimed_epsilon:.4g}"),
        ("audited, at least", f"{finding.epsilon.value:.4g}"),
        ("claimed mu", f"{claimed_mu:.4g}" if math.isfinite(claimed_mu) else "no bound"),
        ("audited, at least", f"{finding.mu.value:.4g}"),
        *([] if by_mu is None else [("hence epsilon, at least", f"{by_mu:.4g}")]),
        (
            "estimate of mu, if scores are normal",
            f"{estimate.value:.4g} ({estimate.low:.4g} to {estimate.high:.4g})",
        ),
        ("confidence of each", f"{options.confidence:g}"),
        ("runs in each world", f"{audit.trials}, of which {finding.epsilon.trials} count"),
        ("claim", "holds" if finding.holds else "BROKEN"),
    ]
    return title, rows


def finding_json(options: AuditOptions, audit: Audit, finding: Finding) -> dict[str, object]:
    """The same; a bound that is not finite is null."""
    claimed_mu = finding.claimed.mu()
    return {
        "schema_version": 1,
        "dpfit": __version__,
        "algorithm": audit.algorithm,
        "attack": audit.attack,
        "adjacency": str(options.adjacency),
        "rows": options.rows,
        "features": options.features,
        "trials": audit.trials,
        "confidence": options.confidence,
        "reproducible": options.seed is not None,
        "delta": finding.delta,
        "claimed": {
            "epsilon": finding.claimed_epsilon,
            "mu": claimed_mu if math.isfinite(claimed_mu) else None,
        },
        "audited": {"epsilon": _bound(finding.epsilon), "mu": _bound(finding.mu)},
        "epsilon_by_mu": finding.epsilon_by_mu,
        "mu_estimate": {
            "value": finding.estimate.value,
            "low": finding.estimate.low,
            "high": finding.estimate.high,
        },
        "holds": finding.holds,
    }


def _bound(bound: LowerBound) -> dict[str, object]:
    return {
        "at_least": bound.value,
        "threshold": bound.threshold,
        "false_positives": bound.false_positives,
        "true_positives": bound.true_positives,
        "trials": bound.trials,
    }
