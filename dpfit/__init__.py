"""dpfit: sparse models on sensitive files under differential privacy."""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dpfit.estimators import (
        AssumedFactWarning,
        MatrixCompleter,
        MedianRegressor,
        PrivacyStatement,
        PrivacyWarning,
        SearchStatement,
        SparseClassifier,
        SparseRegressor,
        load_model,
    )

__all__ = [
    "AssumedFactWarning",
    "MatrixCompleter",
    "MedianRegressor",
    "PrivacyStatement",
    "PrivacyWarning",
    "SearchStatement",
    "SparseClassifier",
    "SparseRegressor",
    "__version__",
    "load_model",
]


def __getattr__(name: str) -> object:
    # Late: the command line has no use for scikit-learn, whose import takes half a second.
    if name not in __all__:
        raise AttributeError(f"module 'dpfit' has no attribute {name!r}")
    try:
        from dpfit import estimators
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sklearn":
            raise
        raise ImportError(
            f"dpfit.{name} needs scikit-learn: pip install 'dpfit[sklearn]'"
        ) from None
    return getattr(estimators, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
