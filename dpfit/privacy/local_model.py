"""What is public about the items, as each user's own regression takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class LocalModel:
    """A user's rating of item j is ``baseline_j + features_j.a`` with the user's own a.

    Attributes
    ----------
    baseline : float64 array, shape (n_items,)
        What everyone starts from: the global mean and the item's bias.
    features : float64 array, shape (n_items, q)
        The constant of the user's offset first, the factors last.
    ridges : float64 array, shape (q,)
        ``a = argmin sum_j rho(x_j - baseline_j - features_j.a) + sum_l ridges_l a_l^2 / 2``, each
        ridge > 0.
    rank : int
        How many of the features are factors.
    threshold : float or None
        rho is Huber's loss with that threshold; None: half the square.
    """

    baseline: Floats
    features: Floats
    ridges: Floats
    rank: int = 0
    threshold: float | None = None
