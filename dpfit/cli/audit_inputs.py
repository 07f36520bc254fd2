"""From the options of ``dpfit audit`` to two worlds and an attack."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final

from dpfit.audit.audit import Audit, Worlds
from dpfit.audit.matrix_worlds import matrix_worlds
from dpfit.audit.worlds import linear_worlds
from dpfit.cli.fit_inputs import configured
from dpfit.cli.model_options import ModelOptions
from dpfit.cli.options import BudgetOptions
from dpfit.cli.requested_budget import requested_budget
from dpfit.errors import UsageError
from dpfit.fitting.matrix_request import MatrixRequest
from dpfit.fitting.request import FitRequest, only_loss
from dpfit.privacy.calibration import Budget

if TYPE_CHECKING:
    from dpfit.cli.audit import AuditOptions

COMPLETE_MATRIX: Final = "complete-matrix"
_DATASET: Final = "synthetic"
_OF_RATINGS: Final = ("rank", "sweeps", "passes", "max_per_user")
_OF_BOTH: Final = ("algo", "noise", "loss", "huber_threshold")
_DELTA: Final = 1e-6  # where the budget names none
_LARGEST: Final = 100_000


def audit_of(options: AuditOptions) -> Audit:
    """The attack on the configuration, ready to run.

    Raises
    ------
    UsageError, PrivacyError
        As of a run of the configuration.
    """
    for name in ("rows", "features"):
        if not 2 <= getattr(options, name) <= _LARGEST:
            raise UsageError(f"--{name} must lie between 2 and {_LARGEST}")
    worlds: Worlds
    if options.algo == COMPLETE_MATRIX:
        asked = _matrix_request(options)
        worlds = matrix_worlds(asked, options.rows, options.features)
        budget = asked.budget
    else:
        request = _fit_request(options)
        worlds = linear_worlds(request, options.rows, options.features)
        budget = request.budget
    return Audit(
        worlds,
        attack=options.attack,
        trials=options.trials,
        delta=_delta(budget),
        confidence=options.confidence,
        seed=options.seed,
    )


def _delta(budget: Budget | None) -> float:
    if budget is None:
        raise UsageError("no privacy budget was given")
    if budget.delta is not None:
        return budget.delta
    return 0.0 if budget.pure else _DELTA


def _fit_request(options: AuditOptions) -> FitRequest:
    _refuse(options, _OF_RATINGS, "belongs to --algo complete-matrix")
    request = configured(
        options,
        row_norm=options.row_norm,
        without_noise=False,
        dataset=_DATASET,
        seed=None,
    )
    loss = request.loss or only_loss(request.algorithm) or "logistic"
    return replace(request, loss=loss)


def _matrix_request(options: AuditOptions) -> MatrixRequest:
    shared = {field.name for field in fields(BudgetOptions)} | set(_OF_BOTH)
    others = [field.name for field in fields(ModelOptions) if field.name not in shared]
    _refuse(options, others, "is no setting of --algo complete-matrix")
    return MatrixRequest(
        budget=requested_budget(options, seed=None, without_noise=False),
        dataset=_DATASET,
        value_range=(0.0, 1.0),
        noise=options.noise or "gaussian",
        loss=options.loss,
        huber_threshold=options.huber_threshold,
        rank=options.rank,
        sweeps=options.sweeps,
        passes=options.passes,
        max_per_user=options.max_per_user,
        adjacency=options.adjacency,
    )


def _refuse(options: AuditOptions, names: list[str] | tuple[str, ...], why: str) -> None:
    defaults = {field.name: field.default for field in fields(options)}
    for name in names:
        if getattr(options, name) != defaults[name]:
            raise UsageError(f"--{name.replace('_', '-')} {why}")
