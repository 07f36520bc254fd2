"""Median and quantile regression under differential privacy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

from dpfit.estimators.regressor import RangedRegressor
from dpfit.fitting.request import FitRequest


@dataclass(eq=False, repr=False, kw_only=True)
class MedianRegressor(RangedRegressor):
    """Regression to the median, or to another quantile, under differential privacy.

    A budget may be a pure ``eps``, without a ``delta``.

    Parameters
    ----------
    quantile : float
        Between 0 and 1.
    target_range : pair of float, optional
        Public bounds of the target, which may cut it beyond the wanted quantiles.
    algo : str
        ``auto``, ``median-objective``, ``median-irls`` or ``median-cd``.
    smoothing : float, optional
        Where the loss turns into lines, in units of the target; by default by rule.
    ridge : float, optional
        l2 penalty, in records; by default by rule.
    noise : str, optional
        ``l2``, ``l1`` or ``gaussian``; by default by rule.
    batches : str, optional
        Of ``median-cd``: ``disjoint`` or ``full``.
    **others
        As of :class:`SparseClassifier`, where these algorithms have them.

    Attributes
    ----------
    coef_, intercept_, privacy_, ledger_entry_, search_, model_, n_features_in_, feature_names_in_
        As of :class:`SparseRegressor`.
    """

    quantile: float = 0.5
    smoothing: float | None = None
    ridge: float | None = None
    noise: str | None = None
    batches: str | None = None

    _losses: ClassVar[tuple[str, ...]] = ("absolute",)

    def _request(self, parameters: SimpleNamespace, given: Mapping[str, Any]) -> FitRequest:
        return super()._request(SimpleNamespace(**vars(parameters), loss="absolute"), given)
