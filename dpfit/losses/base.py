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

    @property
    def n_scores(self) -> int:
        """How many margins a record has: 1, or one for each class."""
        ...

    def mean(self, margins: Floats) -> Floats:
        """The inverse link: the expected target at each margin."""
        ...

    def residual(self, margins: Floats, target: Floats) -> Floats:
        """``l'(m, y)``, by IEEE basic operations only: the same bits everywhere.

        Parameters
        ----------
        margins : float64 array, shape (n,) or (n, k)
            With a column for each of k classes when the loss has several.
        target : float64 array, shape (n,)
            In [0, 1], or the number of the class.
        """
        ...
