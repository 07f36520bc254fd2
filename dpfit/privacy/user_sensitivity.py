"""How far one user, with all ratings, moves a sum over users.

The number of users and the list of items are public. Under add-remove what a user contributes is
left out (the divisor stays); under replace-one the user gives way to any other user.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpfit.privacy.adjacency import PerAdjacency
from dpfit.privacy.quantity import Quantity

_WORD_BITS = 62
_MOST_VECTOR_BITS = 26  # squares of integers are exact in floats
_MOST_FACTOR_BITS = 16
_MULTIPLIER_BITS = 12  # the budget is met to one part in 2^12 at worst


@dataclass(frozen=True)
class UserGrid:
    """The integer lengths that users' numbers are scaled to, so that sums fit an int64.

    A sum that wraps around cannot hurt privacy (addition modulo 2^64), so a wrong public count
    costs accuracy only.

    Attributes
    ----------
    n_users, n_items : int
        Public numbers.
    rank : int
        Factors that a user has, at most.
    """

    n_users: int
    n_items: int
    rank: int

    @property
    def factor_bits(self) -> int:
        """b: a user's factor, of length one with its constant, becomes at most 2^b long."""
        return min(_MOST_FACTOR_BITS, max(1, (self._spare - _MULTIPLIER_BITS) // 2))

    @property
    def factor_norm(self) -> int:
        """2^b."""
        return 1 << self.factor_bits

    def unit_bits(self, quantity: Quantity) -> int:
        """The most bits of the unit of a release.

        Parameters
        ----------
        quantity : Quantity
            What is released.
        """
        if quantity is Quantity.FACTOR_MOMENTS:
            return min(_MOST_VECTOR_BITS, self._spare - 2 * self.factor_bits)
        if quantity is Quantity.FACTOR_SUMS:
            return min(_MOST_VECTOR_BITS, self._spare - self.factor_bits)
        return min(_MOST_VECTOR_BITS, self._spare)

    @property
    def _spare(self) -> int:
        return _WORD_BITS - max(self.n_users - 1, 1).bit_length()


@dataclass(frozen=True)
class UserSensitivity:
    """Sensitivity of a sum over users, per unit of its release.

    Attributes
    ----------
    l1 : PerAdjacency of int
        In the l1 norm.
    squared_l2 : PerAdjacency of int
        In the l2 norm, squared.
    """

    l1: PerAdjacency[int]
    squared_l2: PerAdjacency[int]


def user_sensitivity(quantity: Quantity, grid: UserGrid) -> UserSensitivity:
    """What the integer bound on each user's contribution means for the sum.

    With a unit U and factors of length F = 2^b:

    * a number in [-U, U] moves by U, by 2 U when the user is replaced; one in [0, U] by U;
    * a vector over the items of norm U moves the sum by U, by 2 U when replaced, or ``sqrt(2) U``
      where all entries are non-negative, and in l1 by ``sqrt(n_items) U``;
    * residuals of norm U times a factor of norm F: the norm of an outer product is the product;
    * the outer product of a factor with itself, times U: U F^2, and ``sqrt(2) U F^2`` when
      replaced, since two such matrices have a non-negative inner product (methods, 4.3).

    Parameters
    ----------
    quantity : Quantity
        What is released.
    grid : UserGrid
        The public numbers.
    """
    items, directions = _root_up(grid.n_items), _root_up(grid.rank + 1)
    factor = grid.factor_norm
    match quantity:
        case Quantity.USER_MEANS:
            return _signed(1, 1)
        case Quantity.USER_SHARES:
            return UserSensitivity(PerAdjacency(1, 1), PerAdjacency(1, 1))
        case Quantity.ITEM_COUNTS:
            return _non_negative(items, 1)
        case Quantity.ITEM_SUMS:
            return _signed(items, 1)
        case Quantity.FACTOR_SUMS:
            return _signed(items * directions * factor, factor**2)
        case Quantity.FACTOR_MOMENTS:
            return _non_negative((grid.rank + 1) * factor**2, factor**4)
        case _:
            raise ValueError(f"no sum over users: {quantity}")


def _signed(l1: int, squared_l2: int) -> UserSensitivity:
    return UserSensitivity(PerAdjacency(2 * l1, l1), PerAdjacency(4 * squared_l2, squared_l2))


def _non_negative(l1: int, squared_l2: int) -> UserSensitivity:
    return UserSensitivity(PerAdjacency(2 * l1, l1), PerAdjacency(2 * squared_l2, squared_l2))


def _root_up(number: int) -> int:
    return math.isqrt(number - 1) + 1
