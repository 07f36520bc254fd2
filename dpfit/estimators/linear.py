"""What the estimators of linear models have in common: from arrays to a charged run and a model."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar, Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from dpfit.data.features import FeatureMap
from dpfit.data.pipeline import cpu_count
from dpfit.errors import DataError, PrivacyError, UsageError
from dpfit.estimators.charged_run import dataset_of, ledger_of, run_charged
from dpfit.estimators.numeric_input import numeric_input, numeric_target
from dpfit.estimators.privacy_statement import PrivacyStatement, warn_before_run
from dpfit.estimators.private_estimator import PrivateEstimator, number_pair
from dpfit.estimators.python_words import in_python_words
from dpfit.estimators.row_blocks import row_blocks
from dpfit.files.linear_model import LARGEST_FEATURE_COUNT, LinearModel
from dpfit.fitting.checks import one_of
from dpfit.fitting.linear_configuration import linear_request
from dpfit.fitting.linear_file import linear_model
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.plan import charge_ahead
from dpfit.fitting.prediction import LinearPredictor
from dpfit.fitting.request import FitRequest
from dpfit.privacy.declared_facts import DeclaredFacts, Layout
from dpfit.privacy.summary import Label, Target

Floats: TypeAlias = NDArray[np.float64]

_SOURCE: Final = "the data"
_ABSENT: Final = {
    **dict.fromkeys(("huber_threshold", "residual_clip", "l1_radius", "selection")),
    **dict.fromkeys(("projection_radius", "threshold", "entry_clip", "sparsity_mode")),
    **dict.fromkeys(("quantile", "smoothing", "ridge", "noise", "batches", "target_range")),
    "calibration": "exact",
}
"""Options of a fit that an estimator may lack."""


@dataclass(eq=False, repr=False, kw_only=True)
class LinearEstimator(PrivateEstimator):
    """A sparse linear model; the base of the estimators that fit one."""

    sparsity: int | None = None
    dense: bool = False
    iterations: int | None = None
    step_size: float | None = None
    row_norm: float | None = None
    normalize_rows: bool | None = None
    intercept: bool = True
    n_rows: int | None = None
    n_features: int | None = None
    max_weight: float | None = None
    index_base: int = 0
    threads: int | None = None

    _losses: ClassVar[tuple[str, ...]]
    _of_classes: ClassVar[bool] = False

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        with in_python_words():
            parameters = self._parameters()
            request = self._request(parameters, weighted=sample_weight is not None)
            ledger = ledger_of(parameters)
            if ledger is not None:
                ledger.check(charge_ahead(request))
        label = getattr(y, "name", None)
        X, y = numeric_input(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=np.float64,
            ensure_min_samples=2,  # one record's neighbours can be anything
            y_numeric=not self._of_classes,
        )
        with in_python_words():
            target = self._target(y)
            weight = None if sample_weight is None else _weights(sample_weight, X)
            fitted = self._planned(request, X, target, weight)
            warn_before_run(fitted.plan.facts, fitted.events, request, records="rows", stacklevel=4)
            columns = self._feature_map(label if isinstance(label, str) else None)
            model, entry = run_charged(
                fitted,
                ledger,
                lambda outcome: linear_model(
                    fitted,
                    outcome,
                    feature_map=None if columns is None else columns.to_json(),
                    label=columns.ignored[0] if columns is not None and columns.ignored else None,
                ),
            )
        self._take(model, None if ledger is None else ledger.path)
        self._as_given(y)
        self.ledger_entry_ = entry
        return self

    def _request(self, parameters: SimpleNamespace, *, weighted: bool) -> FitRequest:
        options = SimpleNamespace(**{**_ABSENT, **vars(parameters)})
        if options.loss is not None:
            one_of("--loss", options.loss, self._losses)
        if options.index_base not in (0, 1):
            raise UsageError("--index-base must be 0 or 1")
        if options.max_weight is not None and not weighted:
            raise UsageError("--max-weight needs a --weight column")
        bounds = options.target_range
        declared = DeclaredFacts(
            n_rows=options.n_rows,
            n_features=options.n_features,
            labels=self._labels(),
            target_range=None if bounds is None else number_pair("--target-range", bounds),
            max_weight=options.max_weight,
        )
        return linear_request(
            options,
            row_norm=options.row_norm,
            without_noise=self._without_noise,
            seed=options.seed,
            of_classes=self._of_classes,
            declared=declared,
            strict=options.strict,
            dataset=dataset_of(parameters),
            threads=options.threads or cpu_count(),
        )

    def _planned(
        self, request: FitRequest, X: Any, target: Target, weight: Floats | None
    ) -> LinearFit:
        sparse = issparse(X)
        if X.shape[1] > LARGEST_FEATURE_COUNT:
            raise DataError("has more columns than a model can number", path=_SOURCE)
        self._check_strict(request, sparse=sparse, weighted=weight is not None)
        # The width of a table is that of each of its records, whose neighbours share it; that of a
        # sparse matrix is most often the largest index that was found in the records.
        layout = Layout(X.shape[1], self.index_base, outside_records=not sparse)
        blocks = row_blocks(X, self.index_base, target, weight)
        return LinearFit.of(request, blocks, layout=lambda: layout, source=_SOURCE)

    def _check_strict(self, request: FitRequest, *, sparse: bool, weighted: bool) -> None:
        """Name every missing fact at once."""
        declared = request.declared
        wanted = {"n_rows": declared.n_rows}
        if sparse:
            wanted["n_features"] = declared.n_features
        named: dict[str, object] = dict(wanted)
        if self._of_classes:
            named["labels"] = declared.labels
        else:
            named["target_range"] = declared.target_range
        if weighted:
            named["max_weight"] = declared.max_weight
        missing = [name for name, value in named.items() if value is None]
        if request.strict and missing:
            raise PrivacyError(f"strict: not declared: {', '.join(missing)}")

    def _labels(self) -> tuple[Label, ...] | None:
        """The declared ones."""
        return None

    def _target(self, y: NDArray[Any]) -> Target:
        """The target as readers give it."""
        return numeric_target(y)

    def _as_given(self, y: NDArray[Any]) -> None:
        """Tell answers in the type of the target, of which a model file knows nothing."""

    def _feature_map(self, label: str | None) -> FeatureMap | None:
        """The columns of a table with names, by which the command line finds them in a file."""
        names = getattr(self, "feature_names_in_", None)
        if names is None or self.index_base or len(set(names)) < len(names):
            return None
        plain = [str(name) for name in names]
        if label is None or label in plain:
            return FeatureMap.build(plain, {}, None, None)
        return FeatureMap.build([*plain, label], {}, label, None)

    def _take(self, model: LinearModel, ledger: str | None) -> None:
        """Become the estimator of a model."""
        self.model_ = model
        self.n_features_in_ = model.n_features
        self.privacy_ = PrivacyStatement.of(model.provenance, ledger)

    def _margins(self, X: Any) -> Floats:
        """Scores as the model file has them, shape (n,) or (n, k)."""
        check_is_fitted(self)
        X = numeric_input(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        predictor = LinearPredictor(self.model_)
        blocks = row_blocks(X, self.model_.index_base)
        return np.concatenate([predictor.margins(block) for block in blocks])

    @property
    def _coefficients(self) -> Floats:
        """Of mapped rows, shape (d,) or (d, k)."""
        check_is_fitted(self)
        model = self.model_
        whole = np.zeros((model.n_features, *model.values.shape[1:]))
        whole[model.indices] = model.values
        return whole

    @property
    def _constant(self) -> Floats:
        """The score where nothing is added to it, shape () or (k,)."""
        check_is_fitted(self)
        model = self.model_
        length = 1.0 if model.centring is None else model.centring[1]
        return np.asarray(model.offset + model.intercept / length)


def _weights(sample_weight: Any, X: Any) -> Floats:
    weights = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="weights")
    if weights.ndim != 1:
        raise UsageError("--weight must be 1D array or scalar")
    check_consistent_length(X, weights)
    if weights.min() < 0.0:
        raise DataError("has a negative weight", path=_SOURCE)
    return np.asarray(weights)
