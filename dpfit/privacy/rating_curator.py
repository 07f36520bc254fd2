"""The only door between users' ratings and an algorithm that completes their matrix.

The curator owns the ratings and, between two questions of a sweep, the users' factors, which are
functions of one user's ratings and public numbers. What it hands out was charged before, is a sum
over users of integers whose norm was checked last, and went through :mod:`.charged_releases`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.local_ridge import fitted
from dpfit.design.user_integers import bounded_numbers, bounded_rows, bounded_vectors
from dpfit.design.user_ratings import UserBlock, UserRatings
from dpfit.memory import BLAS_BUFFER, require_memory
from dpfit.privacy.charged_releases import ChargedReleases, SumRelease
from dpfit.privacy.local_model import LocalModel
from dpfit.privacy.mechanisms.noise import Noise
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.user_sensitivity import UserGrid

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class ResidualBounds:
    """Public bounds on what a user contributes to sums of residuals.

    Attributes
    ----------
    item_weights : float64 array, shape (n_items,)
        om_j > 0; a rating weighs ``om_j min(1, sqrt(k) / |om|)``, the norm over the user's items.
    most : float
        k: a user's squared weights sum to at most that.
    clip : float
        Bound on a single residual.
    norm : float
        Bound on the root of a user's sum of squared weighted residuals, over ``sqrt(k)``.
    """

    item_weights: Floats
    most: float
    clip: float = math.inf
    norm: float = 1.0

    @property
    def longest(self) -> float:
        """The l2 norm of a user's weighted residuals, at most."""
        return math.sqrt(self.most) * self.norm


class RatingCurator:
    """Answers planned questions about private ratings, each with noise that was charged.

    Parameters
    ----------
    ratings : UserRatings
        The private ratings, clipped to their public range.
    grid : UserGrid
        The public numbers; the number of users divides the sums over users.
    value_range : (float, float)
        Public bounds of a rating.
    releases : iterable of releases
        What was charged, by label.
    noise : Noise
        Exact noise under a key that was made after the charge was on disk.
    """

    def __init__(
        self,
        *,
        ratings: UserRatings,
        grid: UserGrid,
        value_range: tuple[float, float],
        releases: Iterable[SumRelease],
        noise: Noise,
    ) -> None:
        self._ratings = ratings
        self._grid = grid
        self._range = value_range
        self._charged = ChargedReleases(releases, noise)
        self._model: LocalModel | None = None
        self._solved = np.zeros((0, 0))

    @property
    def n_users(self) -> int:
        """Public."""
        return self._grid.n_users

    @property
    def n_items(self) -> int:
        """Public."""
        return self._grid.n_items

    @property
    def value_range(self) -> tuple[float, float]:
        """Public."""
        return self._range

    def noise_scale(self, label: str) -> float:
        """Standard deviation of the noise on a sum, in units of a user's largest share."""
        return self._charged.noise_multiplier(label)

    # --- numbers ---------------------------------------------------------------------------

    def global_mean(self, label: str) -> float:
        """Noisy mean over users of the mean of their ratings; without ratings, mid-range."""
        low, high = self._range
        middle, half = (low + high) / 2.0, (high - low) / 2.0
        release = self._charged.take_sum(label, Quantity.USER_MEANS)
        means = [
            block.sums(block.values - middle) / np.maximum(block.counts, 1)
            for block in self._ratings.blocks()
        ]
        return middle + half * self._mean(release, np.concatenate(means) / half, lowest=-1.0)

    def residual_variance(self, label: str, model: LocalModel, *, cap: float) -> float:
        """Noisy mean over users of their mean squared residual, each at most ``cap``."""
        release = self._charged.take_sum(label, Quantity.USER_SHARES)
        shares = []
        for block, residual in self._residuals(model):
            mean_square = block.sums(residual * residual) / np.maximum(block.counts, 1)
            shares.append(mean_square / cap)
        return cap * self._mean(release, np.concatenate(shares), lowest=0.0)

    def _mean(self, release: SumRelease, shares: Floats, *, lowest: float) -> float:
        integers = bounded_numbers(shares, lowest=lowest, bound=release.unit)
        total = self._charged.noisy(release, integers.sum(keepdims=True))
        return float(total[0]) / release.unit / self.n_users

    def _released(self, release: SumRelease, sums: Integers, length: float) -> Floats:
        noisy = self._charged.noisy(release, sums).astype(np.float64)
        noisy *= length
        return noisy

    # --- sums by item ----------------------------------------------------------------------

    def item_counts(self, label: str, bounds: ResidualBounds) -> Floats:
        """Noisy sums over users of the weights of their ratings, shape (n_items,)."""
        release = self._charged.take_sum(label, Quantity.ITEM_COUNTS)
        longest = math.sqrt(bounds.most)
        sums = np.zeros(self.n_items, np.int64)
        for block in self._ratings.blocks():
            weights = _weights(block, bounds)
            _add_by_item(sums, block, _bounded(block, weights, longest, release.unit))
        return self._released(release, sums, longest / release.unit)

    def residual_sums(self, label: str, model: LocalModel, bounds: ResidualBounds) -> Floats:
        """Noisy weighted sums of residuals after each user's own fit, shape (n_items,)."""
        release = self._charged.take_sum(label, Quantity.ITEM_SUMS)
        sums = np.zeros(self.n_items, np.int64)
        for block, residual in self._residuals(model):
            weighted = _weighted(block, residual, bounds)
            _add_by_item(sums, block, _bounded(block, weighted, bounds.longest, release.unit))
        return self._released(release, sums, bounds.longest / release.unit)

    # --- factors ---------------------------------------------------------------------------

    def solve_users(self, model: LocalModel) -> None:
        """Fit every user's own factors; they stay here. Nothing is released."""
        self._model, self._solved = model, model.solve(self._ratings)

    def factor_length(self, label: str, *, cap: float) -> float:
        """Noisy mean over users of the length of their factor, each at most ``cap``."""
        release = self._charged.take_sum(label, Quantity.USER_SHARES)
        return cap * self._mean(release, _lengths(self._factors()) / cap, lowest=0.0)

    def factor_directions(self, label: str) -> Floats:
        """Noisy sum over users of ``d d'``, d the direction of their factor, shape (r, r)."""
        return self._moments(label, _directions(self._factors()))

    def factor_moments(
        self, label: str, basis: Floats, constant: float, bounds: ResidualBounds
    ) -> Floats:
        """Noisy sum over users of ``c t t'``, shape (1 + q, 1 + q), t the unit vector of the
        constant and the direction in a basis, c the sum of the user's weights over 2 k, at most 1.

        Parameters
        ----------
        label : str
            Which of the charged releases.
        basis : float64 array, shape (r, q)
            Public, with orthonormal columns; none leaves the constant alone.
        constant : float
            Public; the constant that goes with a direction of length one.
        bounds : ResidualBounds
            The weights.
        """
        sums = [block.sums(_weights(block, bounds)) for block in self._ratings.blocks()]
        shares = np.sqrt(np.minimum(1.0, np.concatenate(sums) / (2.0 * bounds.most)))
        return self._moments(label, self._with_constant(basis, constant) * shares[:, None])

    def factor_sums(
        self, label: str, basis: Floats, constant: float, bounds: ResidualBounds
    ) -> Floats:
        """Noisy sums over users of weighted residuals times t, shape (n_items, 1 + q).

        Residuals are those after each user's whole fit; for t and the parameters see
        :meth:`factor_moments`.
        """
        assert self._model is not None
        release = self._charged.take_sum(label, Quantity.FACTOR_SUMS)
        factors = bounded_rows(self._with_constant(basis, constant), bound=self._grid.factor_norm)
        sums = np.zeros((self.n_items, factors.shape[1]), np.int64)
        for block in self._ratings.blocks():
            fit = fitted(block, self._solved[block.rows], self._model.features)
            residual = block.values - self._model.baseline.take(block.items) - fit
            weighted = _weighted(block, residual, bounds)
            integers = _bounded(block, weighted, bounds.longest, release.unit)
            sums += block.matrix(integers).T @ factors[block.rows]
        length = bounds.longest / release.unit / self._grid.factor_norm
        return self._released(release, sums, length)

    def _moments(self, label: str, vectors: Floats) -> Floats:
        """Every entry of the symmetric sum gets noise of its own; the mean of two is released."""
        release = self._charged.take_sum(label, Quantity.FACTOR_MOMENTS)
        norm = self._grid.factor_norm
        integers = bounded_rows(vectors, bound=norm)
        sums = np.einsum("ij,ik->jk", integers, integers) * release.unit
        moments = self._released(release, sums, 1.0 / release.unit / norm**2)
        return np.asarray((moments + moments.T) / 2.0)

    def _factors(self) -> Floats:
        assert self._model is not None
        return self._solved[:, self._solved.shape[1] - self._model.rank :]

    def _with_constant(self, basis: Floats, constant: float) -> Floats:
        directions = _directions(_rotated(self._factors(), basis))
        constants = np.full((len(directions), 1), constant)
        longest = math.sqrt(constant**2 + (1.0 if basis.size else 0.0))
        return np.hstack([constants, directions]) / longest

    def _residuals(self, model: LocalModel) -> Iterator[tuple[UserBlock, Floats]]:
        """Users block by block, and what their own fits leave of their ratings."""
        for block in self._ratings.blocks():
            coefficients, target = model.solve_block(block)
            yield block, target - fitted(block, coefficients, model.features)


def arrays_of(grid: UserGrid) -> int:
    """Bytes that a sweep takes for what it has of each user and of each item."""
    q = grid.rank + 3
    return 8 * (grid.n_users * 3 * q + grid.n_items * (q * (q + 1) // 2 + 4 * q))


def check_memory(grid: UserGrid) -> None:
    """Run out of memory now rather than after the charge, where a sweep's arrays tell.

    Nothing is touched, so asking takes no time.
    """
    np.empty(arrays_of(grid), np.uint8)
    # OpenBLAS ends the process when it cannot have its buffer, which it keeps from its first use.
    require_memory(BLAS_BUFFER)
    np.dot(*np.ones((2, 200, 200)))


def _weights(block: UserBlock, bounds: ResidualBounds) -> Floats:
    weights = bounds.item_weights.take(block.items)
    norms = np.sqrt(block.sums(weights * weights))
    shrinkage = np.minimum(1.0, math.sqrt(bounds.most) / np.fmax(norms, 1e-300))
    return np.asarray(weights * shrinkage.take(block.users))


def _weighted(block: UserBlock, residual: Floats, bounds: ResidualBounds) -> Floats:
    clipped = np.fmin(np.fmax(residual, -bounds.clip), bounds.clip)
    return _weights(block, bounds) * clipped


def _bounded(block: UserBlock, entries: Floats, longest: float, unit: int) -> Integers:
    return bounded_vectors(entries, block.users, block.n_users, limit=longest, bound=unit)


def _add_by_item(sums: Integers, block: UserBlock, integers: Integers) -> None:
    sums += block.matrix(integers).T @ np.ones(block.n_users, np.int64)


def _lengths(rows: Floats) -> Floats:
    squares = np.zeros(len(rows))
    for column in rows.T:
        squares += column * column
    return np.sqrt(squares)


def _directions(rows: Floats) -> Floats:
    """Rows of length one; a zero row stays."""
    lengths = _lengths(rows)
    return np.asarray(rows / np.where(lengths > 0.0, lengths, 1.0)[:, None])


def _rotated(rows: Floats, basis: Floats) -> Floats:
    """``rows @ basis``, in the same order of operations wherever a row stands."""
    rotated = np.zeros((len(rows), basis.shape[1]))
    for column, weights in zip(rows.T, basis, strict=True):
        rotated += column[:, None] * weights
    return rotated
