"""Errors in the words of Python: ``n_rows`` for ``--n-rows``, ``algo='dp-gd'`` for an option."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Final

from dpfit.errors import DataError, DpfitError, UsageError
from dpfit.fitting import algorithm_traits as traits
from dpfit.fitting import matrix_request
from dpfit.fitting.requested_search import SEARCHABLE
from dpfit.losses.names import LOSSES
from dpfit.privacy.adjacency import Adjacency


class ParameterError(UsageError, ValueError):
    """A parameter, or a combination of them, makes no sense."""


class RecordsError(DataError, ValueError):
    """The rows or the target are not what they must be."""


_VALUES: Final = frozenset(
    {
        *(traits.AUTO, *traits.ALGORITHMS, *traits.ORIGINALS, *LOSSES),
        *(*traits.CALIBRATIONS, *traits.SELECTIONS, *traits.BATCHES, *traits.NOISES),
        *(*traits.THRESHOLDS, matrix_request.PRIVATE, *matrix_request.ORIGINALS),
        *("laplace", "per-class", "joint", *Adjacency),
    }
)
_OPTION: Final = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*)(?: ([\w.-]*\w))?")
_NUMBER: Final = re.compile(r"[0-9.]+")
_WITH_HYPHEN: Final = "|".join(name.replace("_", "-") for name in SEARCHABLE if "_" in name)
_SETTING: Final = re.compile(rf"(?<![\w-])(?:{_WITH_HYPHEN})(?![\w-])")
_OTHER_NAMES: Final = {
    "range": "rating_range",
    "weight": "sample_weight",
    "items": "n_items",
    "no-intercept": "intercept=False",
    "non-private": "non_private=True",
}
_PHRASES: Final = {
    " in a --schema file": " to the constructor",
    ", given as an option or to the constructor": ", given to the constructor",
    ", given as an option": ", given to the constructor",
    ", or rows of the schema,": "",
    " or the schema": "",
    "its columns and levels make": "it has",
    " LOW HIGH": "=(low, high)",
    "the number of --items": "n_items",
    "a --weight column": "sample_weight",
    "an --exposure or --offset column": "offset or exposure",
    "--unit, the column of the units": "unit, an argument of fit",
    "--unit COLUMN": "fit(..., unit=...)",
    "--loss huber is as robust and has one": (
        "SparseRegressor with loss='huber' is as robust and has one"
    ),
    "give -o - and redirect standard output": "name a file",
}


@contextlib.contextmanager
def in_python_words() -> Iterator[None]:
    """Raise errors of the block by the names that a Python user knows.

    Those about parameters and data are `ValueError` too, as scikit-learn's callers expect.
    """
    try:
        yield
    except DpfitError as error:
        raise _translated(error) from None


def _translated(error: DpfitError) -> DpfitError:
    text = error.message if error.hint is None else f"{error.message}; {error.hint}"
    text = python_words(text)
    if isinstance(error, DataError):
        return RecordsError(text, path=error.path)
    kind = ParameterError if isinstance(error, UsageError) else type(error)
    return kind(text)


def python_words(text: str) -> str:
    """A message of the command line with its options as parameters."""
    for phrase, other in _PHRASES.items():
        text = text.replace(phrase, other)
    return _SETTING.sub(lambda found: found[0].replace("-", "_"), _OPTION.sub(_parameter, text))


def _parameter(found: re.Match[str]) -> str:
    name = _OTHER_NAMES.get(found[1], found[1].replace("-", "_"))
    word = found[2]
    if word is None:
        return name
    if name == "tune":
        word = word.replace("-", "_")
    if _NUMBER.fullmatch(word):
        return f"{name}={word}"
    return f"{name}={word!r}" if word in _VALUES else f"{name} {word}"
