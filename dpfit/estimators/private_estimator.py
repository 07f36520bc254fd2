"""What every estimator is and is told: the options of the command line, by the same names."""

from __future__ import annotations

import contextlib
import numbers
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import Any, Final, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dpfit.errors import PrivacyError, UsageError
from dpfit.estimators.callers import refuse_search, warn_of_fitted_steps
from dpfit.estimators.charged_run import ledger_path
from dpfit.estimators.python_words import in_python_words
from dpfit.files.atomic import write_atomically
from dpfit.fitting import matrix_request
from dpfit.fitting.algorithm_traits import ORIGINALS
from dpfit.fitting.checks import one_of, within
from dpfit.privacy.adjacency import Adjacency

_ORIGINALS: Final = {*ORIGINALS, *matrix_request.ORIGINALS}
_KINDS: Final = {
    "int": (numbers.Integral, int, "a whole number"),
    "float": (numbers.Real, float, "a number"),
    "bool": (bool | np.bool_, bool, "True or False"),
    "str": (str, str, "a text"),
}


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of all: budget, ledger, the model file, and what calls a fit.

    Nothing of it outlives a fit but what was released: the key of the noise is born and lost
    there, so that no copy, clone or pickle can repeat it.
    """

    eps: float | None = None
    delta: float | None = None
    rho: float | None = None
    mu: float | None = None
    adjacency: str = "replace-one"
    algo: str = "auto"
    ledger: str | os.PathLike[str] | Literal[False] | None = None
    dataset: str | None = None
    strict: bool = False
    non_private: bool = False
    seed: int | None = None
    lock_timeout: float = 30.0

    @property
    def _without_noise(self) -> bool:
        return bool(self.non_private) or self.algo in _ORIGINALS

    @property
    def _protects(self) -> bool:
        return not self._without_noise and self.seed is None

    def _parameters(self) -> SimpleNamespace:
        """The parameters as plain values, once the callers of a fit were looked at.

        Raises
        ------
        UsageError
            One of them is of another kind.
        PrivacyError
            A search calls.
        """
        if self._protects:
            refuse_search()
            warn_of_fitted_steps()
        plain = {field.name: _plain(field, getattr(self, field.name)) for field in fields(self)}
        one_of("--adjacency", plain["adjacency"], tuple(Adjacency))
        within("--lock-timeout", plain["lock_timeout"], 0.0, 1e8)
        plain["adjacency"] = Adjacency(plain["adjacency"])
        plain["ledger"] = ledger_path(plain["ledger"])
        return SimpleNamespace(**plain)

    @contextlib.contextmanager
    def _as_before_if_it_fails(self) -> Iterator[None]:
        """Stay what the last fit made of it, where this one fails: half of each is neither."""
        before = vars(self).copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the model file, which ``dpfit predict`` and :func:`dpfit.load_model` read.

        Parameters
        ----------
        path : str or path
            Such as ``text.model.json``, or ``ratings.factors.parquet``.
        force : bool
            Whether to replace a file.

        Raises
        ------
        StorageError
            It exists, or cannot be written.
        """
        check_is_fitted(self)
        with in_python_words():
            write_atomically(os.fspath(path), self.model_.to_bytes(), overwrite=force)

    def __sklearn_clone__(self) -> Self:
        # The first thing that a search does, and where its message is seen best.
        if self._protects:
            refuse_search()
        return super().__sklearn_clone__()  # type: ignore[no-any-return]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = self._protects
        return tags


def _plain(field: Any, value: Any) -> Any:
    """A number, flag or text as Python's own; others are looked at where they are used."""
    kind, _, optional = field.type.partition(" | ")
    if kind not in _KINDS or optional not in ("", "None") or (value is None and optional):
        return value
    expected, plain, words = _KINDS[kind]
    if not isinstance(value, expected) or (plain is not bool and isinstance(value, bool)):
        raise UsageError(f"--{field.name.replace('_', '-')} must be {words}")
    return plain(value)


def require_declared(facts: Mapping[str, object]) -> None:
    """Name every missing fact of a strict run at once.

    Parameters
    ----------
    facts : mapping of str to object
        By the parameters that declare them; None of a missing one.

    Raises
    ------
    PrivacyError
        There is one.
    """
    missing = [name for name, value in facts.items() if value is None]
    if missing:
        raise PrivacyError(f"strict: not declared: {', '.join(missing)}")


def number_pair(option: str, value: Any) -> tuple[float, float]:
    """A pair of numbers.

    Raises
    ------
    UsageError
        It is something else.
    """
    try:
        low, high = (float(end) for end in value)
    except (TypeError, ValueError):
        raise UsageError(f"{option} must be a pair of numbers") from None
    return low, high
