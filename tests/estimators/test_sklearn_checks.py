"""The estimators keep scikit-learn's contracts, but for those listed with their reasons.

``tests/benchmarks/sklearn_releases.py`` shows the same for several releases.
"""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator

from sklearn_contracts import KINDS, REPEATABLE, estimator, expected_failures

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("fit", REPEATABLE)
@pytest.mark.parametrize("kind", KINDS)
def test_checks_of_repeatable_fits(kind: Any, fit: str) -> None:
    """Every check passes but those of weights; these do fail, so none is listed in vain."""
    wanted = expected_failures(kind, fit)
    results = check_estimator(estimator(kind, fit), expected_failed_checks=wanted, on_skip=None)
    assert {one["check_name"] for one in results if one["status"] == "xfail"} == set(wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_checks_of_private_fits(kind: Any) -> None:
    """Every check passes but those of weights and those that compare two fits."""
    wanted = expected_failures(kind, "private")
    check_estimator(estimator(kind, "private"), expected_failed_checks=wanted, on_skip=None)
