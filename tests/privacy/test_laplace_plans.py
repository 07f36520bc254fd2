"""Peeling and Laplace releases: what their plans cost."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpfit.design.grid import Grid, RowMap
from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.conversion import pure_epsilon, pure_rho
from dpfit.privacy.laplace_release import plan_laplace
from dpfit.privacy.peeling_release import plan_peeling
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.selection_release import plan_selection

PLANS = {
    "peeling": (plan_peeling, Quantity.SELECTION),
    "one-shot": (plan_selection, Quantity.SELECTION),
    "votes": (plan_selection, Quantity.VOTES),
    "values": (plan_laplace, Quantity.PARTIAL_GRADIENT),
}


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("entry_clip", [1.0, 0.2, 0.01])
@pytest.mark.parametrize(("count", "chosen"), [(1, 1), (30, 50)])
@pytest.mark.parametrize("rho", ["1/10000", "1/10", "3"])
def test_a_plan_spends_its_rho_and_no_more(
    name: str, adjacency: Adjacency, entry_clip: float, count: int, chosen: int, rho: str
) -> None:
    """The accountant's cost is at most the part and within 0.1 % of it."""
    plan, quantity = PLANS[name]
    grid = Grid(1.0, RowMap.NORMALIZE, 20, True, entry_clip)
    planned = PlannedRelease("it", quantity, count, Fraction(1), chosen)
    release = plan(planned, grid, unit_bits=20, rho=Fraction(rho), adjacency=adjacency)
    spent = compose([release.event()], adjacency).rho
    assert spent <= Fraction(rho)
    assert spent >= Fraction(rho) * Fraction(999, 1000)


@pytest.mark.parametrize("rho", [Fraction(1, 10**15), Fraction(1, 7), Fraction(5), Fraction(10**5)])
def test_the_epsilon_of_a_rho_is_the_largest(rho: Fraction) -> None:
    """pure_epsilon inverts pure_rho from below."""
    epsilon = Fraction(pure_epsilon(rho))
    assert pure_rho(epsilon) <= rho
    assert pure_rho(epsilon * Fraction(1_000_001, 1_000_000)) > rho
