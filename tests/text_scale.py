"""A public scale to try default rules at."""

from __future__ import annotations

from dpfit.algorithms.default_rule import PublicScale
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget


def text_scale(**changes: object) -> PublicScale:
    """That of a collection of texts: many more columns than rows."""
    facts = {
        "n_rows": 11_314,
        "n_features": 125_552,
        "loss": "logistic",
        "row_norm": 1.0,
        "budget": Budget(mu=0.448),
        "adjacency": Adjacency.REPLACE_ONE,
    }
    return PublicScale(**{**facts, **changes})
