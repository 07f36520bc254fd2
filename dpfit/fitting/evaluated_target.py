"""Targets of records that a model is held against, as readers give them, or what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.data.rows import RowBlock
from dpfit.errors import DataError
from dpfit.privacy.summary import Label, Target
from dpfit.privacy.target_map import class_numbers

Floats: TypeAlias = NDArray[np.float64]


def classes_of(block: RowBlock, classes: Sequence[Label], source: str) -> Floats:
    """The number of each record's class, from 0, shape (n,).

    Raises
    ------
    DataError
        There are no targets, or the model does not know one.
    """
    numbers = class_numbers(_present(block, source), classes)
    if np.any(numbers < 0.0):  # readers say where: a backstop
        raise DataError("has a label that the model does not know", path=source)
    return numbers


def values_of(block: RowBlock, source: str) -> Floats:
    """Each record's target, shape (n,).

    Raises
    ------
    DataError
        There are no targets, or they are texts.
    """
    target = _present(block, source)
    if target.dtype == object:
        raise DataError("has text where the model predicts a number", path=source)
    return target.astype(np.float64)


def _present(block: RowBlock, source: str) -> Target:
    if block.target is None:
        raise DataError("has no labels to evaluate against", path=source)
    return block.target
