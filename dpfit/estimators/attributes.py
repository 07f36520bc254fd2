"""What records have beside features and target, as arguments of a fit: weights, offsets, units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length

from dpfit.data.attributes import ATTRIBUTES, AttributeColumn, offset_and_weight
from dpfit.data.encode import CellFault, CodedText
from dpfit.data.owners import OwnerColumn, owners_of
from dpfit.data.parquet_columns import as_text, is_text
from dpfit.errors import DataError, UsageError
from dpfit.estimators.names import name_of
from dpfit.estimators.validation import without_quotes

Floats: TypeAlias = NDArray[np.float64]

_SOURCE: Final = "the data"
_REFUSED: Final = {
    "weight": "has a negative weight",
    "exposure": "has an exposure that is not positive",
}


@dataclass(frozen=True)
class Attributes:
    """Of all records, or of a block of them.

    Attributes
    ----------
    offset, weight : float64 array, shape (n,), or None
    owner : CodedText or None
        Identifiers of the privacy units, as readers of files find them.
    """

    offset: Floats | None = None
    weight: Floats | None = None
    owner: CodedText | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any], X: Any) -> Attributes:
        """Check what was given, by role.

        Parameters
        ----------
        given : mapping of str to array-like, shape (n,)
            ``weight``, ``offset``, ``exposure`` and ``unit``.
        X : array or sparse matrix, shape (n, d)
            The records.

        Raises
        ------
        ValueError
            An array is of another shape, or has a number or an identifier that cannot be used.
        """
        numbers = {role: _numbers(role, given[role], X) for role in ATTRIBUTES if role in given}
        offset, weight = offset_and_weight(numbers)
        return cls(offset, weight, _owners(given["unit"], X) if "unit" in given else None)

    def of_rows(self, start: int, stop: int) -> Attributes:
        """Of the records from one to another."""
        return Attributes(
            None if self.offset is None else self.offset[start:stop],
            None if self.weight is None else self.weight[start:stop],
            None if self.owner is None else self.owner.at(np.arange(start, stop)),
        )


def refuse_names(given: Mapping[str, Any]) -> None:
    """Refuse the name of a column where its entries are wanted.

    Raises
    ------
    UsageError
        One of what was given is a text.
    """
    for role, values in given.items():
        if isinstance(values, str):
            raise UsageError(
                f"--{role} must be an array with an entry for each row",
                hint=f"such as --{role}=frame['NAME'], with that column left out of X",
            )


def column_name(role: str, values: Any, features: Sequence[str] = ()) -> str:
    """What a model or a ledger calls the column: the name of a series, or its role.

    A series that was made of a feature still has the name of that.
    """
    name = name_of(values)
    return role if name is None or name in features else name


def _numbers(role: str, values: Any, X: Any) -> Floats:
    with without_quotes():
        numbers = check_array(values, ensure_2d=False, dtype=np.float64, input_name=role)
        if numbers.ndim != 1:
            raise UsageError(f"--{role} must be 1D array or scalar")
        check_consistent_length(X, numbers)
    if AttributeColumn(role, role, 0).refused(numbers).any():
        raise DataError(_REFUSED[role], path=_SOURCE)
    return np.asarray(numbers)


def _owners(unit: Any, X: Any) -> CodedText:
    """Identifiers by the rules of the files: whole numbers are the texts of their digits."""
    identifiers = _array_of(unit)
    if identifiers.ndim != 1:
        raise UsageError("--unit must be one identifier for each row")
    check_consistent_length(X, identifiers)
    whole = identifiers.dtype.kind in "iu"
    try:
        array = pa.array(identifiers) if whole else pa.array(identifiers.tolist())
        if not (is_text(array.type) or pa.types.is_integer(array.type)):
            raise TypeError
        return owners_of(as_text(array), OwnerColumn("unit", 0), na=())
    except CellFault:
        raise DataError(
            "has an empty identifier of a unit",
            path=_SOURCE,
            hint="every row needs one: leave out those without, or give each one of its own",
        ) from None
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        raise DataError(
            "its units are neither texts nor whole numbers",
            path=_SOURCE,
            hint="where none is missing, make texts of them: --unit=frame['NAME'].astype(str)",
        ) from None


def _array_of(unit: Any) -> NDArray[Any]:
    """As it is; a list's members each as it is: together they would turn a NaN into a text."""
    if not isinstance(unit, list | tuple):
        return np.asarray(unit)
    return np.fromiter(unit, object, count=len(unit))
