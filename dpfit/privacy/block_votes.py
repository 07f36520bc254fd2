"""Votes of row blocks for the columns of a sparse model: sample and aggregate.

Un-noised: only the Curator may look at the counts (Kifer, Smith and Thakurta, COLT 2012, with the
support's stability replaced by a charged selection).
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.local import LocalDesign
from dpfit.design.row_blocks import RowsOfBlock, interleaved
from dpfit.losses.base import Loss

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_STEPS: Final = 8
_LONGEST_STEP: Final = 1e9  # keeps every number of a block finite


def block_votes(
    design: LocalDesign,
    target: Floats,
    loss: Loss,
    *,
    sparsity: int,
    n_blocks: int,
    integer_norm: int,
) -> Integers:
    """How many blocks of rows vote for each column.

    A block votes for the at most s columns of a sparse model of its own rows. Its vote is a pure
    function of that block's records and public numbers, whatever the rounding of its floats: a
    record changes the vote of one block, so no count moves by more than 1.

    Parameters
    ----------
    design : LocalDesign
        The rows.
    target : float64 array, shape (n,)
        In [0, 1].
    loss : Loss
        Gives the residual.
    sparsity : int
        s.
    n_blocks : int
        B.
    integer_norm : int
        K_int.

    Returns
    -------
    int64 array, shape (d,)
        Counts from 0 to B.
    """
    votes = np.zeros(design.n_features, np.int64)
    for block in interleaved(design, n_blocks, integer_norm):
        votes[voted(block, target[block.positions], loss, sparsity)] += 1
    return votes


def voted(block: RowsOfBlock, target: Floats, loss: Loss, sparsity: int) -> Integers:
    """Columns of a block's model: a few steps of normalised iterative hard thresholding.

    ``theta <- H_s(theta - eta g)`` on rows centred within the block, with the step that would be
    best on the support for the squared loss, ``eta = |g_S|^2 / mean((X g_S)^2)`` (Blumensath and
    Davies, 2010); for the logistic loss it is short. Vectors are added up by ``fsum`` and by
    compiled loops over the sparse rows, never by a library whose order of adding is its own.

    Parameters
    ----------
    block : RowsOfBlock
        The rows on their own columns.
    target : float64 array, shape (m,)
        Of these rows.
    loss : Loss
        Gives the residual, which is clipped to [-1, 1].
    sparsity : int
        s.

    Returns
    -------
    int64 array
        At most s columns, sorted.
    """
    rows, theta, constant = block.rows, np.zeros(len(block.columns)), 0.0
    if not len(block.columns):
        return block.columns
    for _ in range(_STEPS):
        margins = _centred(rows @ theta) + constant
        residual = np.fmin(np.fmax(loss.residual(margins, target), -1.0), 1.0)
        constant -= _mean(residual)
        gradient = rows.T @ _centred(residual) / len(target)
        support = np.flatnonzero(theta) if theta.any() else _largest(gradient, sparsity)
        along = np.zeros_like(theta)
        along[support] = gradient[support]
        length = math.fsum(along * along)
        if length == 0.0:
            break
        bend = _mean(_centred(rows @ along) ** 2)
        # A residual of 1e-161 leaves a length whose bend is zero.
        step = min(length / bend, _LONGEST_STEP) if bend > 0.0 else _LONGEST_STEP
        moved = theta - step * gradient
        kept = _largest(moved, sparsity)
        theta = np.zeros_like(theta)
        theta[kept] = moved[kept]
    return block.columns[np.flatnonzero(theta)]


def _mean(values: Floats) -> float:
    return math.fsum(values) / len(values)


def _centred(values: Floats) -> Floats:
    return values - _mean(values)


def _largest(values: Floats, count: int) -> Integers:
    """Positions of the largest magnitudes; the lower one wins between equals."""
    magnitude = np.abs(values)
    near = np.arange(len(values))
    if count < len(values):  # sorting all of them would cost more than the steps
        near = np.flatnonzero(magnitude >= np.partition(magnitude, -count)[-count])
    return near[np.argsort(-magnitude[near], kind="stable")[:count]]
