"""A public scale to try default rules at."""

from __future__ import annotations

from fractions import Fraction

from dpfit.algorithms.default_rule import PublicScale
from dpfit.privacy.adjacency import Adjacency


def text_scale(**changes: object) -> PublicScale:
    """That of a collection of texts: many more columns than rows."""
    facts = {
        "n_rows": 11_314,
        "n_features": 125_552,
        "loss": "logistic",
        "row_norm": 1.0,
        "squared_mu": Fraction(0.448) ** 2,
        "adjacency": Adjacency.REPLACE_ONE,
    }
    return PublicScale(**{**facts, **changes})
