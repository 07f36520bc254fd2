"""What the estimators of linear models have in common: from arrays to a charged run and a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar, Final, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from dpfit.data.features import FeatureMap
from dpfit.data.pipeline import cpu_count
from dpfit.data.schema import ColumnRole
from dpfit.errors import DataError, UsageError
from dpfit.estimators.attributes import Attributes, column_name, refuse_names
from dpfit.estimators.charged_run import dataset_of, ledger_of, run_charged
from dpfit.estimators.file_columns import refuse_columns_of_files
from dpfit.estimators.names import name_of
from dpfit.estimators.privacy_statement import PrivacyStatement, warn_before_run
from dpfit.estimators.private_estimator import PrivateEstimator, number_pair, require_declared
from dpfit.estimators.private_search import SearchStatement, search_of
from dpfit.estimators.python_words import in_python_words
from dpfit.estimators.row_blocks import row_blocks
from dpfit.estimators.validation import validated, without_quotes
from dpfit.files.linear_model import LARGEST_FEATURE_COUNT, WITH_OFFSET, LinearModel
from dpfit.fitting.checks import one_of
from dpfit.fitting.kind_of_fit import kind_of_fit
from dpfit.fitting.linear_configuration import linear_request
from dpfit.fitting.linear_file import linear_model
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.plan import charge_ahead
from dpfit.fitting.prediction import LinearPredictor
from dpfit.fitting.request import FitRequest
from dpfit.fitting.search import Value
from dpfit.privacy.declared_facts import DeclaredFacts, Layout
from dpfit.privacy.summary import Label, Target

Floats: TypeAlias = NDArray[np.float64]

_SOURCE: Final = "the data"
_OFFSETS: Final = ("offset", "exposure")
_ABSENT: Final = {
    **dict.fromkeys(("huber_threshold", "residual_clip", "l1_radius", "selection")),
    **dict.fromkeys(("projection_radius", "threshold", "entry_clip", "sparsity_mode")),
    **dict.fromkeys(("quantile", "smoothing", "ridge", "noise", "batches", "target_range")),
    "max_exposure": None,
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
    max_rows_per_unit: int | None = None
    n_units: int | None = None
    unit_clip: float | None = None
    index_base: int = 0
    tune: Mapping[str, Sequence[Value]] | None = None
    tune_runs: float | None = None
    threads: int | None = None

    _losses: ClassVar[tuple[str, ...]]
    _of_classes: ClassVar[bool] = False

    def _fit(self, X: Any, y: Any, **arrays: Any) -> Self:
        given = {role: values for role, values in arrays.items() if values is not None}
        with in_python_words():
            refuse_names({"y": y, **given})
            parameters = self._parameters()
            request = self._request(parameters, given)
            ledger = ledger_of(parameters)
            if ledger is not None:
                ledger.check(charge_ahead(request))
        with self._as_before_if_it_fails():
            label = name_of(y)
            X, y = validated(
                self,
                X,
                y,
                accept_sparse="csr",
                dtype=np.float64,
                ensure_min_samples=2,  # one record's neighbours can be anything
                y_numeric=not self._of_classes,
            )
            with in_python_words(), without_quotes():
                target = self._target(y)
                fitted = self._planned(request, X, target, Attributes.of(given, X))
                facts, events, records = fitted.plan.facts, fitted.events, fitted.protected
                warn_before_run(
                    facts, events, request, records=records, ledger=ledger, stacklevel=4
                )
                names = self._column_names(label, given)
                model, entry = run_charged(fitted, ledger, partial(linear_model, fitted, **names))
            self._take(model, False if ledger is None else ledger.path)
            self._as_given(y)
            self.ledger_entry_ = entry
        return self

    def _request(self, parameters: SimpleNamespace, given: Mapping[str, Any]) -> FitRequest:
        options = SimpleNamespace(**{**_ABSENT, **vars(parameters)})
        if options.loss is not None:
            one_of("--loss", options.loss, self._losses)
        if options.index_base not in (0, 1):
            raise UsageError("--index-base must be 0 or 1")
        exposed = any(role in given for role in _OFFSETS)
        if options.max_weight is not None and "weight" not in given:
            raise UsageError("--max-weight needs a --weight column")
        if options.max_exposure is not None and not exposed:
            raise UsageError("--max-exposure needs an --exposure or --offset column")
        bounds = options.target_range
        declared = DeclaredFacts(
            n_rows=options.n_rows,
            n_features=options.n_features,
            labels=self._labels(),
            target_range=None if bounds is None else number_pair("--target-range", bounds),
            max_weight=options.max_weight,
            max_exposure=options.max_exposure,
            n_owners=options.n_units,
        )
        return linear_request(
            options,
            row_norm=options.row_norm,
            without_noise=self._without_noise,
            seed=options.seed,
            of_classes=self._of_classes,
            declared=declared,
            exposed=exposed,
            unit=column_name("unit", given["unit"]) if "unit" in given else None,
            max_rows_per_unit=options.max_rows_per_unit,
            unit_clip=options.unit_clip,
            strict=options.strict,
            dataset=dataset_of(parameters),
            threads=options.threads or cpu_count(),
            search=search_of(options.tune, options.tune_runs, options),
        )

    def _planned(
        self, request: FitRequest, X: Any, target: Target, attributes: Attributes
    ) -> LinearFit:
        sparse = issparse(X)
        if X.shape[1] > LARGEST_FEATURE_COUNT:
            raise DataError("has more columns than a model can number", path=_SOURCE)
        self._check_strict(request, sparse=sparse, weighted=attributes.weight is not None)
        # The width of a table is that of each of its records, whose neighbours share it; that of a
        # sparse matrix is most often the largest index that was found in the records.
        layout = Layout(X.shape[1], self.index_base, outside_records=not sparse)
        blocks = row_blocks(X, self.index_base, target, attributes)
        return kind_of_fit(request).of(request, blocks, layout=lambda: layout, source=_SOURCE)

    def _check_strict(self, request: FitRequest, *, sparse: bool, weighted: bool) -> None:
        declared = request.declared
        named: dict[str, object] = {"n_rows": declared.n_rows}
        if sparse:
            named["n_features"] = declared.n_features
        if self._of_classes:
            named["labels"] = declared.labels
        else:
            named["target_range"] = declared.target_range
        if weighted:
            named["max_weight"] = declared.max_weight
        if request.unit is not None:
            named["n_units"] = declared.n_owners
        if request.exposed and request.loss == "poisson":
            named["max_exposure"] = declared.max_exposure
        if request.strict:
            require_declared(named)

    def _labels(self) -> tuple[Label, ...] | None:
        """The declared ones."""
        return None

    def _target(self, y: NDArray[Any]) -> Target:
        """The target as readers give it."""
        return np.asarray(y, np.float64)

    def _as_given(self, y: NDArray[Any]) -> None:
        """Tell answers in the type of the target, of which a model file knows nothing."""

    def _column_names(self, label: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
        """What the model file says of names, for :func:`linear_model`.

        By its feature map the command line finds the columns of a data frame in a file, where the
        label and what else was given may stand as well.
        """
        features = [str(name) for name in getattr(self, "feature_names_in_", ())]
        named = {role: column_name(role, values, features) for role, values in given.items()}
        offsets = {role: name for role, name in named.items() if role in _OFFSETS}
        if not features or self.index_base or len(set(features)) < len(features):
            return {"feature_map": None, "attributes": offsets}
        label = None if label in features else label
        roles = {name: ColumnRole(role) for role, name in named.items() if name not in features}
        beside = dict.fromkeys(roles if label is None else [label, *roles])
        columns = FeatureMap.build([*features, *beside], roles, label, None)
        return {"feature_map": columns.to_json(), "label": label, "attributes": offsets}

    def _take(self, model: LinearModel, ledger: str | Literal[False] | None) -> None:
        """Become the estimator of a model."""
        self.model_ = model
        self.ledger_entry_ = None
        self.n_features_in_ = model.n_features
        self.privacy_ = PrivacyStatement.of(model.provenance, ledger)

    @property
    def search_(self) -> SearchStatement | None:
        """What a search with ``tune`` tried, found and cost; None of a fit without one."""
        check_is_fitted(self)
        return SearchStatement.of(self.model_.provenance, self.privacy_)

    def _margins(self, X: Any, **arrays: Any) -> Floats:
        """Scores as the model file has them, shape (n,) or (n, k)."""
        check_is_fitted(self)
        given = {role: values for role, values in arrays.items() if values is not None}
        with in_python_words():
            refuse_columns_of_files(self.model_)
            self._check_offsets(given)
        X = validated(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        predictor = LinearPredictor(self.model_)
        with in_python_words():
            attributes = Attributes.of(given, X)
        blocks = row_blocks(X, self.model_.index_base, attributes=attributes)
        return np.concatenate([predictor.margins(block) for block in blocks])

    def _check_offsets(self, given: Mapping[str, Any]) -> None:
        """Hold what was given to what the model was fitted with, as ``dpfit predict`` does."""
        refuse_names(given)
        if given and self.model_.loss not in WITH_OFFSET:
            raise UsageError(f"--loss {self.model_.loss} has no offset or exposure")
        fitted = {"offset": self.model_.offset_column, "exposure": self.model_.exposure_column}
        missing = [role for role in _OFFSETS if fitted[role] is not None and role not in given]
        if missing:
            raise UsageError(
                f"the model was fitted with {' and '.join(missing)}, and predicts with it only",
                hint=f"give {' and '.join(f'--{role}=' for role in missing)}; exposures of 1 "
                "predict rates, offsets of 0 change nothing",
            )

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


@dataclass(eq=False, repr=False, kw_only=True)
class GradientEstimator(LinearEstimator):
    """A linear model of any loss but the absolute one, whose algorithms have fewer settings."""

    residual_clip: float | None = None
    l1_radius: float | None = None
    selection: str | None = None
    projection_radius: float | None = None
    threshold: str | None = None
    entry_clip: float | None = None
    calibration: str = "exact"
