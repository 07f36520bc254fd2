"""Scores of candidates for a quantile of the target.

Un-noised: only the Curator may look at them. (Smith, STOC 2011, with candidates on a public grid,
so that the mechanism is a selection from finitely many.)
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.privacy.share_integers import share_integers

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_STEPS: Final = 1 << 14  # candidates are 0, 1/2^14, ..., 1 of the target's range


def records_at_each(target: Floats) -> Integers:
    """How many of the targets, mapped to [0, 1], round to each candidate, shape (2^14 + 1,)."""
    return np.bincount(share_integers(target, _STEPS), minlength=_STEPS + 1).astype(np.int64)


def rank_scores(held: Integers, quantile: float, n_rows: int, unit: int) -> Integers:
    """Minus the number of records that keep each candidate from being the quantile, in units.

    With targets rounded to the grid, L of them below a candidate and M up to it, that number is
    ``max(L - q n, q n - M, 0)``. A record moves L and M by at most 1 each, and the maximum with
    them, under both neighbouring relations: n is public.

    Parameters
    ----------
    held : int64 array, shape (2^14 + 1,)
        Targets at each candidate.
    quantile : float
        q.
    n_rows : int
        The public number of records.
    unit : int
        What a record's step is scaled to.

    Returns
    -------
    int64 array, shape (2^14 + 1,)
    """
    up_to = np.cumsum(held) * unit
    below = up_to - held * unit
    wanted = round(quantile * n_rows * unit)
    return np.asarray(-np.maximum(np.maximum(below - wanted, wanted - up_to), 0))


def value_of(candidate: int) -> float:
    """A candidate's place in [0, 1]."""
    return candidate / _STEPS
