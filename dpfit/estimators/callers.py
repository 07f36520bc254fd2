"""What calls ``fit``: a search, which is refused, or a pipeline, whose other steps may leak.

scikit-learn tells an estimator nothing of its surroundings, so the stack of callers is looked at.
That serves a message, not the guarantee: what cannot be seen so is held by the ledger, where every
fit of a search is charged and the cap refuses. Without a ledger there is no such net.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

from dpfit.errors import PrivacyError
from dpfit.estimators.learning_steps import learning_steps
from dpfit.estimators.privacy_warnings import PrivacyWarning

_SEARCHES: Final = "sklearn.model_selection."
_FOLDS: Final = (
    "sklearn.ensemble._stacking",
    "sklearn.calibration",
    "sklearn.feature_selection._rfe",
)
_FOLDS_IF_ASKED: Final = "sklearn.multioutput"
_BOOSTING: Final = "sklearn.ensemble._weight_boosting"
_PIPELINE: Final = "sklearn.pipeline"


def refuse_search() -> None:
    """Refuse to be fitted, or cloned to be fitted, by a search or cross-validation.

    Raises
    ------
    PrivacyError
        Each of its fits would be a run of its own, and its scores are not private at all. So are
        the weights of boosting, each of which depends on all records.
    """
    for frame in _callers():
        module = frame.f_globals.get("__name__", "")
        if module == _BOOSTING:
            raise PrivacyError(
                "boosting private data is refused: its weights of one record depend on all others, "
                "and no fit of it keeps its promise; non_private=True is for data that are public"
            )
        if module.startswith(_SEARCHES) or _has_folds(module, frame.f_locals.get("self")):
            raise PrivacyError(
                "a search or cross-validation on private data is refused: every fit of it would "
                "be charged, and its scores would be released without noise; "
                "tune={'sparsity': [100, 300]} searches privately, in one fit and one charge, and "
                "non_private=True is for data that are public"
            )


def warn_of_fitted_steps() -> None:
    """Warn where a pipeline, or one around it, fits steps before, which learn without noise."""
    frames = (one for one in _callers() if one.f_globals.get("__name__") == _PIPELINE)
    pipelines = {id(one): one for one in (frame.f_locals.get("self") for frame in frames)}
    learning = [
        learning_step
        for pipeline in pipelines.values()
        for name, step in getattr(pipeline, "steps", [])[:-1]
        for learning_step in learning_steps(name, step)
    ]
    if learning:
        warnings.warn(
            f"what the pipeline learns in {', '.join(learning)} is outside the guarantee",
            PrivacyWarning,
            stacklevel=2,
        )


def _has_folds(module: str, caller: Any) -> bool:
    """Whether that part of scikit-learn fits on folds, and learns from scores without noise."""
    if not hasattr(caller, "cv"):
        return False
    if module == _FOLDS_IF_ASKED:
        return caller.cv is not None
    return module in _FOLDS and not (isinstance(caller.cv, str) and caller.cv == "prefit")


def _callers() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
