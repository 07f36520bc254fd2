"""From a user's real numbers to integers: the last operation on each vector is an integer check.

Every step is a function of one user and public numbers, so users cannot influence each other.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.fixed_point import enforce_norm

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


def bounded_vectors(
    values: Floats, users: Integers, n_users: int, *, limit: float, bound: int
) -> Integers:
    """Each user's numbers, shrunk to the l2 norm ``limit``, with ``limit`` become ``bound``.

    Parameters
    ----------
    values : float64 array, shape (m,)
        Numbers of all users.
    users : int64 array, shape (m,)
        Whose each number is.
    n_users : int
        Number of users.
    limit : float
        Longest norm that is not shrunk, > 0.
    bound : int
        What it becomes, at most 2^26 so that squares are exact.

    Returns
    -------
    int64 array, shape (m,)
        With ``sum over a user of q^2 <= bound^2``, checked in exact arithmetic.
    """
    norms = np.sqrt(np.bincount(users, weights=values * values, minlength=n_users))
    scale = bound / np.fmax(norms, limit)
    scaled = values * scale[users]
    clipped = np.trunc(np.fmin(np.fmax(scaled, -float(bound)), float(bound)))
    return enforce_norm(clipped, users, n_users, float(bound)).astype(np.int64)


def bounded_rows(rows: Floats, *, bound: int) -> Integers:
    """Each user's row of a table, of l2 norm at most one, with one become ``bound``.

    Parameters
    ----------
    rows : float64 array, shape (n, q)
        A longer row is shrunk.
    bound : int
        At most 2^26.

    Returns
    -------
    int64 array, shape (n, q)
        With row norms at most ``bound``, checked in exact arithmetic.
    """
    users = np.repeat(np.arange(len(rows)), rows.shape[1])
    flat = bounded_vectors(rows.ravel(), users, len(rows), limit=1.0, bound=bound)
    return flat.reshape(rows.shape)


def bounded_numbers(values: Floats, *, lowest: float, bound: int) -> Integers:
    """Each user's number, clipped to [lowest, 1], with one become ``bound``.

    Parameters
    ----------
    values : float64 array, shape (n,)
        One number for each user; a NaN counts as ``lowest``.
    lowest : float
        0 or -1.
    bound : int
        What one becomes.
    """
    least = int(lowest) * bound
    scaled = np.trunc(np.fmin(np.fmax(values, lowest), 1.0) * bound).astype(np.int64)
    return np.asarray(np.clip(scaled, least, bound))
