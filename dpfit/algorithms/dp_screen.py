"""dp-screen: screen columns once, descend densely on what stays, threshold once, refit.

Our own. Thresholding at every step (DP-IGHT) pays for the noise of all columns at every step; here
one noisy column mean per column decides what stays, rows are centred and brought back to length
one, a heavy-ball descent on the residual-clipped loss runs densely on those columns, the largest
coefficients are kept and fitted again. What the noise does to the score of a unit row is
``N = 2 E T / (n mu)``, with ``E`` the step times the clip; N is fixed by rule, so E follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.algorithms.base import Setting
from dpfit.algorithms.default_rule import PublicScale
from dpfit.algorithms.hard_threshold import largest
from dpfit.algorithms.outcome import Outcome
from dpfit.algorithms.shares import Quantity, Share
from dpfit.privacy.curator import Centring, Curator, Point

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_MOMENTUM: Final = 0.8
_CONSTANT: Final = 0.1  # of the row norm: the free intercept column
_KEEP: Final = 2.0  # noise standard deviations above zero that keep a column
_CENTRE: Final = 4.0  # and those that make its mean worth taking off
_TARGET_PART: Final = Fraction(1, 50)
_REFIT_PART: Final = Fraction(1, 4)
_REFIT_STEPS: Final = 20
_SCREEN_FOR_DENSE: Final = 500  # the sparsity that a dense model's screen reckons with
_LARGEST_LOGISTIC_STEP: Final = 1000.0  # E; larger ones diverge on dense centred data (measured)
_SQUARED_STEP: Final = 16.0  # eta; heavy ball on unit rows is stable below 18


@dataclass(frozen=True)
class DpScreen:
    """The settings of a run, every one a function of public quantities.

    Attributes
    ----------
    sparsity : int or None
        s; None keeps the dense model on the screened columns.
    loss : str
        ``logistic`` or ``squared``.
    screen_part : Fraction
        Part of mu^2 for the column means.
    iterations : int
        T of the descent.
    residual_clip, noise_share : float or None
        tau and N; None lets the released class share choose them.
    signal : float
        ``n mu`` of the whole budget; infinity without privacy.
    """

    sparsity: int | None
    loss: str
    screen_part: Fraction
    iterations: int
    residual_clip: float | None
    noise_share: float | None
    signal: float

    name = "dp-screen"

    @property
    def refits(self) -> bool:
        return self.sparsity is not None and self.loss == "logistic"

    @property
    def steps(self) -> int:
        return self.iterations + (_REFIT_STEPS if self.refits else 0)

    def settings(self) -> dict[str, Setting]:
        """All settings, as JSON values."""
        return {
            "sparsity": self.sparsity,
            "iterations": self.iterations,
            "refit_iterations": _REFIT_STEPS if self.refits else 0,
            "residual_clip": self.residual_clip,
            "noise_share": self.noise_share,
            "momentum": _MOMENTUM,
            **{f"share of {share.label}": float(share.part) for share in self.shares()},
        }

    def shares(self) -> list[Share]:
        """The four releases and their parts of mu^2."""
        refit = _REFIT_PART if self.refits else Fraction(0)
        descent = 1 - self.screen_part - _TARGET_PART - refit
        shares = [
            Share("column means", Quantity.COLUMN_SUMS, 1, self.screen_part),
            Share("target mean", Quantity.TARGET_SUM, 1, _TARGET_PART),
            Share("descent", Quantity.UNIT_GRADIENT, self.iterations, descent),
        ]
        if self.refits:
            shares.append(Share("refit", Quantity.UNIT_GRADIENT, _REFIT_STEPS, refit))
        return shares

    def run(self, curator: Curator, between: Callable[[int], None]) -> Outcome:
        """Screen, centre, descend, threshold, refit.

        Parameters
        ----------
        curator : Curator
            Answers the planned questions.
        between : callable
            Called with the number of gradients taken.
        """
        means = curator.column_means("column means")
        deviation = curator.noise_scale("column means")
        columns = self._screen(means, deviation)
        centre = np.where(means[columns] > _CENTRE * deviation, means[columns], 0.0)
        offset, tuning = self._tune(curator.target_mean("target mean"))
        centring = Centring(columns, centre, _CONSTANT)
        start = Point(np.zeros(len(columns)), 0.0, offset)
        point = self._descend(curator, "descent", centring, start, tuning, between)
        if self.sparsity is None:
            return _outcome(centring, point)
        kept = largest(point.coefficients, self.sparsity)
        centring = Centring(columns[kept], centre[kept], _CONSTANT)
        point = Point(point.coefficients[kept], point.intercept, offset)
        if self.refits:
            later = lambda done: between(self.iterations + done)  # noqa: E731
            point = self._descend(curator, "refit", centring, point, tuning, later)
        return _outcome(centring, point)

    def _screen(self, means: Floats, deviation: float) -> Integers:
        """Columns whose noisy mean stands out, but at least 2 s of them."""
        keep = np.flatnonzero(means > _KEEP * deviation)
        least = min(2 * (self.sparsity or _SCREEN_FOR_DENSE), len(means))
        if len(keep) < least:
            keep = np.sort(np.argpartition(-means, least - 1)[:least])
        return keep

    def _tune(self, mean: float) -> tuple[float, tuple[float, float]]:
        """Offset, and (tau, N), from the released mean of the target."""
        if self.loss == "squared":
            offset = min(max(mean, 0.0), 1.0) - 0.5
            tau, share = 0.2, 0.07
        else:
            p = min(max(mean, 0.01), 0.99)
            offset = math.log(p / (1.0 - p))
            imbalance = 1.0 - 4.0 * p * (1.0 - p)
            tau, share = 0.1 + 0.2 * imbalance, 1.0 + 0.5 * imbalance
        return offset, (self.residual_clip or tau, self.noise_share or share)

    def _descend(
        self,
        curator: Curator,
        label: str,
        centring: Centring,
        point: Point,
        tuning: tuple[float, float],
        between: Callable[[int], None],
    ) -> Point:
        """Heavy-ball descent with the release ``label`` on freshly centred rows."""
        share = next(share for share in self.shares() if share.label == label)
        tau, noise_share = tuning
        most = _LARGEST_LOGISTIC_STEP if self.loss == "logistic" else _SQUARED_STEP * tau
        signal = self.signal * math.sqrt(share.part)
        step = min(noise_share * signal / (2 * share.count), most) / tau
        curator.centre(centring)
        theta, intercept = point.coefficients, point.intercept
        velocity, drift = np.zeros_like(theta), 0.0
        for done in range(share.count):
            between(done)
            here = Point(theta, intercept, point.offset)
            gradient = curator.gradient(label, here, clip=tau)
            velocity = _MOMENTUM * velocity + gradient.coefficients
            drift = _MOMENTUM * drift + gradient.intercept
            theta = theta - step * (1.0 - _MOMENTUM) * velocity
            intercept -= step * (1.0 - _MOMENTUM) * drift
        between(share.count)
        return Point(theta, intercept, point.offset)


def _outcome(centring: Centring, point: Point) -> Outcome:
    return Outcome(
        columns=centring.columns,
        values=point.coefficients,
        intercept=point.intercept,
        offset=point.offset,
        centring=centring,
    )


def default_rule(scale: PublicScale, sparsity: int | None) -> DpScreen:
    """Settings from public quantities, as measured over text, census and mail data.

    Parameters
    ----------
    scale : PublicScale
        Public size of the problem.
    sparsity : int or None
        s.
    """
    signal = scale.rows_times_mu
    if scale.n_features <= 4 * (sparsity or _SCREEN_FOR_DENSE):
        screen = Fraction(1, 10)
    else:
        screen = Fraction(min(max(12.0 / math.sqrt(signal), 0.1), 0.3))
    refit = _REFIT_PART if sparsity is not None and scale.loss == "logistic" else Fraction(0)
    descent = signal * math.sqrt(1 - screen - _TARGET_PART - refit)
    if scale.loss == "squared":
        steps = min(max(_ceil(0.07 * descent / (2 * 0.2 * _SQUARED_STEP), 400), 40), 400)
    else:
        steps = min(max(_ceil(signal / 2000, 200), 40), 200)
    return DpScreen(sparsity, scale.loss, screen, steps, None, None, signal)


def _ceil(value: float, most: int) -> int:
    return most if math.isinf(value) else math.ceil(value)
