"""Numbers from what a caller passes; a refusal must not show what stands there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

Numbers = TypeVar("Numbers")


def numeric_input(estimator: Any, *arrays: Any, **wanted: Any) -> Any:
    """What scikit-learn's `validate_data` returns, which takes the same arguments.

    Raises
    ------
    ValueError
        As there, but that a text which is no number is not repeated.
    """
    return _without_texts(lambda: validate_data(estimator, *arrays, **wanted))


def numeric_target(y: NDArray[Any]) -> NDArray[np.float64]:
    """A target of numbers, shape (n,).

    Raises
    ------
    ValueError
        It holds a text that is no number, which is not repeated.
    """
    return _without_texts(lambda: np.asarray(y, np.float64))


def _without_texts(convert: Callable[[], Numbers]) -> Numbers:
    try:
        return convert()
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
    # Out of the block, or the other error would hang on to this one.
    raise ValueError(
        "the data hold a text that is no number; encode categories as numbers first, or give a "
        "file with a schema to `dpfit fit`"
    )
