"""Sparse classification under differential privacy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from dpfit.errors import DataError, UsageError
from dpfit.estimators.linear import GradientEstimator
from dpfit.files.linear_model import LinearModel
from dpfit.fitting.prediction import LinearPredictor
from dpfit.privacy.summary import Label, Target

Floats: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[Any]

_EXACT = 2**53  # whole numbers beyond it are not all floats


@dataclass(eq=False, repr=False, kw_only=True)
class SparseClassifier(ClassifierMixin, GradientEstimator):  # type: ignore[misc]
    """Sparse logistic and multinomial regression under differential privacy.

    The parameters are the options of ``dpfit fit``, and are checked in :meth:`fit`. Each fit is a
    run of its own: it makes its own noise and is charged once more, also after cloning, pickling
    or copying.

    Parameters
    ----------
    eps, delta : float, optional
        The budget; or one of the next two.
    rho, mu : float, optional
        A budget in zero-concentrated or in Gaussian differential privacy.
    ledger : str, path or False
        The ledger file to charge, which the command line may share. False charges nowhere, and
        then nothing adds up several runs. There is no default.
    dataset : str, optional
        What the ledger calls the data; by default the name of the ledger.
    strict : bool
        Refuse to take any fact from the data as public.
    non_private : bool
        Fit without noise, by the same rules.
    seed : int, optional
        Reproducible noise; the result is not private.
    lock_timeout : float
        Seconds to wait for a busy ledger.
    adjacency : str
        ``replace-one`` or ``add-remove``.
    algo : str
        ``auto``, ``dp-screen``, ``dp-gd``, ``dp-ight``, ``dp-iht``, ``dp-fw``, ``two-stage``, or
        without noise ``gd``, ``ight``, ``iht``, ``fw``.
    sparsity : int, optional
        Coefficients to keep.
    dense : bool
        No threshold at the end.
    iterations, step_size, residual_clip, l1_radius, selection, projection_radius, threshold
        Settings of the algorithm; by default by rule.
    entry_clip : float, optional
        Largest entry of a row, as a share of the norm.
    row_norm : float, optional
        Bound on the l2 norm of a row; 1 by default.
    normalize_rows : bool, optional
        Scale every row to that norm, or only longer ones; by default the first, unless
        ``row_norm`` is given.
    intercept : bool
        Fit one.
    calibration : str
        ``exact``, or noise as printed: ``paper``, ``paper-corollary``.
    n_rows, n_features : int, optional
        Public shape. A dense table's width needs no declaration.
    labels : sequence, optional
        Public set of labels.
    max_weight : float, optional
        Public bound on a weight.
    max_rows_per_unit : int, optional
        Where ``fit`` is told units: rows of one that take part, chosen by a public hash.
    n_units : int, optional
        Public number of units.
    unit_clip : float, optional
        Length of a unit's sum of gradients, in rows; by default by rule.
    index_base : int
        The number, 0 or 1, that the first column has in LIBSVM files which the saved model is for.
    tune : mapping of str to sequence, optional
        Settings of the algorithm to search privately, each with its values, such as
        ``{"sparsity": [100, 300]}``. All combinations are candidates of one run, whose whole budget
        is ``eps`` and ``delta``; each try has more noise than a fit without a search.
    tune_runs : float, optional
        How many candidates are tried on average; by default as many as there are.
    threads : int, optional
        No result depends on it; by default all.
    loss : str, optional
        ``logistic`` or ``multinomial``; by the number of labels if not given.
    sparsity_mode : str, optional
        Of several classes: ``per-class``, or ``joint`` for the same columns.

    Attributes
    ----------
    classes_ : array, shape (k,)
        Labels, sorted.
    coef_ : float64 array, shape (1, d) or (k, d)
        Coefficients on rows as the row map leaves them, so that :meth:`decision_function` is no
        plain product with them.
    intercept_ : float64 array, shape (1,) or (k,)
        The score where they add nothing.
    privacy_ : PrivacyStatement
        What was promised, and under which assumptions.
    ledger_entry_ : mapping or None
        The charge as it stands in the ledger; None without one, and of a loaded model.
    search_ : SearchStatement or None
        What a search with ``tune`` tried, chose and cost.
    model_ : LinearModel
        What the model file holds.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Only the fit of this estimator is private. Scores on private data are not, nor is what another
    step of a pipeline learns from them, such as means and scales.

    ``dpfit fit`` alone has offsets of classes, columns of levels and hashed ones, rows on a disk or
    a cluster, and rows that are kept for a later run.
    """

    loss: str | None = None
    labels: Sequence[Label] | None = None
    sparsity_mode: str | None = None

    _losses: ClassVar[tuple[str, ...]] = ("logistic", "multinomial")
    _of_classes: ClassVar[bool] = True

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, unit: Any = None) -> Self:
        """Charge the run, then fit.

        Parameters
        ----------
        X : array, sparse matrix or data frame, shape (n, d)
            Rows; a sparse one stays sparse.
        y : array, shape (n,)
            Labels, numbers or texts.
        sample_weight : array, shape (n,), optional
            Not negative; counts up to ``max_weight``.
        unit : array, shape (n,), optional
            Whose row each is, whole numbers or texts; then all rows of a person, say, are protected
            together, and ``max_rows_per_unit`` is needed. The ledger calls them by the name of a
            series (``unit.rename("who")``), or ``unit`` where there is none or it is a feature's;
            under one name the charges of all fits for the same people are shown as one sum.

        Returns
        -------
        SparseClassifier
            Itself.

        Raises
        ------
        ValueError
            A parameter or the data make no sense. Nothing was spent.
        PrivacyError
            The ledger's cap does not allow the run, a fact is missing under ``strict``, or a
            search asked for the fit. Nothing was spent.
        StorageError, LockBusyError
            The ledger cannot be written.

        Warns
        -----
        AssumedFactWarning, PrivacyWarning
            Before anything is spent.
        """
        return self._fit(X, y, weight=sample_weight, unit=unit)

    def decision_function(self, X: Any) -> Floats:
        """Scores, shape (n,) of two classes, positive for the second; or (n, k)."""
        margins = self._margins(X)
        if margins.ndim == 2:
            return margins[:, self._order]
        return -margins if self._order[0] else margins

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes, shape (n, k)."""
        margins = self._margins(X)
        means = LinearPredictor(self.model_).means(margins)
        if means.ndim == 1:
            means = np.stack([1.0 - means, means], axis=1)
        return means[:, self._order]

    def predict(self, X: Any) -> Labels:
        """The label of each row, shape (n,)."""
        margins = self._margins(X)
        codes = LinearPredictor(self.model_).codes(margins)
        return self.classes_[np.argsort(self._order)[codes]]

    @property
    def coef_(self) -> Floats:
        coefficients = self._coefficients
        if coefficients.ndim == 2:
            return coefficients.T[self._order]
        return (-coefficients if self._order[0] else coefficients)[np.newaxis]

    @property
    def intercept_(self) -> Floats:
        constant = self._constant
        if constant.ndim:
            return constant[self._order]
        return np.atleast_1d(-constant if self._order[0] else constant)

    @property
    def _order(self) -> NDArray[np.intp]:
        """Places in the model file of the sorted classes."""
        return np.argsort(np.array(self.model_.classes))

    def _labels(self) -> tuple[Label, ...] | None:
        if self.labels is None:
            return None
        labels = as_labels(np.asarray(self.labels))
        found = np.unique(labels)
        if len(found) < 2 or len(found) < len(labels):
            raise UsageError("the label set must be two or more different labels")
        return tuple(found.tolist())

    def _target(self, y: NDArray[Any]) -> Target:
        check_classification_targets(y)
        return as_labels(y)

    def _take(self, model: LinearModel, ledger: str | Literal[False] | None) -> None:
        super()._take(model, ledger)
        self.classes_ = np.array(model.classes)[self._order]

    def _as_given(self, y: NDArray[Any]) -> None:
        if y.dtype.kind in "iufbO":
            classes = self.classes_.astype(y.dtype)
            if np.array_equal(classes, self.classes_):
                self.classes_ = classes


def as_labels(y: NDArray[Any]) -> Target:
    """Labels as readers give them: floats, or `str` objects.

    Raises
    ------
    DataError
        They are neither numbers nor texts, or larger than a float holds exactly.
    """
    if y.dtype.kind == "U" or (y.dtype.kind in "OT" and all(isinstance(v, str) for v in y)):
        return np.array([str(label) for label in y], object)
    try:
        labels = np.asarray(y, np.float64)
    except (TypeError, ValueError):
        labels = np.array([np.nan])
    if not np.all(np.abs(labels) <= _EXACT):
        raise DataError("its labels are neither texts nor sensible numbers", path="the data")
    return labels
