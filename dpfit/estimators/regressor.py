"""Sparse regression under differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from dpfit.estimators.linear import GradientEstimator, LinearEstimator
from dpfit.fitting.prediction import LinearPredictor

Floats: TypeAlias = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class RangedRegressor(RegressorMixin, LinearEstimator):  # type: ignore[misc]
    """A regression whose target has a public range; the base of those that fit one."""

    target_range: tuple[float, float] | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, unit: Any = None) -> Self:
        """Charge the run, then fit.

        Parameters
        ----------
        X, y, sample_weight, unit
            As of :meth:`SparseClassifier.fit`; targets are numbers, those beyond ``target_range``
            are cut, and no median has an algorithm for units.

        Returns
        -------
        estimator
            Itself.

        Raises
        ------
        ValueError, PrivacyError, StorageError, LockBusyError
            As :meth:`SparseClassifier.fit`.
        NotConvergedError
            A minimiser was not found as closely as its guarantee needs.
        """
        return self._fit(X, y, weight=sample_weight, unit=unit)

    def predict(self, X: Any) -> Floats:
        """The value of each row, within the range of the target, shape (n,)."""
        margins = self._margins(X)
        return LinearPredictor(self.model_).means(margins)

    @property
    def coef_(self) -> Floats:
        return self._coefficients

    @property
    def intercept_(self) -> float:
        return float(self._constant)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Rows of one length tell nothing of their size, and a few records nothing at all.
        tags.regressor_tags.poor_score = True
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class SparseRegressor(RangedRegressor, GradientEstimator):
    """Sparse linear and Poisson regression under differential privacy.

    Parameters
    ----------
    target_range : pair of float, optional
        Public bounds of the target, in whose units nothing else is known of it.
    loss : str
        ``squared``, ``huber``, or ``poisson`` for counts from 0 to the top of the range.
    huber_threshold : float, optional
        Where Huber's loss turns, in units of the target; a tenth of the range by default.
    max_exposure : float, optional
        Public bound on the exposure of a count.
    **others
        As of :class:`SparseClassifier`, but for ``labels`` and ``sparsity_mode``.

    Attributes
    ----------
    coef_ : float64 array, shape (d,)
        Coefficients on rows as the row map leaves them, of the share of the target's range (of its
        logarithm for counts).
    intercept_ : float
        The score where they add nothing.
    privacy_, ledger_entry_, search_, model_, n_features_in_, feature_names_in_
        As of :class:`SparseClassifier`.
    """

    loss: str = "squared"
    huber_threshold: float | None = None
    max_exposure: float | None = None

    _losses: ClassVar[tuple[str, ...]] = ("squared", "huber", "poisson")

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        unit: Any = None,
        offset: Any = None,
        exposure: Any = None,
    ) -> Self:
        """Charge the run, then fit.

        Parameters
        ----------
        X, y, sample_weight, unit
            As of :meth:`SparseClassifier.fit`; targets are numbers, those beyond ``target_range``
            are cut.
        offset : array, shape (n,), optional
            Of counts: added to each score.
        exposure : array, shape (n,), optional
            Of counts: positive, what a rate is multiplied by; its logarithm is an offset. It counts
            up to ``max_exposure``.

        Returns
        -------
        SparseRegressor
            Itself.

        Raises
        ------
        ValueError, PrivacyError, StorageError, LockBusyError
            As :meth:`SparseClassifier.fit`.
        """
        return self._fit(X, y, weight=sample_weight, unit=unit, offset=offset, exposure=exposure)

    def predict(self, X: Any, *, offset: Any = None, exposure: Any = None) -> Floats:
        """The value of each row, shape (n,).

        It lies within the range of the target. A count is that of its offset and exposure, which
        may be any; a model that was fitted with one of these needs it, and an exposure of 1 gives
        rates.

        Raises
        ------
        ValueError
            What the model was fitted with is missing, or the arrays make no sense.
        """
        margins = self._margins(X, offset=offset, exposure=exposure)
        return LinearPredictor(self.model_).means(margins)

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        exposure: Any = None,
    ) -> float:
        """R^2 of what :meth:`predict` gives; on private data it is not private."""
        predicted = self.predict(X, offset=offset, exposure=exposure)
        return float(r2_score(y, predicted, sample_weight=sample_weight))
