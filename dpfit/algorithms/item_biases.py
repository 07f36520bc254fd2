"""Item biases from noisy counts and noisy sums: the first stage (matrix completion, 2.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.algorithms.shrinkage import curve, prior_variance
from dpfit.privacy.rating_curator import RatingCurator, ResidualBounds

Floats: TypeAlias = NDArray[np.float64]

_POPULARITY_POWER: Final = 0.25
_DEGREE: Final = 2
_LEAST_NOISE: Final = 1e-9


@dataclass(frozen=True)
class ItemCounts:
    """Public weights of the items, and what was released about how often each is rated.

    Attributes
    ----------
    bounds : ResidualBounds
        The weights of ratings.
    counts : float64 array, shape (n_items,)
        C, noisy sums of the weights of an item's ratings, positive.
    squared : float64 array, shape (n_items,)
        A stand-in for the sums of their squares.
    """

    bounds: ResidualBounds
    counts: Floats
    squared: Floats


def released_counts(curator: RatingCurator, most: float) -> ItemCounts:
    """Weigh items by noisy counts, ``om_j = count_j^-1/4``, then count anew by these weights.

    Parameters
    ----------
    curator : RatingCurator
        Answers two questions for counts.
    most : float
        k: a user's squared weights sum to at most that.
    """
    plain = ResidualBounds(np.ones(curator.n_items), most)
    noise = curator.noise_scale("item counts") * most**0.5
    first = np.maximum(curator.item_counts("item counts", plain), max(1.0, 2.0 * noise))
    weights = first**-_POPULARITY_POWER
    weights /= np.sqrt((first * weights**2).sum() / first.sum())  # mean square over ratings one
    bounds = ResidualBounds(weights, most)
    noise = curator.noise_scale("weighted item counts") * most**0.5
    counts = curator.item_counts("weighted item counts", bounds)
    counts = np.maximum(counts, max(0.5, 0.5 * noise))
    per_user = max(float(counts.sum()) / curator.n_users, 1.0)
    typical = weights * min(1.0, (most / per_user) ** 0.5)
    return ItemCounts(bounds, counts, counts * np.minimum(typical, 1.0))


@dataclass
class BiasEstimate:
    """Item biases, averaged over looks at them by inverse noise variance, and shrunk.

    Attributes
    ----------
    items : ItemCounts
        Released counts.
    unit : float
        A quarter of the range of ratings.
    variance : float
        Of a rating around its prediction.
    """

    items: ItemCounts
    unit: float
    variance: float
    _weighted: Floats = field(init=False)
    _precision: Floats = field(init=False)
    _prior: Floats = field(init=False)

    def __post_init__(self) -> None:
        self._weighted = np.zeros(len(self.items.counts))
        self._precision = np.zeros(len(self.items.counts))
        self._prior = np.asarray(0.2 * self.unit**2)

    def observe(self, values: Floats, noise_variance: Floats | float) -> None:
        """One more noisy look at the biases; only the privacy noise is new in it."""
        least = _LEAST_NOISE * (self.unit / self.items.counts) ** 2
        precision = 1.0 / np.maximum(noise_variance, least)
        self._weighted += values * precision
        self._precision += precision

    def shrunk(self) -> Floats:
        """The estimate, pulled to a quadratic curve in the logarithm of the counts."""
        counts = self.items.counts
        seen = self._weighted / self._precision
        variance = 1.0 / self._precision + self.variance * self.items.squared / counts**2
        basis = np.stack([np.log(counts) ** power for power in range(_DEGREE + 1)], axis=1)
        basis /= np.fmax(np.abs(basis).max(axis=0), 1e-300)  # log 1 is zero
        for _ in range(4):
            centre = curve(basis, seen, 1.0 / (variance + self._prior))
            excess = seen - centre
            self._prior = prior_variance(excess, variance, self._prior, 1e-4 * self.unit**2)
        return np.asarray(centre + excess * (self._prior / (self._prior + variance)))
