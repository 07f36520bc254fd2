"""Choice of k columns one by one, each the largest of freshly noised scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Integers: TypeAlias = NDArray[np.int64]


def peel(scores: Integers, k: int, fresh: Callable[[], Integers]) -> Integers:
    """Indices of k columns, ascending: each round takes the largest of scores + noise still in.

    A round with noise ``Z_j = floor(b X_j)``, X standard Laplace, b = 2^s, and the lower index at
    ties is ``2 D_inf / b``-differentially private if neighbours move every integer score q by at
    most D_inf. Fix all Z but j's. Then j wins exactly if ``Z_j >= t``, with t the largest of
    ``q_i + Z_i - q_j`` over i > j and of the same + 1 over i < j: an integer that neighbours move
    by at most ``2 D_inf``. For integers t, ``floor(b X) >= t`` says ``b X >= t``, and
    ``P(b X >= t + 2 D_inf) >= exp(-2 D_inf / b) P(b X >= t)``.

    Parameters
    ----------
    scores : int64 array, shape (d,)
        q; with noise they stay inside int64.
    k : int
        Number of rounds, at most d.
    fresh : callable
        The noise of one round on all d scores, of a step of its own.

    Returns
    -------
    int64 array, shape (k,)
    """
    is_in = np.ones(len(scores), np.bool_)
    for _ in range(k):
        noisy = scores + fresh()
        noisy[~is_in] = np.iinfo(np.int64).min
        is_in[np.argmax(noisy)] = False
    return np.flatnonzero(~is_in)
