"""What the losses are called, and which of them are for classes."""

from __future__ import annotations

from typing import Final

LOSSES: Final = ("logistic", "squared", "huber", "absolute", "poisson", "multinomial")
OF_CLASSES: Final = ("logistic", "multinomial")
