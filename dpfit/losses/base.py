"""What an algorithm and the Curator ask of a loss."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


class Loss(Protocol):
    """A generalised linear loss ``l(m, y)`` of the margin ``m = x.theta``.

    Attributes
    ----------
    name : str
        As on the command line.
    """

    name: str

    def mean(self, margins: Floats) -> Floats:
        """The inverse link: the expected target at each margin."""
        ...

    def residual(self, margins: Floats, target: Floats) -> Floats:
        """``l'(m, y) = mean(m) - y``, by IEEE basic operations only: the same bits everywhere."""
        ...
