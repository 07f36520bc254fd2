"""The regularised objective whose minimiser is released."""

from __future__ import annotations

from dataclasses import dataclass

from dpfit.losses.smoothed import Smoothed


@dataclass(frozen=True)
class Objective:
    """``sum_i a_i l(y_i - c - w.z_i) + (ridge / 2) |w|^2``, with rows z in units of their norm K.

    The last coordinate of w belongs to the constant column; a is a record's weight over the
    largest, c a public centre. Nothing is divided by the number of records.

    Attributes
    ----------
    loss : Smoothed
        l.
    ridge : float
        In records: an l2 penalty as strong as that many records' losses are.
    """

    loss: Smoothed
    ridge: float
