"""From options, as every face of the program has them, to a checked request for a fit."""

from __future__ import annotations

from typing import Any, Final

from dpfit.design.grid import RowMap
from dpfit.errors import UsageError
from dpfit.fitting.algorithm_traits import AUTO, chosen_algorithm, only_loss
from dpfit.fitting.request import FitRequest
from dpfit.fitting.requested_budget import requested_budget
from dpfit.fitting.search import Search

_AS_THEY_ARE: Final = (
    *("sparsity", "huber_threshold", "iterations", "step_size", "residual_clip", "l1_radius"),
    *("selection", "projection_radius", "threshold", "quantile", "smoothing", "ridge", "noise"),
    *("batches", "entry_clip", "intercept", "adjacency", "calibration"),
)


def linear_request(
    options: Any,
    *,
    row_norm: float | None,
    without_noise: bool,
    seed: int | None,
    search: Search | None = None,
    **facts: Any,
) -> FitRequest:
    """The request that a configuration makes.

    Parameters
    ----------
    options : object
        Has the options of a fit as attributes: ``eps``, ``algo``, ``sparsity`` and so on.
    row_norm : float or None
        K, by whatever declares it; None: 1, and rows are scaled to it.
    without_noise, seed, search, **facts
        Of the request.

    Raises
    ------
    UsageError
        A value is out of its range, or two of them contradict each other.
    """
    settings = {name: getattr(options, name) for name in _AS_THEY_ARE}
    if search is not None:  # the first candidate stands for what all of them are checked for
        settings |= search.candidates()[0]
    if options.dense and settings["sparsity"] is not None:
        raise UsageError("--dense and --sparsity exclude each other")
    normalize = options.normalize_rows
    if normalize is None:
        normalize = row_norm is None
    loss = options.loss
    if loss is None and options.quantile is not None and options.algo == AUTO:
        loss = "absolute"  # the only one with quantiles
    by_unit = facts.get("unit") is not None
    algorithm = chosen_algorithm(options.algo, loss, intercept=options.intercept, by_unit=by_unit)
    return FitRequest(
        budget=requested_budget(options, seed=seed, without_noise=without_noise),
        without_noise=without_noise,
        algorithm=algorithm,
        loss=loss or only_loss(algorithm),
        joint_rows=_joint_rows(options.sparsity_mode),
        row_norm=1.0 if row_norm is None else row_norm,
        row_map=RowMap.NORMALIZE if normalize else RowMap.CLIP,
        seed=seed,
        search=search,
        **settings,
        **facts,
    )


def _joint_rows(mode: str | None) -> bool | None:
    if mode not in (None, "per-class", "joint"):
        raise UsageError("--sparsity-mode must be per-class or joint")
    return None if mode is None else mode == "joint"
