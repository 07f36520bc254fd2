"""How an algorithm divides its budget: what it will ask of the Curator, planned ahead."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction


class Quantity(StrEnum):
    """What a release is about."""

    GRADIENT = "gradient over rows"
    UNIT_GRADIENT = "gradient over centred rows of length one"
    COLUMN_SUMS = "column sums of magnitudes"
    TARGET_SUM = "sum of the target"
    PARTIAL_GRADIENT = "gradient over rows, on chosen columns"
    SELECTION = "selection of columns by gradient"


@dataclass(frozen=True)
class Share:
    """A planned release and its part of the budget.

    Attributes
    ----------
    label : str
        Its name in the ledger.
    quantity : Quantity
        What is released.
    count : int
        How many times.
    part : Fraction
        Of the whole: of mu^2 when everything is Gaussian, of rho when something is selected.
    chosen : int
        Columns of a selection or a partial gradient.
    """

    label: str
    quantity: Quantity
    count: int
    part: Fraction
    chosen: int = 0
