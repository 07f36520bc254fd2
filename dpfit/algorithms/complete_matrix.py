"""User-level private matrix completion: item biases, free local features, low-rank factors.

Only quantities of items are released. Each user's own part is a ridge regression of the user's own
ratings on them, solved where those ratings are: joint differential privacy (methods, 4.3). The
method and its constants are those of matrix completion, sections 2 and 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.algorithms.base import Setting
from dpfit.algorithms.factor_outcome import FactorOutcome, Standardised
from dpfit.algorithms.factor_sweeps import (
    public_start,
    released_directions,
    released_move,
    shrunk_factors,
    worthwhile,
)
from dpfit.algorithms.item_biases import BiasEstimate, ItemCounts, released_counts
from dpfit.privacy.local_model import LocalModel
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.rating_curator import RatingCurator, ResidualBounds

Floats: TypeAlias = NDArray[np.float64]

OFFSET_RIDGE: Final = 6.0
_SLOPE_VARIANCE: Final = 0.03  # of a user's slope on a standardised feature, in rating variances
_BIAS_NORM: Final = 0.8  # of a quarter range
_FACTOR_NORM: Final = 0.7
_COUNT_SHARE: Final = Fraction(1, 5)
_SCALAR_SHARE: Final = Fraction(1, 50)
_FIRST_VARIANCE: Final = 0.8
_LEAST_VARIANCE: Final = 0.05
_LARGEST_VARIANCE: Final = 2.0


@dataclass(frozen=True)
class CompleteMatrix:
    """The algorithm; every setting is a function of public quantities.

    Attributes
    ----------
    rank : int
        r, factors at most; zero: biases and local features only.
    sweeps : int
        T, noisy moves of the item factors.
    passes : int
        Noisy looks at the item biases.
    max_per_user : float
        k: a user's ratings weigh like k, at most.
    bias_share : float
        Part of the budget that the biases get, if there are factors.
    growth : float
        Each sweep gets that many times the budget of the one before.
    residual_clip : float
        Bound on a residual, in rating units.
    huber_threshold : float or None
        Where the users' loss turns, in rating units; None for squares.
    may_fall_back : bool
        Whether factors are given up, and the rest of the budget goes to the biases, if what was
        released halfway shows no signal in them.
    """

    rank: int
    sweeps: int
    passes: int
    max_per_user: float
    bias_share: float
    growth: float
    residual_clip: float
    huber_threshold: float | None = None
    may_fall_back: bool = True

    name = "complete-matrix"

    @property
    def steps(self) -> int:
        """Passes and sweeps."""
        return self.passes + (self.sweeps if self.has_factors else 0)

    @property
    def has_factors(self) -> bool:
        """Whether there is a low-rank stage."""
        return self.rank > 0 and self.sweeps > 0

    def settings(self) -> Mapping[str, Setting]:
        """All settings, as JSON values; those of factors are left out where there are none."""
        values = {name: value for name, value in asdict(self).items() if value is not None}
        if not self.has_factors:
            for name in ("sweeps", "growth", "bias_share", "may_fall_back"):
                del values[name]
        return values

    def planned(self) -> list[PlannedRelease]:
        """Everything it will ask; the parts sum to one."""
        eighth = _SCALAR_SHARE / 8
        numbers = [
            PlannedRelease("global mean", Quantity.USER_MEANS, 1, eighth),
            PlannedRelease("residual variance", Quantity.USER_SHARES, 1, eighth),
        ]
        shared = []
        if self.has_factors:
            moments = Quantity.FACTOR_MOMENTS
            shared = [
                PlannedRelease("factor lengths", Quantity.USER_SHARES, self.sweeps, eighth),
                PlannedRelease("factor directions", moments, self.sweeps, eighth),
                PlannedRelease("factor moments", moments, self.sweeps, 4 * eighth),
            ]
        left = 1 - sum((one.budget_part for one in [*numbers, *shared]), Fraction(0))
        bias = left * Fraction(self.bias_share) if self.has_factors else left
        counts = bias * _COUNT_SHARE
        biases = [
            PlannedRelease("item counts", Quantity.ITEM_COUNTS, 1, counts / 2),
            PlannedRelease("weighted item counts", Quantity.ITEM_COUNTS, 1, counts / 2),
            PlannedRelease("item sums", Quantity.ITEM_SUMS, self.passes, bias - counts),
        ]
        return [*numbers, *biases, *shared, *self._planned_sweeps(left - bias)]

    def _planned_sweeps(self, part: Fraction) -> list[PlannedRelease]:
        if not self.has_factors:
            return []
        # Powers of floats: exact ones of many sweeps would have too many digits.
        powers = [Fraction(self.growth**sweep) for sweep in range(self.sweeps)]
        each = part / sum(powers)
        return [
            PlannedRelease(_sweep(t), Quantity.FACTOR_SUMS, 1, each * power)
            for t, power in enumerate(powers)
        ]

    def run(self, curator: RatingCurator, report_progress: Callable[[int], None]) -> FactorOutcome:
        """Complete the matrix.

        Parameters
        ----------
        curator : RatingCurator
            Answers the planned questions.
        report_progress : callable
            Called with the number of passes and sweeps done, before each and at the end.
        """
        return _Run(self, curator, report_progress).outcome()


class _Run:
    """One run: what was released so far."""

    def __init__(
        self,
        asked: CompleteMatrix,
        curator: RatingCurator,
        report_progress: Callable[[int], None],
    ) -> None:
        self._asked = asked
        self._curator = curator
        self._report = report_progress
        low, high = curator.value_range
        self._unit = (high - low) / 4.0
        self._mean = curator.global_mean("global mean")
        self._items: ItemCounts = released_counts(curator, asked.max_per_user)
        self._variance = _FIRST_VARIANCE * self._unit**2
        self._biases = BiasEstimate(self._items, self._unit, self._variance)
        self._bias = np.zeros(curator.n_items)
        self._factors = np.zeros((curator.n_items, 0))

    def outcome(self) -> FactorOutcome:
        """Both stages."""
        for done in range(self._asked.passes):
            self._report(done)
            self._pass()
        self._settle_variance()
        if self._asked.has_factors:
            self._factors = public_start(self._curator.n_items, self._asked.rank, self._variance)
            for sweep in range(self._asked.sweeps):
                self._report(self._asked.passes + sweep)
                if self._factors.shape[1]:
                    self._sweep(sweep)
                else:
                    self._late_pass(sweep)
        self._report(self._asked.steps)
        return self._current()

    def _pass(self) -> None:
        bounds = self._bounds(_BIAS_NORM)
        sums = self._curator.residual_sums("item sums", self._offsets_only(), bounds)
        self._observe("item sums", sums, bounds)

    def _settle_variance(self) -> None:
        largest = _LARGEST_VARIANCE * self._unit**2
        released = self._curator.residual_variance(
            "residual variance", self._offsets_only(), cap=largest
        )
        self._variance = float(np.clip(released, _LEAST_VARIANCE * self._unit**2, largest))
        self._biases.variance = self._variance

    def _sweep(self, sweep: int) -> None:
        """Move all items; without factors from then on, if they are lost in the noise."""
        curator, items = self._curator, self._items
        curator.solve_users(self._current().local_model())
        directions = released_directions(curator, self._factors.shape[1])
        if directions is None:
            self._factors = self._factors[:, :0]
            self._late_pass(sweep)
            return
        sampling = self._variance * items.squared / items.counts**2
        bounds = self._bounds(_FACTOR_NORM)
        move = released_move(curator, _sweep(sweep), directions, bounds, items.counts, sampling)
        self._biases.observe(self._bias + move.bias, move.bias_noise)
        seen = self._factors @ directions.to_new + move.factors
        variance = move.factor_noise + move.factor_sampling
        early = 2 * (sweep + 1) < self._asked.sweeps
        self._factors, signal = shrunk_factors(seen, variance, self._variance, early=early)
        self._bias = self._biases.shrunk()
        if self._asked.may_fall_back and not early and not worthwhile(signal):
            self._factors = self._factors[:, :0]

    def _late_pass(self, sweep: int) -> None:
        """A look at the biases on the charge of a sweep that has no factors left."""
        self._curator.solve_users(self._current().local_model())
        bounds = self._bounds(_BIAS_NORM)
        label, no_factors = _sweep(sweep), np.zeros((0, 0))
        sums = self._curator.factor_sums(label, no_factors, 1.0, bounds)[:, 0]
        self._observe(label, sums, bounds)

    def _observe(self, label: str, sums: Floats, bounds: ResidualBounds) -> None:
        """Biases moved by noisy sums of weighted residuals."""
        counts = self._items.counts
        noise = self._curator.noise_scale(label) * bounds.longest
        self._biases.observe(self._bias + sums / counts, (noise / counts) ** 2)
        self._bias = self._biases.shrunk()

    def _bounds(self, norm: float) -> ResidualBounds:
        clip = self._asked.residual_clip
        return replace(self._items.bounds, clip=clip, norm=min(norm * self._unit, clip))

    def _offsets_only(self) -> LocalModel:
        return LocalModel(
            self._mean + self._bias,
            np.ones((self._curator.n_items, 1)),
            np.array([OFFSET_RIDGE]),
            threshold=self._asked.huber_threshold,
        )

    def _current(self) -> FactorOutcome:
        counts = self._items.counts
        length = (_SLOPE_VARIANCE * self._variance) ** 0.5
        return FactorOutcome(
            item_factors=self._factors,
            item_bias=self._bias,
            item_count=counts,
            global_mean=self._mean,
            noise_variance=self._variance,
            offset_ridge=OFFSET_RIDGE,
            bias_feature=Standardised.over(self._bias, counts, length),
            count_feature=Standardised.over(np.log(counts), counts, length),
            value_range=self._curator.value_range,
            huber_threshold=self._asked.huber_threshold,
        )


def _sweep(number: int) -> str:
    return f"factor sums, sweep {number + 1}"
