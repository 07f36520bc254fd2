"""What the released mean of the target decides: where dp-screen starts, and its clip and noise.

Of two or more classes their shares p: the start is the model that knows only them, and the more
unequal they are (``u`` from 0 to 1), the larger the clip and the noise that pay off. Of values the
mean alone. Of counts the mean rate, and a clip of twice the mean count up to a fifth of the range,
but of no less than one count: a smaller clip scales the rates of rare events down. So it is one
count where the range ends at five or below. All these clips are for few errors under noise: short
ones make probabilities too extreme, and one count cuts what larger counts add to the total (5 % of
motor claims).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpfit.algorithms.base import Setting
from dpfit.algorithms.default_rule import PublicScale
from dpfit.algorithms.mean_rate import MEAN_RATE, TARGET_PART, curvature_of, released_rate
from dpfit.privacy.curator import Curator
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.point import Scores
from dpfit.privacy.quantity import Quantity

VALUE_NOISE: Final = 0.07  # N, of the target's range
COUNT_NOISE: Final = 0.2  # N, on the logarithm of a rate
_LEAST_SHARE: Final = 0.01  # of a class
_MOST_COUNT_CLIP: Final = 0.2  # of the range of counts


@dataclass(frozen=True)
class Tuning:
    """What the released mean of the target decides.

    Attributes
    ----------
    offset : float or float64 array, shape (k,)
        Added to every margin.
    residual_clip : float
        tau.
    score_noise : float
        N, the noise on the score of a unit row.
    curvature : float
        Of the loss of a value: that of a count is its rate.
    """

    offset: Scores
    residual_clip: float
    score_noise: float
    curvature: float = 1.0


def target_release(loss: str) -> PlannedRelease:
    """The release that tells the target's mean."""
    if loss == "poisson":
        return MEAN_RATE
    if loss == "multinomial":
        return PlannedRelease("class shares", Quantity.CLASS_SUMS, 1, TARGET_PART)
    return PlannedRelease("target mean", Quantity.TARGET_SUM, 1, TARGET_PART)


def tune(curator: Curator, scale: PublicScale, clip: float | None) -> Tuning:
    """Ask for the target's mean and apply the rules; ``clip`` takes the place of tau."""
    label = target_release(scale.loss).label
    if scale.loss == "multinomial":
        return _of_shares(np.maximum(curator.class_means(label), _LEAST_SHARE), clip)
    if scale.loss == "logistic":
        p = min(max(curator.target_mean(label), _LEAST_SHARE), 1.0 - _LEAST_SHARE)
        imbalance = 1.0 - 4.0 * p * (1.0 - p)
        return Tuning(math.log(p / (1.0 - p)), clip or _class_clip(imbalance), _noise(imbalance))
    if scale.counts:
        mean, offset = released_rate(curator)
        tau = clip or _count_clip(scale, mean)
        return Tuning(offset, tau, COUNT_NOISE, curvature_of(mean))
    offset = min(max(curator.target_mean(label), 0.0), 1.0) - 0.5
    return Tuning(offset, clip or scale.value_clip, VALUE_NOISE)


def _of_shares(shares: np.ndarray[tuple[int], np.dtype[np.float64]], clip: float | None) -> Tuning:
    shares = shares / shares.sum()
    k = len(shares)
    imbalance = 1.0 - k / (k - 1) * (1.0 - float(shares @ shares))
    return Tuning(np.log(shares), clip or _class_clip(imbalance), _noise(imbalance))


def _class_clip(imbalance: float) -> float:
    return 0.1 + 0.2 * imbalance


def _noise(imbalance: float) -> float:
    return 1.0 + 0.5 * imbalance


def rules(scale: PublicScale, clip: float | None) -> dict[str, Setting]:
    """The settings that :func:`tune` will fix, named by their rules, as JSON values."""
    if scale.classifies:
        u = "1 - 4 p (1 - p), p the released target mean"
        if scale.loss == "multinomial":
            u = "1 - k/(k - 1) (1 - sum p^2), p the released class shares"
        return {"residual_clip": clip or "0.1 + 0.2 u", "score_noise": "1 + 0.5 u", "u": u}
    if scale.counts:
        return {"residual_clip": clip or _count_clip_rule(scale), "score_noise": COUNT_NOISE}
    return {"residual_clip": clip or scale.value_clip, "score_noise": VALUE_NOISE}


def _count_clip(scale: PublicScale, mean: float) -> float:
    return max(scale.count_unit, min(2.0 * mean, _MOST_COUNT_CLIP))


def _count_clip_rule(scale: PublicScale) -> Setting:
    """Of counts up to five the mean decides nothing: one count is the clip."""
    one = scale.count_unit
    if one >= _MOST_COUNT_CLIP:
        return one
    return f"max({one:.6g}, min(2 p, {_MOST_COUNT_CLIP})), p the released mean"
