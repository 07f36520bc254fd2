"""What is wrong with a request for a fit, found before anything is read or spent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from dpfit.errors import UsageError
from dpfit.files.linear_model import WITH_OFFSET
from dpfit.fitting.algorithm_traits import (
    ALGORITHMS,
    AUTO,
    BATCHES,
    CALIBRATIONS,
    NOISES,
    ORIGINALS,
    SELECTIONS,
    THRESHOLDS,
    with_setting,
)
from dpfit.fitting.checks import at_least_one, one_of, positive, usable
from dpfit.losses.names import LOSSES, OF_CLASSES
from dpfit.privacy.owner_release import MOST_ROWS
from dpfit.privacy.printed_noise import PRINTED

if TYPE_CHECKING:
    from dpfit.fitting.request import FitRequest
    from dpfit.fitting.search import Search

_NAMES_OF_ABSOLUTE: Final = ("median", "quantile", "pinball", "mae", "lad", "l1")
_RIDGES: Final = (1e-6, 1e12)
_LARGEST_COUNT: Final = 1 << 40  # of rows or features: more would leave no number grid
_MOST_ITERATIONS: Final = 1_000_000


def check_request(request: FitRequest) -> None:
    """Refuse values out of their range, and those that contradict each other.

    Raises
    ------
    UsageError
        There is one.
    """
    if request.algorithm not in (*ALGORITHMS, *ORIGINALS):
        one_of("--algo", request.algorithm, (AUTO, *ALGORITHMS, *ORIGINALS))
    if request.algorithm in ORIGINALS and not request.without_noise:
        raise UsageError(f"--algo {request.algorithm} is the original without noise")
    if request.budget is None and not request.without_noise:
        raise UsageError("no privacy budget was given")
    if request.loss in _NAMES_OF_ABSOLUTE:
        raise UsageError(
            f"--loss {request.loss!r} is not known", hint="give --loss absolute, and --quantile"
        )
    if request.loss is not None:
        one_of("--loss", request.loss, LOSSES)
        _check_quantile(request)
        check_loss(request, request.loss)
    _check_settings(request)
    one_of("--calibration", request.calibration, CALIBRATIONS)
    if request.printed:
        _check_printed(request)
    at_least_one("--threads", request.threads)
    _check_numbers(request)
    _check_median(request)
    _check_target(request)
    _check_attributes(request)
    _check_unit(request)
    if request.search is not None:
        _check_search(request, request.search)


def _check_numbers(request: FitRequest) -> None:
    """Settings of algorithms by gradients, and of the record map."""
    if request.iterations is not None:
        at_least_one("--iterations", request.iterations)
        if request.iterations > _MOST_ITERATIONS:
            raise UsageError(f"--iterations must be at most {_MOST_ITERATIONS}")
    positive("--step-size", request.step_size)
    positive("--residual-clip", request.residual_clip)
    usable("--residual-clip", request.residual_clip)
    positive("--l1-radius", request.l1_radius)
    usable("--l1-radius", request.l1_radius)
    if request.selection is not None:
        one_of("--selection", request.selection, SELECTIONS)
    positive("--projection-radius", request.projection_radius)
    if request.threshold is not None:
        one_of("--threshold", request.threshold, THRESHOLDS)
    positive("--entry-clip", request.entry_clip)
    if request.entry_clip is not None and request.entry_clip > 1.0:
        raise UsageError("--entry-clip is a share of the row norm and at most 1")
    positive("--row-norm", request.row_norm)
    usable("--row-norm", request.row_norm)


def _check_search(request: FitRequest, search: Search) -> None:
    """Refuse a search that has no proof, or nothing to search."""
    if request.without_noise:
        raise UsageError("--tune needs noise: a run without it can be repeated at will")
    if request.unit is not None or request.max_rows_per_unit is not None:
        raise UsageError(
            "--tune scores rows, and so does not go with --unit",
            hint="leave --tune out: default settings follow from public numbers",
        )
    if request.printed:
        raise UsageError("--tune goes with --calibration exact only")
    if request.algorithm == "median-objective":
        raise UsageError(
            "--tune has no --algo median-objective, whose runs have no budget in rho",
            hint="choose --algo median-irls or median-cd",
        )
    for name in search.grid:
        if name not in request.traits.tunable:
            raise UsageError(
                f"--tune {name.replace('_', '-')}: no setting of --algo {request.algorithm}",
                hint=f"it has {', '.join(request.traits.tunable).replace('_', '-')}",
            )
    search.requests(request)  # each checks its own settings


def _check_quantile(request: FitRequest) -> None:
    if request.quantile is None:
        return
    if request.loss != "absolute":
        raise UsageError("--quantile belongs to --loss absolute")
    if not 0.0 < request.quantile < 1.0:
        per_cent = 1.0 < request.quantile < 100.0
        hint = f"did you mean {request.quantile / 100:g}?" if per_cent else None
        raise UsageError("--quantile must lie strictly between 0 and 1", hint=hint)


def _check_median(request: FitRequest) -> None:
    """Settings of the algorithms for the absolute loss."""
    positive("--smoothing", request.smoothing)
    positive("--ridge", request.ridge)
    if request.ridge is not None and not _RIDGES[0] <= request.ridge <= _RIDGES[1]:
        raise UsageError(f"--ridge must lie between {_RIDGES[0]:g} and {_RIDGES[1]:g} records")
    if request.noise is not None:
        one_of("--noise", request.noise, NOISES)
    if request.batches is not None:
        one_of("--batches", request.batches, BATCHES)
    budget = request.budget
    if budget is None or not request.traits.pure:
        return
    if budget.pure and request.noise == "gaussian":
        raise UsageError("--noise gaussian needs --delta beside --eps")
    if request.algorithm == "median-objective" and budget.epsilon is None:
        raise UsageError(
            f"--algo {request.algorithm} needs a budget in --eps",
            hint="for a rho choose --algo median-irls or median-cd",
        )
    if request.algorithm == "median-cd":
        if request.noise == "l2":
            raise UsageError(
                "--noise l2 is no law of --algo median-cd", hint="choose l1 or gaussian"
            )
        if request.batches == "full" and (budget.pure or request.noise == "l1"):
            raise UsageError("--batches full needs --noise gaussian, hence --delta")


def _check_settings(request: FitRequest) -> None:
    """Refuse a setting that the algorithm does not have, instead of dropping it."""
    traits = request.traits
    for name in request.asked_settings():
        if name in traits.settings:
            continue
        raise UsageError(
            f"--{name.replace('_', '-')} is no setting of --algo {request.algorithm}",
            hint=f"it is one of --algo {' or '.join(with_setting(name))}",
        )
    if request.sparsity is not None:
        if traits.sparsity is None:
            raise UsageError(f"--sparsity is no setting of --algo {request.algorithm}")
        at_least_one("--sparsity", request.sparsity)
    elif traits.sparsity:
        raise UsageError(
            f"--algo {request.algorithm} needs --sparsity, the coefficients to keep",
            hint="give a number, for instance --sparsity 50",
        )
    if request.joint_rows is not None and request.sparsity is None:
        raise UsageError("--sparsity-mode needs --sparsity")
    if request.budget is not None and not (traits.pure and request.budget.pure):
        if traits.pure and request.budget.mu is not None:
            raise UsageError(
                f"--algo {request.algorithm} takes no budget in --mu",
                hint="give --eps, with --delta or without",
            )
        # Selections need a budget in rho; one in mu, or without a delta, is refused here.
        _ = request.budget.total_rho if traits.selects else request.budget.squared_mu
    if not request.intercept and not traits.intercept:
        raise UsageError(f"--algo {request.algorithm} has no fit without an intercept")


def _check_printed(request: FitRequest) -> None:
    """Refuse what no paper prints a noise for."""
    asked = f"--calibration {request.calibration}"
    if request.without_noise:
        raise UsageError(f"{asked} is of no use in a run without noise")
    if (request.algorithm, request.calibration) not in PRINTED:
        able = " or ".join(algo for algo, name in PRINTED if name == request.calibration)
        raise UsageError(
            f"--algo {request.algorithm} has no --calibration {request.calibration}",
            hint=f"choose {able}",
        )
    if request.budget is None or request.budget.epsilon is None:
        raise UsageError(f"{asked} needs --eps and --delta, which the printed noise is for")
    if request.selection == "one-shot":
        raise UsageError(f"{asked} chooses columns by --selection peeling")


def check_loss(request: FitRequest, loss: str) -> None:
    """Refuse what does not go with a loss, once it is known.

    Parameters
    ----------
    request : FitRequest
        Checked but for this.
    loss : str
        As chosen or inferred.

    Raises
    ------
    UsageError
        The algorithm, the printed noise, the offsets or the sparsity mode are for others.
    """
    if request.unit is not None and loss == "absolute":
        raise UsageError(
            "--loss absolute has no algorithm for --unit",
            hint="--loss huber is as robust and has one; without --unit single rows are protected",
        )
    if not request.traits.fits(loss):
        able = [name for name, one in ALGORITHMS.items() if loss in (one.losses or ())]
        raise UsageError(
            f"--algo {request.algorithm} does not fit --loss {loss}",
            hint=f"choose {' or '.join(able)}" if able else "choose --loss absolute",
        )
    if request.exposed and loss not in WITH_OFFSET:
        raise UsageError(
            f"--loss {loss} has no offset or exposure", hint="for counts give --loss poisson"
        )
    if loss == "multinomial" and request.traits.selects:
        able = [name for name, traits in ALGORITHMS.items() if not traits.selects]
        if request.algorithm in ORIGINALS:
            able = [name for name, private in ORIGINALS.items() if private in able]
        raise UsageError(
            f"--algo {request.algorithm} fits two classes only",
            hint=f"choose one of {', '.join(able)}",
        )
    if loss != "multinomial" and request.joint_rows is not None:
        raise UsageError("--sparsity-mode belongs to --loss multinomial")
    if request.printed and loss == "poisson":
        raise UsageError("--loss poisson starts at a released mean, which no paper prints")
    if request.calibration == "paper-corollary" and loss != "logistic":
        raise UsageError("--calibration paper-corollary belongs to --loss logistic")


def _check_target(request: FitRequest) -> None:
    declared = request.declared
    for option, value in (("--n-rows", declared.n_rows), ("--n-features", declared.n_features)):
        if value is not None:
            at_least_one(option, value)
            if value > _LARGEST_COUNT:
                raise UsageError(f"{option} must be at most {_LARGEST_COUNT}")
    if declared.labels is not None and declared.target_range is not None:
        raise UsageError("--labels and --target-range exclude each other")
    if declared.labels is not None:
        if request.loss not in (None, *OF_CLASSES):
            raise UsageError("--labels belongs to --loss logistic or multinomial")
        if request.loss == "logistic" and len(declared.labels) != 2:
            raise UsageError("--loss logistic has two labels; more need --loss multinomial")
    if declared.target_range is not None:
        if request.loss in OF_CLASSES:
            raise UsageError("--target-range belongs to a target that is a number")
        low, high = declared.target_range
        if not (low < high and math.isfinite(high - low)):
            raise UsageError("--target-range needs two finite numbers, the lower first")
        if request.loss == "poisson" and low != 0.0:
            raise UsageError("--target-range of counts begins at 0")


def _check_attributes(request: FitRequest) -> None:
    """Weights, offsets and the threshold of Huber's loss."""
    positive("--huber-threshold", request.huber_threshold)
    if request.huber_threshold is not None and request.loss != "huber":
        raise UsageError("--huber-threshold belongs to --loss huber")
    positive("--max-weight", request.declared.max_weight)
    positive("--max-exposure", request.declared.max_exposure)
    if request.declared.max_exposure is not None and request.loss != "poisson":
        raise UsageError("--max-exposure belongs to --loss poisson")


def _check_unit(request: FitRequest) -> None:
    """What makes a guarantee for units that own several records."""
    if request.unit is None:
        for option, value in (
            ("--max-rows-per-unit", request.max_rows_per_unit),
            ("--unit-clip", request.unit_clip),
            ("--n-units", request.declared.n_owners),
        ):
            if value is not None:
                raise UsageError(
                    f"{option} needs --unit, the column of the units",
                    hint=f"give --unit COLUMN, or leave {option} out",
                )
        return
    if request.max_rows_per_unit is None:
        raise UsageError(
            "--unit needs --max-rows-per-unit, the rows of a unit that take part",
            hint="give what most units have, for instance --max-rows-per-unit 16",
        )
    if not 1 <= request.max_rows_per_unit <= MOST_ROWS:
        raise UsageError(f"--max-rows-per-unit must lie between 1 and {MOST_ROWS}")
    positive("--unit-clip", request.unit_clip)
    if request.unit_clip is not None and request.unit_clip > request.max_rows_per_unit:
        raise UsageError("--unit-clip is in rows and at most --max-rows-per-unit")
    if request.declared.n_owners is not None:
        at_least_one("--n-units", request.declared.n_owners)
        if request.declared.n_owners > _LARGEST_COUNT:
            raise UsageError(f"--n-units must be at most {_LARGEST_COUNT}")
    able = [name for name, traits in ALGORITHMS.items() if traits.by_unit]
    if not request.traits.by_unit:
        raise UsageError(
            f"--algo {request.algorithm} protects rows, not units",
            hint=f"with --unit choose {' or '.join(able)}",
        )
    if request.printed:
        raise UsageError("--unit: no paper prints a noise for units")
