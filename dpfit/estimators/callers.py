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

from sklearn.utils import get_tags

from dpfit.errors import PrivacyError
from dpfit.estimators.privacy_warnings import PrivacyWarning

_SEARCHES: Final = "sklearn.model_selection."
_PIPELINE: Final = "sklearn.pipeline"


def refuse_search() -> None:
    """Refuse to be fitted, or cloned to be fitted, by a search or cross-validation.

    Raises
    ------
    PrivacyError
        Each of its fits would be a run of its own, and its scores are not private at all.
    """
    for frame in _callers():
        if frame.f_globals.get("__name__", "").startswith(_SEARCHES):
            raise PrivacyError(
                "a search or cross-validation on private data is refused: every fit of it would "
                "be charged, and its scores would be released without noise; "
                "tune={'sparsity': [100, 300]} searches privately, in one fit and one charge, and "
                "non_private=True is for data that are public"
            )


def warn_of_fitted_steps() -> None:
    """Warn where a pipeline fits steps before this one, which learn without noise."""
    for frame in _callers():
        if frame.f_globals.get("__name__") != _PIPELINE:
            continue
        steps = getattr(frame.f_locals.get("self"), "steps", [])
        learning = [name for name, step in steps[:-1] if _learns(step)]
        if learning:
            warnings.warn(
                f"what the pipeline learns in {', '.join(learning)} is outside the guarantee",
                PrivacyWarning,
                stacklevel=2,
            )
        return


def _learns(step: Any) -> bool:
    return step not in (None, "passthrough") and bool(get_tags(step).requires_fit)


def _callers() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
