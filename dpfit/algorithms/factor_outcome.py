"""What completes a matrix of ratings: public quantities of the items, and nothing of any user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.privacy.local_model import LocalModel

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Standardised:
    """A released item quantity as a feature: ``(value - centre) * scale``.

    Attributes
    ----------
    centre, scale : float
        Public.
    """

    centre: float
    scale: float

    @staticmethod
    def over(values: Floats, weights: Floats, length: float) -> Standardised:
        """Weighted mean zero and weighted standard deviation ``length``; zero if all are equal.

        Parameters
        ----------
        values : float64 array, shape (n_items,)
            Released.
        weights : float64 array, shape (n_items,)
            Released, positive.
        length : float
            Wanted.
        """
        shares = weights / weights.sum()
        centre = float((shares * values).sum())
        variance = float((shares * (values - centre) ** 2).sum())
        rounding = 1e-12 * float((shares * values**2).sum())
        return Standardised(centre, length / variance**0.5 if variance > rounding else 0.0)

    def of(self, values: Floats) -> Floats:
        """The feature."""
        return (values - self.centre) * self.scale


@dataclass(frozen=True)
class FactorOutcome:
    """Released item quantities, and the constants of the regression that each user solves.

    A user's rating of item j is ``global_mean + item_bias_j + a_0 + a_1 f_j + a_2 h_j +
    item_factors_j.u``, f and h being the bias and the logarithm of the count, standardised; the
    user's own (a, u) is a ridge regression on the user's own ratings.

    Attributes
    ----------
    item_factors : float64 array, shape (n_items, r)
        V; r may be zero.
    item_bias : float64 array, shape (n_items,)
        b, in rating units.
    item_count : float64 array, shape (n_items,)
        Noisy weighted number of ratings, positive.
    global_mean : float
        In rating units.
    noise_variance : float
        Variance of a rating around its prediction: the ridge on everything but the offset.
    offset_ridge : float
        The ridge on the offset.
    bias_feature, count_feature : Standardised
        f of ``item_bias``, and h of the logarithm of ``item_count``.
    value_range : (float, float)
        Bounds of a rating, to which predictions are clipped.
    huber_threshold : float or None
        The users' loss is Huber's with that threshold; None for squares.
    """

    item_factors: Floats
    item_bias: Floats
    item_count: Floats
    global_mean: float
    noise_variance: float
    offset_ridge: float
    bias_feature: Standardised
    count_feature: Standardised
    value_range: tuple[float, float]
    huber_threshold: float | None = None

    @property
    def rank(self) -> int:
        """r; zero where the budget went to the biases alone."""
        return int(self.item_factors.shape[1])

    def constants(self) -> dict[str, float]:
        """The numbers of the local regression; :meth:`of_constants` is the inverse."""
        numbers = {
            "noise_variance": self.noise_variance,
            "offset_ridge": self.offset_ridge,
            "bias_centre": self.bias_feature.centre,
            "bias_scale": self.bias_feature.scale,
            "log_count_centre": self.count_feature.centre,
            "log_count_scale": self.count_feature.scale,
        }
        if self.huber_threshold is not None:
            numbers["huber_threshold"] = self.huber_threshold
        return numbers

    @staticmethod
    def of_constants(
        constants: Mapping[str, float],
        *,
        factors: Floats,
        bias: Floats,
        count: Floats,
        global_mean: float,
        value_range: tuple[float, float],
    ) -> FactorOutcome:
        """What a file of a model holds, as the outcome it came from.

        Parameters
        ----------
        constants : mapping of str to float
            Of :meth:`constants`.
        factors, bias, count, global_mean, value_range
            As the attributes.

        Raises
        ------
        KeyError
            A constant is missing.
        """
        return FactorOutcome(
            item_factors=factors,
            item_bias=bias,
            item_count=count,
            global_mean=global_mean,
            noise_variance=constants["noise_variance"],
            offset_ridge=constants["offset_ridge"],
            bias_feature=Standardised(constants["bias_centre"], constants["bias_scale"]),
            count_feature=Standardised(constants["log_count_centre"], constants["log_count_scale"]),
            value_range=value_range,
            huber_threshold=constants.get("huber_threshold"),
        )

    def local_model(self) -> LocalModel:
        """The regression that each user solves."""
        features = [
            np.ones(len(self.item_bias)),
            self.bias_feature.of(self.item_bias),
            self.count_feature.of(np.log(self.item_count)),
            *self.item_factors.T,
        ]
        ridges = np.full(len(features), self.noise_variance)
        ridges[0] = self.offset_ridge
        return LocalModel(
            self.global_mean + self.item_bias,
            np.ascontiguousarray(np.transpose(features)),
            ridges,
            self.rank,
            self.huber_threshold,
        )
