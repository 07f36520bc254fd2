"""dp-screen: screen columns once, descend densely on what stays, threshold once, refit.

Our own. Thresholding at every step (DP-IGHT) pays for the noise of all columns at every step; here
noisy means of each column's positive and negative parts decide once what stays, rows are centred
and brought back to length one, a heavy-ball descent on the residual-clipped loss runs densely on
those columns, the largest coefficients are kept and fitted again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.algorithms.base import Setting
from dpfit.algorithms.default_rule import PublicScale, count_of_steps
from dpfit.algorithms.hard_threshold import largest_entries, support_of
from dpfit.algorithms.heavy_ball import CONSTANT, MOMENTUM, HeavyBall, longest_step
from dpfit.algorithms.mean_rate import TARGET_PART
from dpfit.algorithms.outcome import Outcome
from dpfit.algorithms.tuning import VALUE_NOISE, rules, target_release, tune
from dpfit.privacy.centring import Centring
from dpfit.privacy.curator import Curator
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.point import Point
from dpfit.privacy.quantity import Quantity

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_KEEP: Final = 2.0  # noise standard deviations above zero that keep a column, for classes
_KEEP_FOR_VALUES: Final = 2.5
_CENTRE: Final = 4.0  # and those that make its mean worth taking off
_REFIT_PART: Final = Fraction(1, 4)
_REFIT_STEPS: Final = 20
_COUNT_STEPS: Final = 100  # the released mean rate makes steps as long as they can be
_SCREEN_FOR_DENSE: Final = 500  # the sparsity that a dense model's screen reckons with


@dataclass(frozen=True)
class DpScreen:
    """The settings of a run, every one a function of public quantities.

    Attributes
    ----------
    sparsity : int or None
        s; None keeps the dense model on the screened columns.
    scale : PublicScale
        Public size of the problem.
    screen_part : Fraction
        Part of mu^2 for the column means.
    iterations : int
        T of the descent.
    residual_clip : float or None
        tau; None lets the released mean of the target choose it.
    joint_rows : bool
        Whether the classes of a multinomial model share their s columns.
    """

    sparsity: int | None
    scale: PublicScale
    screen_part: Fraction
    iterations: int
    residual_clip: float | None = None
    joint_rows: bool = field(default=False, kw_only=True)

    name = "dp-screen"

    @property
    def refits(self) -> bool:
        return self.sparsity is not None and self.scale.classifies

    @property
    def steps(self) -> int:
        return self.iterations + (_REFIT_STEPS if self.refits else 0)

    def settings(self) -> dict[str, Setting]:
        """All settings, as JSON values; what the target's mean decides is named by its rule."""
        joint: dict[str, Setting] = {"joint_rows": True} if self.joint_rows else {}
        return {
            "sparsity": self.sparsity,
            **joint,
            "iterations": self.iterations,
            "refit_iterations": _REFIT_STEPS if self.refits else 0,
            **rules(self.scale, self.residual_clip),
            "momentum": MOMENTUM,
            "budget_parts": {one.label: float(one.budget_part) for one in self.planned()},
        }

    def planned(self) -> list[PlannedRelease]:
        """Column means, target mean, the descent, and the refit if there is one."""
        refit = _REFIT_PART if self.refits else Fraction(0)
        descent = 1 - self.screen_part - TARGET_PART - refit
        planned = [
            PlannedRelease("column means", Quantity.COLUMN_SUMS, 1, self.screen_part),
            target_release(self.scale.loss),
            PlannedRelease("descent", Quantity.UNIT_GRADIENT, self.iterations, descent),
        ]
        if self.refits:
            planned.append(PlannedRelease("refit", Quantity.UNIT_GRADIENT, _REFIT_STEPS, refit))
        return planned

    def run(self, curator: Curator, report_progress: Callable[[int], None]) -> Outcome:
        """Screen, centre, descend, threshold, refit.

        Parameters
        ----------
        curator : Curator
            Answers the planned questions.
        report_progress : callable
            Called with the number of gradients taken.
        """
        columns, centre = self._screened(curator)
        tuning = tune(curator, self.scale, self.residual_clip)
        planned = {one.label: one for one in self.planned()}
        ball = HeavyBall(self.scale, tuning.residual_clip, tuning.score_noise, tuning.curvature)
        centring = Centring(columns, centre, CONSTANT)
        curator.centre(centring)
        start = curator.zero_point(tuning.offset)
        point = ball.descend(curator, planned["descent"], start, report_progress)
        if self.sparsity is None:
            return _outcome(centring, point)
        keep = largest_entries(point.coefficients, self.sparsity, joint=self.joint_rows)
        sparse = np.where(keep, point.coefficients, 0.0)
        if not self.refits:
            # The descent's scores are over all screened columns; their lengths go with them.
            return _outcome(centring, Point(sparse, point.intercept, point.offset))
        rows = support_of(keep)
        centring = Centring(columns[rows], centre[rows], CONSTANT)
        curator.centre(centring)
        start = Point(sparse[rows], point.intercept, tuning.offset)

        def after_descent(done: int) -> None:
            report_progress(self.iterations + done)

        point = ball.descend(curator, planned["refit"], start, after_descent, kept=keep[rows])
        return _outcome(centring, point)

    def _screened(self, curator: Curator) -> tuple[Integers, Floats]:
        """The columns that stay, and what is taken off them."""
        positive, negative = curator.column_means("column means")
        deviation = curator.noise_scale("column means")
        columns = self._screen(positive, negative, deviation)
        centre = _clear(positive[columns], deviation) - _clear(negative[columns], deviation)
        # The true means of rows of length one have length at most one: what is longer is noise.
        return columns, centre / max(1.0, float(np.linalg.norm(centre)))

    def _screen(self, positive: Floats, negative: Floats, deviation: float) -> Integers:
        """Columns whose noisy means stand out, but at least 2 s of them.

        A negative part must stand out further: most data have none, and at the lower bar one
        column in forty would stay for its noise.
        """
        bar = _KEEP if self.scale.classifies else _KEEP_FOR_VALUES
        keep = np.flatnonzero((positive > bar * deviation) | (negative > _CENTRE * deviation))
        least = min(2 * (self.sparsity or _SCREEN_FOR_DENSE), len(positive))
        if len(keep) < least:
            means = positive + _clear(negative, deviation)
            keep = np.sort(np.argpartition(-means, least - 1)[:least])
        return keep


def _clear(means: Floats, deviation: float) -> Floats:
    """Means that stand out clearly from the noise; zero for the others."""
    return np.where(means > _CENTRE * deviation, means, 0.0)


def _outcome(centring: Centring, point: Point) -> Outcome:
    return Outcome(
        columns=centring.columns,
        values=point.coefficients,
        intercept=point.intercept,
        offset=point.offset,
        centring=centring,
    )


def default_rule(scale: PublicScale, sparsity: int | None) -> DpScreen:
    """Settings from public quantities, as measured over text, census, mail and rating data.

    On few columns the screen has a tenth of the budget; on many ``12 / sqrt(n mu)`` of it for
    classes and half of that for values, from 0.1 to 0.3. The residual clip of values is a fifth of
    the range on few columns and a tenth on many, where its noise weighs more.

    Parameters
    ----------
    scale : PublicScale
        Public size of the problem.
    sparsity : int or None
        s.
    """
    rows_times_mu, screen, clip = scale.rows_times_mu, Fraction(1, 10), None
    wide = scale.n_features > 4 * (sparsity or _SCREEN_FOR_DENSE)
    if wide:
        part = (12.0 if scale.classifies else 6.0) / math.sqrt(rows_times_mu)
        screen = Fraction(min(max(part, 0.1), 0.3))
    if scale.classifies:
        steps = count_of_steps(rows_times_mu / 2000, 40, 200)
    elif scale.counts:
        steps = _COUNT_STEPS
    else:
        clip = 0.1 if wide else scale.value_clip
        descent = rows_times_mu * math.sqrt(1 - screen - TARGET_PART)
        longest = longest_step(scale, clip, 1.0)
        steps = count_of_steps(VALUE_NOISE * descent / (2 * longest), 40, 400)
    return DpScreen(sparsity, scale, screen, steps, clip)
