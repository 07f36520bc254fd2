"""The neighbouring relation a guarantee speaks about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Generic, TypeVar

T = TypeVar("T")
N = TypeVar("N", int, Fraction)


class Adjacency(StrEnum):
    """Which two data sets must be hard to tell apart.

    Attributes
    ----------
    REPLACE_ONE
        One record is exchanged for another; the number of records is public. The definition of the
        papers behind the algorithms, and the default.
    ADD_REMOVE
        What one record contributes is left out of every sum (zero-out semantics); the number that
        divides the sums is public and stays. A replacement is two of these, so a sum of bounded
        vectors has exactly half the sensitivity. An all-zero row in the file is not that: it still
        counts in the intercept.
    """

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"


@dataclass(frozen=True)
class PerAdjacency(Generic[T]):
    """One number under each neighbouring relation.

    Attributes
    ----------
    replace_one, add_remove : T
        The number under the relation of that name.
    """

    replace_one: T
    add_remove: T

    def times(self: PerAdjacency[int], factor: N) -> PerAdjacency[N]:
        """Both numbers, multiplied exactly."""
        return PerAdjacency(self.replace_one * factor, self.add_remove * factor)

    def mapped(self, function: Callable[[T], N]) -> PerAdjacency[N]:
        """The function of both numbers."""
        return PerAdjacency(function(self.replace_one), function(self.add_remove))

    def under(self, adjacency: Adjacency) -> T:
        """Return the number under ``adjacency``."""
        return self.replace_one if adjacency is Adjacency.REPLACE_ONE else self.add_remove
