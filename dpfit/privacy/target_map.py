"""Targets of records as numbers: each by itself, by public facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.privacy.summary import Label, Target

Floats: TypeAlias = NDArray[np.float64]


def class_numbers(target: Target, classes: Sequence[Label]) -> Floats:
    """The number of each target's class, from 0; -1 where it is none of them, shape (n,)."""
    numbers = np.full(len(target), -1.0)
    for number, label in enumerate(classes):
        numbers[np.asarray(target == label)] = number
    return numbers


def in_range(target: Target, target_range: tuple[float, float]) -> Floats:
    """Targets clipped to their public range, which becomes [0, 1], shape (n,)."""
    low, high = target_range
    with np.errstate(over="ignore"):  # a target of 1e308 is clipped like any other
        mapped = (target.astype(np.float64) - low) / (high - low)
    return np.asarray(np.fmin(np.fmax(mapped, 0.0), 1.0))
