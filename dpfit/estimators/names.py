"""Names of columns as files have them: a whole number is the text of its digits."""

from __future__ import annotations

import numbers
from typing import Any


def name_of(values: Any) -> str | None:
    """The name of a series; None where it has none that a file could hold."""
    return _text(getattr(values, "name", None))


def named(X: Any) -> Any:
    """A data frame whose columns are numbered with the texts of these numbers; others as they are.

    scikit-learn knows names that are texts only, and a CSV file has no others.
    """
    if not hasattr(X, "set_axis") or not hasattr(X, "columns"):
        return X
    names = list(X.columns)
    if not names or any(isinstance(name, str) or _text(name) is None for name in names):
        return X
    return X.set_axis([_text(name) for name in names], axis=1)


def _text(name: object) -> str | None:
    if isinstance(name, numbers.Integral) and not isinstance(name, bool):
        return str(int(name))
    return name if isinstance(name, str) and name else None
