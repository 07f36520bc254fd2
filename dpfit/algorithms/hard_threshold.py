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
    near = np.flatnonzero(magnitude >= threshold)
    if len(near) == count:
        return near
    above = near[magnitude[near] > threshold]
    ties = near[magnitude[near] == threshold][: count - len(above)]
    return np.sort(np.concatenate([above, ties]))


def hard_threshold(coefficients: Floats, sparsity: int, *, joint: bool = False) -> Floats:
    """H_s: keep the ``sparsity`` entries of largest magnitude, zero the rest.

    Parameters
    ----------
    coefficients : float64 array, shape (d,) or (d, k)
        With a column for each of k classes when there are several.
    sparsity : int
        s.
    joint : bool
        Of k classes keep the s rows of largest l2 norm; else s entries for each class.
    """
    keep = largest_entries(coefficients, sparsity, joint=joint)
    thresholded = np.zeros(coefficients.shape)  # memory is touched where an entry is kept, no more
    thresholded[keep] = coefficients[keep]
    return thresholded


def largest_entries(coefficients: Floats, sparsity: int, *, joint: bool) -> NDArray[np.bool_]:
    """Which entries :func:`hard_threshold` keeps, in the shape of ``coefficients``."""
    keep = np.zeros(coefficients.shape, np.bool_)
    if coefficients.ndim == 1:
        keep[largest_magnitude(coefficients, sparsity)] = True
    elif joint:
        keep[largest_magnitude(_row_lengths(coefficients), sparsity)] = True
    else:
        for column, kept in zip(coefficients.T, keep.T, strict=True):
            kept[largest_magnitude(column, sparsity)] = True
    return keep


def _row_lengths(rows: Floats) -> Floats:
    """l2 norms, by way of each row's largest entry, whose square may leave the floats."""
    largest = np.max(np.abs(rows), axis=1)
    relative = rows / np.where(largest == 0.0, 1.0, largest)[:, None]
    return np.asarray(largest * np.linalg.norm(relative, axis=1))


def support_of(coefficients: Floats | NDArray[np.bool_]) -> Integers:
    """Sorted indices of the columns with an entry that is not zero, for any class."""
    nonzero = coefficients if coefficients.ndim == 1 else coefficients.any(axis=1)
    return np.flatnonzero(nonzero)
