"""From the options of ``dpfit audit`` to two worlds and an attack."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final

from dpfit.audit.audit import ATTACKS, Attack, Audit, Worlds, check_trials
from dpfit.audit.data_worlds import data_worlds, rating_worlds
from dpfit.audit.matrix_worlds import matrix_worlds
from dpfit.audit.one_run import OneRun
from dpfit.audit.score_attack import ScoreAttack
from dpfit.audit.worlds import linear_worlds
from dpfit.cli import fit_inputs, matrix_inputs
from dpfit.cli.matrix_options import MatrixOptions
from dpfit.cli.model_options import ModelOptions
from dpfit.cli.options import BudgetOptions
from dpfit.cli.rating_reading import rating_options
from dpfit.cli.row_inputs import RowInputs
from dpfit.cli.row_options import RowOptions
from dpfit.data.id_table import IdTable, read_ids
from dpfit.data.ratings import RatingReader
from dpfit.data.ratings_by_user import collect_ratings
from dpfit.errors import UsageError
from dpfit.fitting import matrix_request
from dpfit.fitting.algorithm_traits import ALGORITHMS, AUTO, ORIGINALS, only_loss
from dpfit.fitting.checks import one_of
from dpfit.fitting.matrix_request import PRIVATE, MatrixRequest
from dpfit.fitting.request import FitRequest
from dpfit.fitting.requested_budget import requested_budget
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget

if TYPE_CHECKING:
    from dpfit.cli.audit import AuditOptions

BLACK_BOX: Final = "black-box"
SCORE: Final = "score"
ONE_RUN: Final = "one-run"
_READY_MADE: Final = (SCORE, ONE_RUN)  # on records of their own
KNOWN: Final = (*ATTACKS, *_READY_MADE)
_ORIGINALS: Final = {**ORIGINALS, **dict.fromkeys(matrix_request.ORIGINALS, PRIVATE)}
_DATASET: Final = "synthetic"
_UNIT: Final = "person"
_DELTA: Final = 1e-6  # where the budget names none
_SIZES: Final = {"rows": (500, 50), "features": (3, 24)}  # of records and columns, users and items
_FEW_ROWS: Final = 50  # where the others shall not drown the canary
_CANARIES: Final = 1000
_LARGEST: Final = 100_000
_SURE: Final = 0.75  # with less, the bound on the sum of two errors would not be one
_OF_BOTH: Final = {field.name for field in fields(BudgetOptions)} | {
    *("algo", "noise", "loss", "huber_threshold", "format", "duplicates"),
    *("delimiter", "header", "encoding", "threads"),
}
_OF_FILES: Final = {"user", "item", "value", "items", "n_users"}


def _only(options: type, others: set[str]) -> list[str]:
    return [field.name for field in fields(options) if field.name not in others]


def check(options: AuditOptions) -> None:
    """Refuse options that have no meaning together.

    Raises
    ------
    UsageError
    """
    _check_names(options)
    if options.data is None:
        _refuse(options, [*_only(RowOptions, set()), *_OF_FILES], "belongs to --data")
    else:
        _refuse(options, [*_SIZES], "has no meaning with --data")
    if options.algo == PRIVATE:
        _check_completion(options)
    else:
        _check_fit(options)
    _check_numbers(options)


def _check_names(options: AuditOptions) -> None:
    """That there is such an attack, and such an algorithm with noise."""
    if options.attack not in (None, *KNOWN):
        raise UsageError(
            f"--attack {options.attack!r} is not known", hint=f"choose {' or '.join(KNOWN)}"
        )
    if options.algo in _ORIGINALS:
        raise UsageError(
            f"--algo {options.algo} is the original without noise, which claims nothing",
            hint=f"audit --algo {_ORIGINALS[options.algo]}",
        )
    one_of("--algo", options.algo, (AUTO, *ALGORITHMS, PRIVATE))


def _check_completion(options: AuditOptions) -> None:
    others = [*_only(ModelOptions, _OF_BOTH), *_only(RowOptions, _OF_BOTH)]
    _refuse(options, others, f"is no setting of --algo {PRIVATE}")
    if options.attack in _READY_MADE:
        raise UsageError(
            f"--attack {options.attack} is not for --algo {PRIVATE}",
            hint=f"choose {' or '.join(ATTACKS)}",
        )


def _check_fit(options: AuditOptions) -> None:
    _refuse(options, _only(MatrixOptions, _OF_BOTH), f"belongs to --algo {PRIVATE}")
    if options.data is not None and options.attack in _READY_MADE:
        raise UsageError(f"--attack {options.attack} has records of its own: leave --data out")
    if options.max_rows_per_unit is not None and options.attack in _READY_MADE:
        raise UsageError(
            f"--attack {options.attack} is for rows, not for units",
            hint=f"choose {' or '.join(ATTACKS)}",
        )
    if options.attack == ONE_RUN:
        why = f"has no meaning with --attack {ONE_RUN}: leave it out"
        _refuse(options, ["rows", "trials"], why)


def _check_numbers(options: AuditOptions) -> None:
    if not _SURE <= options.confidence < 1.0:
        raise UsageError(f"--confidence must lie between {_SURE} and 1")
    for name in _SIZES:
        size = getattr(options, name)
        if size is not None and not 2 <= size <= _LARGEST:
            raise UsageError(f"--{name} must lie between 2 and {_LARGEST}")
    check_trials(options.trials)


def settled(options: AuditOptions) -> AuditOptions:
    """With the defaults that go by algorithm and attack."""
    ratings = options.algo == PRIVATE
    adjacency = options.adjacency or (Adjacency.ADD_REMOVE if ratings else Adjacency.REPLACE_ONE)
    rows, features = (getattr(options, name) or sizes[ratings] for name, sizes in _SIZES.items())
    if options.attack == ONE_RUN:
        features = options.features or _CANARIES
    if options.attack in (BLACK_BOX, SCORE):
        rows = options.rows or _FEW_ROWS
    return replace(options, adjacency=adjacency, rows=rows, features=features)


def audit_of(options: AuditOptions) -> Audit | OneRun:
    """The attack on the configuration, ready to run.

    Parameters
    ----------
    options : AuditOptions
        Checked and settled.

    Raises
    ------
    UsageError, PrivacyError, DataError
        As of a run of the configuration.
    """
    if options.algo == PRIVATE:
        return _two_worlds(options, _of_ratings(options))
    if options.data is not None:
        return _two_worlds(options, _among_records(options, options.data))
    return _of_synthetic_records(options)


def _of_ratings(options: AuditOptions) -> Worlds:
    if options.data is None:
        request = _matrix_request(options, options.range or (0.0, 1.0), None)
        return matrix_worlds(request, *_sizes(options))
    if options.range is None:
        raise matrix_inputs.no_range()
    items = IdTable(read_ids(options.items), fixed=True) if options.items else None
    table = collect_ratings(RatingReader([options.data], rating_options(options), items=items))
    request = _matrix_request(options, options.range, len(table.items))
    return rating_worlds(request, table.ratings, n_items=len(table.items), source=options.data)


def _among_records(options: AuditOptions, path: str) -> Worlds:
    rows = RowInputs.from_options(options, [path])
    if rows.reader.options.unit_column is not None:
        raise UsageError(
            "--data: an audit for units has synthetic records",
            hint="leave --data and --unit out, and give --max-rows-per-unit",
        )
    request = _configuration(options, rows)
    blocks = list(rows.reader)
    return data_worlds(request, blocks, rows.layout(), source=path)


def _of_synthetic_records(options: AuditOptions) -> Audit | OneRun:
    request = _configuration(options, None)
    loss = request.loss or only_loss(request.algorithm) or "logistic"
    request = replace(request, loss=loss)
    rows, features = _sizes(options)
    if options.attack == ONE_RUN:
        return OneRun(
            request,
            features,
            delta=_delta(request.budget),
            confidence=options.confidence,
            seed=options.seed,
        )
    if options.attack == SCORE:
        attack = ScoreAttack(request, rows, features, seed=options.seed)
        return _two_worlds(options, attack.worlds, attack.scores)
    black_box = options.attack == BLACK_BOX
    return _two_worlds(options, linear_worlds(request, rows, features, black_box=black_box))


def _sizes(options: AuditOptions) -> tuple[int, int]:
    """Of synthetic records, once settled."""
    assert options.rows is not None
    assert options.features is not None
    return options.rows, options.features


def _two_worlds(options: AuditOptions, worlds: Worlds, scores: Attack | None = None) -> Audit:
    return Audit(
        worlds,
        attack=options.attack,
        scores=scores,
        trials=options.trials,
        delta=_delta(worlds[0].request.budget),
        confidence=options.confidence,
        seed=options.seed,
    )


def _delta(budget: Budget | None) -> float:
    if budget is None:
        raise UsageError("no privacy budget was given")
    if budget.delta is not None:
        return budget.delta
    return 0.0 if budget.pure else _DELTA


def _configuration(options: AuditOptions, rows: RowInputs | None) -> FitRequest:
    facts = {} if rows or options.max_rows_per_unit is None else {"unit": _UNIT}
    return fit_inputs.configured(
        options, rows, without_noise=False, dataset=_DATASET, seed=None, **facts
    )


def _matrix_request(
    options: AuditOptions, value_range: tuple[float, float], n_items: int | None
) -> MatrixRequest:
    return matrix_inputs.configured(
        options,
        value_range=value_range,
        budget=requested_budget(options, seed=None, without_noise=False),
        dataset=_DATASET,
        noise=options.noise or "gaussian",
        loss=options.loss,
        huber_threshold=options.huber_threshold,
        n_items=n_items,
    )


def _refuse(options: AuditOptions, names: list[str], why: str) -> None:
    defaults = {field.name: field.default for field in fields(options)}
    for name in names:
        if getattr(options, name) != defaults[name]:
            raise UsageError(f"--{name.replace('_', '-')} {why}")
