"""What scikit-learn checks of arrays, told without a value of theirs."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any, Final

from scipy.sparse import issparse
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from dpfit.estimators.names import named

_CATEGORIES: Final = (
    "; encode categories as numbers first, or give a file with a schema to `dpfit fit`"
)
_MISSING: Final = re.compile(r"(Input X contains NaN)\..*", re.S)
_FILL: Final = (
    "; fill with a constant that does not depend on the data, such as 0: what an imputer learns is "
    "outside the guarantee"
)
_STORE_NONE: Final = "; leave out of the matrix what is no rating"
_ENCODE: Final = re.compile(re.escape(_CATEGORIES))
_LISTED: Final = (
    "; of a list of users, items and ratings make coo_array((ratings, (users, items))), with "
    "numbers from 0 in place of names"
)
_QUOTES: Final = (
    (re.compile(r"(could not convert string to float).*", re.S), r"\1" + _CATEGORIES),
    (re.compile(r"(Complex data not supported).*", re.S), r"\1"),
    (re.compile(r"array=.*?\.\n(?=Reshape)", re.S), ""),
    (re.compile(r"got scalar `.*`", re.S), "got a scalar"),
)
"""How its messages quote data, and what is left of each."""


def validated(estimator: Any, X: Any, *y: Any, **options: Any) -> Any:
    """scikit-learn's ``validate_data``, of arrays that can be read to their ends.

    Raises
    ------
    ValueError, TypeError
        They make no sense; no value is quoted.
    """
    for name, given in {"X": X, **dict(zip("y", y, strict=False))}.items():
        if not hasattr(given, "shape") and callable(getattr(given, "collect", None)):
            raise TypeError(f"{name} is lazy, without rows yet; give {name}.collect()")
    more = [(_MISSING, r"\1" + _FILL)]
    if get_tags(estimator).input_tags.allow_nan:  # a table of ratings
        more = [(_MISSING, r"\1" + _STORE_NONE), (_ENCODE, _LISTED)]
    with without_quotes(*more):
        if issparse(X):
            _check_places(X)
        return validate_data(estimator, named(X), *y, **options)


@contextlib.contextmanager
def without_quotes(*more: tuple[re.Pattern[str], str]) -> Iterator[None]:
    """Leave data out of the messages of the block's errors, and replace ``more`` of them."""
    try:
        yield
    except (TypeError, ValueError) as error:
        said = text = str(error)
        for quote, rest in (*_QUOTES, *more):
            text = quote.sub(rest, text)
        if text == said:
            raise
        raise (TypeError if isinstance(error, TypeError) else ValueError)(text) from None


def _check_places(X: Any) -> None:
    """Refuse places outside the matrix: compiled loops go where they are told, and write there.

    Constructors look at them, and leave the argument as it is.
    """
    if X.format == "coo":
        type(X)((X.data, (X.row, X.col)), shape=X.shape)
    elif X.format in ("csr", "csc", "bsr"):
        type(X)((X.data, X.indices, X.indptr), shape=X.shape).check_format(full_check=True)
