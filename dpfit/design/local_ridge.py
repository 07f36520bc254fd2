"""Each user's own ridge regression on public item features, for many users at once.

Only element-wise operations, gathers and sums in the order of a user's ratings are used: a user's
numbers are the same bits wherever the user stands and whoever stands beside.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.user_ratings import UserBlock

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_REWEIGHTINGS: Final = 4


def pair_products(features: Floats) -> Floats:
    """Products of each item's features with each other, upper triangle: shape (n, q (q + 1) / 2).

    Parameters
    ----------
    features : float64 array, shape (n, q)
        Item features.
    """
    first, second = np.triu_indices(features.shape[1])
    return features[:, first] * features[:, second]


def solve_block(
    block: UserBlock,
    target: Floats,
    features: Floats,
    products: Floats,
    ridges: Floats,
    *,
    threshold: float | None,
) -> Floats:
    """Coefficients of each user: ``argmin_a sum_j rho(y_j - f_j.a) + sum_l ridge_l a_l^2 / 2``.

    With a threshold rho is Huber's loss, by iteratively reweighted least squares: weights
    ``min(1, threshold / |r|)``, four times after the plain fit.

    Parameters
    ----------
    block : UserBlock
        The users and what they rated.
    target : float64 array, shape (m,)
        y of each rating of the block.
    features : float64 array, shape (n_items, q)
        f.
    products : float64 array, shape (n_items, q (q + 1) / 2)
        Of :func:`pair_products`.
    ridges : float64 array, shape (q,)
        Each > 0.
    threshold : float or None
        Where Huber's loss turns; None for squares.

    Returns
    -------
    float64 array, shape (n_users, q)
    """
    weights = np.ones(len(target))
    solved = _solve_weighted(block, weights, target, features, products, ridges)
    for _ in range(_REWEIGHTINGS if threshold is not None else 0):
        assert threshold is not None
        residual = target - fitted(block, solved, features)
        weights = threshold / np.fmax(np.abs(residual), threshold)
        solved = _solve_weighted(block, weights, target, features, products, ridges)
    return solved


def fitted(block: UserBlock, coefficients: Floats, features: Floats) -> Floats:
    """``f_j.a_i`` for each rating of a block, shape (m,)."""
    return pair_scores(coefficients, block.users, features, block.items)


def pair_scores(
    coefficients: Floats,
    users: Integers,
    features: Floats,
    items: Integers | NDArray[np.int32],
) -> Floats:
    """``f_j.a_i`` of each pair of a user and an item, shape (m,)."""
    terms = coefficients.take(users, axis=0)
    terms *= features.take(items, axis=0)
    return np.asarray(terms.sum(axis=1))


def _solve_weighted(
    block: UserBlock,
    weights: Floats,
    target: Floats,
    features: Floats,
    products: Floats,
    ridges: Floats,
) -> Floats:
    grams = np.asarray(block.matrix(weights) @ products)
    right = np.asarray(block.matrix(weights * target) @ features)
    return _solve_positive(np.ascontiguousarray(grams.T), np.ascontiguousarray(right.T), ridges)


def _solve_positive(grams: Floats, right: Floats, ridges: Floats) -> Floats:
    """``(G + diag(ridges)) a = h`` for each user, by Cholesky over all of them at once.

    Parameters
    ----------
    grams : float64 array, shape (q (q + 1) / 2, n)
        Upper triangles by rows.
    right : float64 array, shape (q, n)
        Overwritten.
    ridges : float64 array, shape (q,)
        What every pivot is at least.
    """
    q = len(ridges)
    place = np.zeros((q, q), np.int64)
    place[np.triu_indices(q)] = np.arange(len(grams))
    lower: list[list[Floats]] = [[] for _ in range(q)]
    roots: list[Floats] = []
    for j in range(q):
        pivot = grams[place[j, j]] + ridges[j]
        for left in lower[j]:
            pivot -= left * left
        root = 1.0 / np.sqrt(np.fmax(pivot, ridges[j]))
        for i in range(j + 1, q):
            entry = grams[place[j, i]].copy()
            for left, other in zip(lower[i], lower[j], strict=True):
                entry -= left * other
            entry *= root
            lower[i].append(entry)
        roots.append(root)
    for j in range(q):
        for k, left in enumerate(lower[j]):
            right[j] -= left * right[k]
        right[j] *= roots[j]
    for j in reversed(range(q)):
        right[j] *= roots[j]
        for k, left in enumerate(lower[j]):
            right[k] -= left * right[j]
    return np.ascontiguousarray(right.T)
