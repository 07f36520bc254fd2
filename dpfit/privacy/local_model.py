"""What is public about the items, as each user's own regression takes it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.local_ridge import pair_products, solve_block
from dpfit.design.user_ratings import UserBlock, UserRatings

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

    @cached_property
    def products(self) -> Floats:
        """Of each item's features with each other, which every user's Gram matrix adds up."""
        return pair_products(self.features)

    def solve_block(self, block: UserBlock) -> tuple[Floats, Floats]:
        """Each user's a, and the ratings less the baseline that it was fitted to.

        Parameters
        ----------
        block : UserBlock
            Users with their own ratings.

        Returns
        -------
        float64 array, shape (n_users, q)
            Zero without ratings.
        float64 array, shape (m,)
        """
        target = block.values - self.baseline.take(block.items)
        solved = solve_block(
            block, target, self.features, self.products, self.ridges, threshold=self.threshold
        )
        return solved, target

    def solve(self, ratings: UserRatings) -> Floats:
        """a of all users, shape (n_users, q); zero without ratings."""
        solved = np.empty((ratings.n_users, len(self.ridges)))
        for block in ratings.blocks():
            solved[block.rows] = self.solve_block(block)[0]
        return solved
