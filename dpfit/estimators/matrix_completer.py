"""Completion of a matrix of ratings under differential privacy of whole users."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpfit.data.rating_options import ROLES
from dpfit.data.ratings_by_user import RatingsByUser
from dpfit.errors import DataError, UsageError
from dpfit.estimators.charged_run import dataset_of, ledger_of, run_charged
from dpfit.estimators.privacy_statement import PrivacyStatement, warn_before_run
from dpfit.estimators.privacy_warnings import PrivacyWarning
from dpfit.estimators.private_estimator import PrivateEstimator, number_pair, require_declared
from dpfit.estimators.python_words import in_python_words
from dpfit.estimators.row_blocks import canonical
from dpfit.estimators.validation import validated
from dpfit.files.factor_model import FactorModel
from dpfit.fitting.factor_file import factor_model, factor_outcome
from dpfit.fitting.factor_prediction import FactorPredictor
from dpfit.fitting.matrix_fit import MatrixFit
from dpfit.fitting.matrix_plan import charge_ahead
from dpfit.fitting.matrix_request import PRIVATE, MatrixRequest
from dpfit.fitting.requested_budget import requested_budget
from dpfit.fitting.user_solve import UserSolver

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_SOURCE: Final = "the data"
_AS_THEY_ARE: Final = (
    *("strict", "seed", "noise", "huber_knee", "loss", "huber_threshold", "rank", "sweeps"),
    *("passes", "max_per_user", "adjacency", "n_users"),
)
_LONG_WIDTH: Final = 3
# The width alone decides: whether cells look like identifiers is private.
_IS_IT_LONG: Final = (
    "X is taken as a row for each user and a column for each of three items; of a list of users, "
    "items and ratings make coo_array((ratings, (users, items))), or else single ratings are "
    "protected; n_items=3 says that there are three items"
)
_CELLS: Final = 1 << 21  # of a table of users by items that is computed at a time: 16 MiB


@dataclass(eq=False, repr=False, kw_only=True)
class MatrixCompleter(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Completion of a matrix of ratings, a row a user, under privacy of whole users.

    Only quantities of items are released and kept. What is predicted for a user follows from these
    and from the user's own ratings, which the methods are given: it is for that user only.

    Parameters
    ----------
    eps, delta, rho, mu, ledger, dataset, strict, non_private, seed, lock_timeout
        As of :class:`SparseClassifier`.
    rating_range : pair of float
        Public bounds of a rating; there is no default. Ratings beyond are cut to them, and no word
        tells whether there were any: that is private.
    adjacency : str
        Of users: ``add-remove`` or ``replace-one``.
    algo : str
        ``complete-matrix``, or without noise ``als`` or ``irls``.
    rank, sweeps, passes : int, optional
        Factors at most, noisy moves of them, and noisy looks at the biases; by default by rule.
    max_per_user : float, optional
        A user's ratings weigh like so many of them at most.
    loss : str, optional
        ``squared`` or ``huber``.
    huber_threshold : float, optional
        Where Huber's loss turns, in rating units.
    noise : str
        ``gaussian``, ``laplace`` or ``huber``.
    huber_knee : float, optional
        Where Huber noise turns exponential.
    n_users, n_items : int, optional
        Public shape. A dense table's width needs no declaration.

    Attributes
    ----------
    components_ : float64 array, shape (rank, d)
        Factors of the items.
    item_means_ : float64 array, shape (d,)
        What is predicted to a user without ratings.
    privacy_ : PrivacyStatement
        What was promised, and under which assumptions.
    ledger_entry_ : mapping or None
        The charge as it stands in the ledger; None without one, and of a loaded model.
    model_ : FactorModel
        What the model file holds. Items go by the names of a data frame's columns, whole numbers as
        their digits, or without names by their numbers from 1.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    adjacency: str = "add-remove"
    algo: str = PRIVATE
    rating_range: tuple[float, float] | None = None
    rank: int | None = None
    sweeps: int | None = None
    passes: int | None = None
    max_per_user: float | None = None
    loss: str | None = None
    huber_threshold: float | None = None
    noise: str = "gaussian"
    huber_knee: float | None = None
    n_users: int | None = None
    n_items: int | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Charge the run, then complete.

        Parameters
        ----------
        X : sparse matrix, array or data frame, shape (n, d)
            Ratings: the entries that a sparse matrix stores, also zeros; in a table all but NaN.
            A row is a user and a column an item: of a list of users, items and ratings make
            ``scipy.sparse.coo_array((ratings, (users, items)))``, numbered from 0.
        y : None
            Ignored.

        Returns
        -------
        MatrixCompleter
            Itself.

        Raises
        ------
        ValueError, PrivacyError, StorageError, LockBusyError
            As :meth:`SparseClassifier.fit`.
        """
        sparse = issparse(X)
        with in_python_words():
            parameters = self._parameters()
            ledger = ledger_of(parameters)
            request = self._request(parameters, parameters.n_items)
            if ledger is not None:
                ledger.check(charge_ahead(request))
        with self._as_before_if_it_fails():
            ratings = self._ratings(X, reset=True)
            with in_python_words():
                n_items = self.n_features_in_
                if parameters.n_items not in (None, n_items):
                    raise DataError("does not have --n-items columns", path=_SOURCE)
                if not sparse and parameters.n_items is None:
                    # The width of a table is that of each of its records.
                    request = self._request(parameters, n_items)
                if request.strict:
                    require_declared({"n_users": request.n_users, "n_items": request.n_items})
                fitted = MatrixFit(request, ratings, n_items=n_items, source=_SOURCE)
                if not sparse and parameters.n_items is None and n_items == _LONG_WIDTH:
                    warnings.warn(_IS_IT_LONG, PrivacyWarning, stacklevel=2)
                warn_before_run(
                    fitted.plan.facts,
                    fitted.events,
                    request,
                    records="users",
                    ledger=ledger,
                    stacklevel=3,
                )
                names = getattr(self, "feature_names_in_", np.arange(1, n_items + 1))
                model, entry = run_charged(
                    fitted,
                    ledger,
                    lambda outcome: factor_model(
                        outcome,
                        provenance={
                            **fitted.description(),
                            "events": [event.to_json() for event in fitted.events],
                        },
                        private=request.private,
                        columns=dict.fromkeys(ROLES),
                        items=[str(name) for name in names],
                    ),
                )
            self._take(model, False if ledger is None else ledger.path)
            self.ledger_entry_ = entry
        return self

    def transform(self, X: Any) -> Floats:
        """The table of all ratings, shape (n, d): those of ``X`` as they are, others predicted."""
        ratings = self._ratings(X, reset=False)
        whole = np.empty((ratings.n_users, self.n_features_in_))
        solver = self._solver()
        for part in _parts(ratings, self.n_features_in_):
            scores = np.clip(
                solver.predict_all(solver.coefficients(part)), *self.model_.value_range
            )
            scores[part.rows, part.items] = part.values
            whole[part.first_user : part.first_user + part.n_users] = scores
        return whole

    def predict_pairs(self, X: Any, users: Any, items: Any) -> Floats:
        """The predicted rating of each pair, within the range, shape (m,).

        Parameters
        ----------
        X : sparse matrix, array or data frame, shape (n, d)
            The users' own ratings.
        users, items : integer arrays, shape (m,)
            Rows and columns of ``X``.

        Raises
        ------
        ValueError
            They are no such numbers, or not as many of one as of the other.
        """
        ratings = self._ratings(X, reset=False)
        rows = _numbers("users", users, ratings.n_users)
        columns = _numbers("items", items, self.n_features_in_)
        if len(rows) != len(columns):
            raise ValueError("users and items must be of one length")
        solver = self._solver()
        return solver.predict(solver.coefficients(ratings), rows, columns)

    def recommend(self, X: Any, n: int) -> tuple[Integers, Floats]:
        """The best items that each user has not rated.

        Parameters
        ----------
        X : sparse matrix, array or data frame, shape (n_users, d)
            The users' own ratings.
        n : int
            At least 1.

        Returns
        -------
        int64 array, shape (n_users, n)
            Columns, the best first; -1 where no item is left.
        float64 array, shape (n_users, n)
            Their predicted ratings; NaN where no item is left.
        """
        if n < 1:
            raise ValueError("n must be 1 or more")
        ratings = self._ratings(X, reset=False)
        items = np.full((ratings.n_users, n), -1)
        values = np.full((ratings.n_users, n), np.nan)
        for best in FactorPredictor(self.model_, self._solver()).top([ratings], n):
            first = np.searchsorted(best.user, best.user)
            place = np.arange(len(best.user)) - first
            items[best.user, place] = best.item
            values[best.user, place] = best.value
        return items, values

    @property
    def components_(self) -> Floats:
        check_is_fitted(self)
        return np.ascontiguousarray(self.model_.factors.T)

    @property
    def item_means_(self) -> Floats:
        check_is_fitted(self)
        return np.asarray(self.model_.item_means)

    def _request(self, parameters: SimpleNamespace, n_items: int | None) -> MatrixRequest:
        if parameters.rating_range is None:
            raise UsageError(
                "the bounds of a rating are not declared", hint="such as rating_range=(1, 5)"
            )
        return MatrixRequest(
            budget=requested_budget(
                parameters, seed=parameters.seed, without_noise=self._without_noise
            ),
            dataset=dataset_of(parameters),
            value_range=number_pair("--range", parameters.rating_range),
            algorithm=parameters.algo,
            without_noise=self._without_noise,
            n_items=n_items,
            **{name: getattr(parameters, name) for name in _AS_THEY_ARE},
        )

    def _ratings(self, X: Any, *, reset: bool) -> RatingsByUser:
        """The ratings of a matrix, by user."""
        if not reset:
            check_is_fitted(self)
        sparse = issparse(X)
        # These formats can hold a place twice; sorting adds such entries up.
        stored = X.nnz if sparse and X.format in ("coo", "csc", "csr") else 0
        X = validated(
            self,
            X,
            accept_sparse="csr",
            dtype=np.float64,
            reset=reset,
            ensure_all_finite=True if sparse else "allow-nan",
        )
        if not sparse:
            given = ~np.isnan(X)
            lengths, items, values = given.sum(axis=1), np.nonzero(given)[1], X[given]
        else:
            X = canonical(X)
            if X.nnz < stored:
                raise ValueError("a user rates an item twice: the matrix stores a place twice")
            lengths, items, values = np.diff(X.indptr), X.indices, X.data
        indptr = np.zeros(X.shape[0] + 1, np.int64)
        np.cumsum(lengths, out=indptr[1:])
        return RatingsByUser(0, indptr, items.astype(np.int32), values)

    def _solver(self) -> UserSolver:
        return UserSolver(factor_outcome(self.model_))

    def _take(self, model: FactorModel, ledger: str | Literal[False] | None) -> None:
        """Become the estimator of a model."""
        self.model_ = model
        self.ledger_entry_ = None
        self.n_features_in_: int = len(model.items)
        self.privacy_ = PrivacyStatement.of(model.provenance, ledger)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _numbers(name: str, values: Any, count: int) -> Integers:
    """Numbers below a count; a negative one would silently be another's, from the end."""
    numbers = np.asarray(values)
    if numbers.ndim != 1 or not (numbers.dtype.kind in "iu" or numbers.size == 0):
        raise ValueError(f"{name} must be a list of whole numbers")
    if np.any((numbers < 0) | (numbers >= count)):
        raise ValueError(f"{name} must lie from 0 to {count - 1}")
    return numbers.astype(np.int64)


def _parts(ratings: RatingsByUser, n_items: int) -> Iterator[RatingsByUser]:
    step = max(1, _CELLS // n_items)
    for start in range(0, ratings.n_users, step):
        yield ratings.part(start, min(start + step, ratings.n_users))
