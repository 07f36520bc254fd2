"""The hard threshold H_s."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


def largest_magnitude(vector: Floats, count: int) -> Integers:
    """Sorted indices of the ``count`` entries of largest magnitude.

    Between equal magnitudes the lower index wins, so the result is a function of the vector alone.
    """
    if count >= len(vector):
        return np.arange(len(vector))
    magnitude = np.abs(vector)
    threshold = np.partition(magnitude, -count)[-count]
    above = np.flatnonzero(magnitude > threshold)
    ties = np.flatnonzero(magnitude == threshold)[: count - len(above)]
    return np.sort(np.concatenate([above, ties]))


def hard_threshold(vector: Floats, sparsity: int) -> Floats:
    """H_s: keep the ``sparsity`` entries of largest magnitude, zero the rest."""
    kept = largest_magnitude(vector, sparsity)
    result = np.zeros_like(vector)
    result[kept] = vector[kept]
    return result
