"""From the options of ``dpfit audit`` to two worlds and an attack."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final

from dpfit.audit.audit import ATTACKS, Attack, Audit, Worlds
from dpfit.audit.data_worlds import data_worlds
from dpfit.audit.matrix_worlds import matrix_worlds
from dpfit.audit.one_run import OneRun
from dpfit.audit.score_attack import ScoreAttack
from dpfit.audit.worlds import linear_worlds
from dpfit.cli.fit_inputs import configured
from dpfit.cli.model_options import ModelOptions
from dpfit.cli.options import BudgetOptions
from dpfit.cli.requested_budget import requested_budget
from dpfit.data.reader import Reader, ReadOptions
from dpfit.errors import UsageError
from dpfit.fitting.matrix_request import MatrixRequest
from dpfit.fitting.request import FitRequest, only_loss
from dpfit.privacy.calibration import Budget
from dpfit.privacy.declared_facts import Layout

if TYPE_CHECKING:
    from dpfit.cli.audit import AuditOptions

COMPLETE_MATRIX: Final = "complete-matrix"
SCORE: Final = "score"
ONE_RUN: Final = "one-run"
KNOWN: Final = (*ATTACKS, SCORE, ONE_RUN)
_DATASET: Final = "synthetic"
_OF_RATINGS: Final = ("rank", "sweeps", "passes", "max_per_user")
_OF_BOTH: Final = ("algo", "noise", "loss", "huber_threshold")
_DELTA: Final = 1e-6  # where the budget names none
_LARGEST: Final = 100_000


def audit_of(options: AuditOptions) -> Audit | OneRun:
    """The attack on the configuration, ready to run.

    Raises
    ------
    UsageError, PrivacyError
        As of a run of the configuration.
    """
    if not 0.5 <= options.confidence < 1.0:
        raise UsageError("--confidence must lie between 0.5 and 1")
    for name in ("rows", "features"):
        if not 2 <= getattr(options, name) <= _LARGEST:
            raise UsageError(f"--{name} must lie between 2 and {_LARGEST}")
    if options.attack not in (None, *KNOWN):
        raise UsageError(
            f"--attack {options.attack!r} is not known", hint=f"choose {' or '.join(KNOWN)}"
        )
    if options.data is None:
        _refuse(options, ("format", "label"), "belongs to --data")
    if options.algo == COMPLETE_MATRIX:
        _refuse(options, ("data",), "is not for --algo complete-matrix")
        if options.attack not in (None, *ATTACKS):
            raise UsageError(f"--attack {options.attack} is not for --algo complete-matrix")
        asked = _matrix_request(options)
        return _two_worlds(options, matrix_worlds(asked, options.rows, options.features), asked)
    request = _fit_request(options)
    if options.data is not None:
        _refuse(options, ("rows", "features"), "has no meaning with --data")
        if options.attack not in (None, *ATTACKS):
            raise UsageError(f"--attack {options.attack} has records of its own: leave --data out")
        return _two_worlds(options, _of_file(options, options.data), request)
    if options.attack == ONE_RUN:
        _refuse(options, ("rows", "trials"), f"has no meaning with --attack {ONE_RUN}")
        return OneRun(
            request,
            options.features,
            delta=_delta(request.budget),
            confidence=options.confidence,
            seed=options.seed,
        )
    if options.attack == SCORE:
        attack = ScoreAttack(request, options.rows, options.features, seed=options.seed)
        return _two_worlds(options, attack.worlds, request, attack.scores)
    return _two_worlds(options, linear_worlds(request, options.rows, options.features), request)


def _of_file(options: AuditOptions, path: str) -> Worlds:
    """The worlds of ``--data``; without ``--loss`` by the file's labels."""
    reading = ReadOptions(format=str(options.format), label=options.label, threads=1)
    reader = Reader([path], reading)
    blocks = list(reader)
    columns = reader.feature_map
    layout = Layout(columns.n_features if columns else None, reader.index_base)
    return data_worlds(_configuration(options), blocks, layout, source=path)


def _two_worlds(
    options: AuditOptions,
    worlds: Worlds,
    request: FitRequest | MatrixRequest,
    scores: Attack | None = None,
) -> Audit:
    return Audit(
        worlds,
        attack=options.attack,
        scores=scores,
        trials=options.trials,
        delta=_delta(request.budget),
        confidence=options.confidence,
        seed=options.seed,
    )


def _delta(budget: Budget | None) -> float:
    if budget is None:
        raise UsageError("no privacy budget was given")
    if budget.delta is not None:
        return budget.delta
    return 0.0 if budget.pure else _DELTA


def _configuration(options: AuditOptions) -> FitRequest:
    return configured(
        options, row_norm=options.row_norm, without_noise=False, dataset=_DATASET, seed=None
    )


def _fit_request(options: AuditOptions) -> FitRequest:
    _refuse(options, _OF_RATINGS, "belongs to --algo complete-matrix")
    request = _configuration(options)
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
