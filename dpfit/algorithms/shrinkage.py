"""Empirical Bayes on released values: how far noisy estimates are pulled to a prior mean."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

_ROUNDS: Final = 6


def prior_variance(excess: Floats, variance: Floats, start: Floats, floor: float) -> Floats:
    """Variance of the truth around its prior mean, by weighted moments.

    Solves ``t = sum w (e^2 - v) / sum w`` with ``w = (v + t)^-2``, in six rounds from ``start``.

    Parameters
    ----------
    excess : float64 array, shape (n, ...)
        Estimates less their prior means.
    variance : float64 array, same shape
        Of each estimate around the truth.
    start : float64 array, shape (...)
        First guess.
    floor : float
        Least variance returned.
    """
    prior = start
    for _ in range(_ROUNDS):
        weights = (variance + prior) ** -2.0
        moment = (weights * (excess**2 - variance)).sum(axis=0) / weights.sum(axis=0)
        prior = np.maximum(moment, floor)
    return prior


def standard_error(variance: Floats, prior: Floats) -> Floats:
    """Of :func:`prior_variance`, for normal estimates."""
    return np.asarray(np.sqrt(2.0 / ((variance + prior) ** -2.0).sum(axis=0)))


def curve(basis: Floats, values: Floats, weights: Floats) -> Floats:
    """Weighted least squares fit of ``values`` on the columns of ``basis``, evaluated there."""
    weights = weights / weights.sum()  # so that the ridge is relative
    gram = basis.T @ (basis * weights[:, None])
    gram.flat[:: len(gram) + 1] += 1e-8
    return np.asarray(basis @ np.linalg.solve(gram, basis.T @ (weights * values)))
