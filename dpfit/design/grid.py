"""The public integer grid on which rows live: what the privacy proof is about.

A record becomes the integer vector ``(xq, b)``: its clipped and truncated row and the constant of
the intercept column. ``|xq|^2 <= K_int^2`` is enforced in integers, so the joint squared norm of
every record is at most ``K_int^2 + b^2`` whatever the arithmetic before it did.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

_INTERCEPT_COLUMN = 0.1  # of the row norm; larger hurts text, none loses centred data (measured)


class RowMap(StrEnum):
    """What happens to a row before it is quantised; a function of that row alone."""

    NORMALIZE = "normalize"
    CLIP = "clip"


@dataclass(frozen=True)
class Grid:
    """The record map's public parameters.

    Attributes
    ----------
    row_norm : float
        K, the l2 norm that rows are scaled to (``normalize``) or down to (``clip``).
    row_map : RowMap
        Which of the two.
    bits : int
        ``K_int = 2**bits``.
    intercept : bool
        Whether a record carries the constant intercept column.
    entry_clip : float
        Bound on a single entry, as a share of the row norm; 1 bounds nothing.
    """

    row_norm: float
    row_map: RowMap
    bits: int
    intercept: bool
    entry_clip: float = 1.0

    @property
    def integer_norm(self) -> int:
        """K_int: the integer bound on a row's l2 norm."""
        return 1 << self.bits

    @property
    def intercept_integer(self) -> int:
        """b: the integer in the intercept column, 0 without one."""
        return round(_INTERCEPT_COLUMN * self.integer_norm) if self.intercept else 0

    @property
    def squared_norm(self) -> int:
        """K2 = K_int^2 + b^2: the bound on a whole record's squared norm."""
        return self.integer_norm**2 + self.intercept_integer**2

    @property
    def entry_integer(self) -> int:
        """The bound on a single integer of a row."""
        return max(1, int(self.entry_clip * self.integer_norm))

    @property
    def largest_entry(self) -> int:
        """K_inf: the bound on every integer of a record, the intercept's included."""
        return max(self.entry_integer, self.intercept_integer)

    @property
    def unit(self) -> float:
        """The real length of one integer step."""
        return self.row_norm / self.integer_norm

    @property
    def intercept_value(self) -> float:
        """The real value in the intercept column."""
        return self.intercept_integer * self.unit


def grid_bits(n_rows: int) -> tuple[int, int]:
    """Bits for rows and for residuals so that ``n K_int R_int < 2^62`` (exactness, section 6 g).

    Parameters
    ----------
    n_rows : int
        Public number of records.

    Returns
    -------
    tuple of int
        ``(row bits, residual bits)``, at most 20 each. Sums that wrap around cannot hurt privacy
        (addition modulo 2^64), so a wrong public count costs accuracy only.
    """
    spare = 61 - max(n_rows - 1, 0).bit_length()
    residual = min(20, spare // 2)
    return min(20, spare - residual), residual
