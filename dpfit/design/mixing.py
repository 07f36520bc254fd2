"""A public mixing of 64-bit words, for choices that look random and are the same everywhere."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)


def mixed(words: Words) -> Words:
    """Each word alone, one to one, by the finaliser of SplitMix64 (Steele, Lea, Flood, 2014)."""
    words = words + _GOLDEN
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))


def bits_of(numbers: NDArray[np.float64]) -> Words:
    """The bits of floats; equal numbers have equal ones."""
    return (numbers + 0.0).view(np.uint64)  # -0.0 becomes 0.0
