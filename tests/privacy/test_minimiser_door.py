"""Which minimisers the Curator hands out: the one that was charged, with its random vector."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dense_rows import dense_design
from dpfit.design.grid import Grid, RowMap
from dpfit.losses.absolute import Absolute
from dpfit.losses.smoothed import HuberSmoothed
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.charged_releases import Release
from dpfit.privacy.curator import Curator
from dpfit.privacy.events import MinimiserLaw
from dpfit.privacy.mechanisms.noise import NoNoise
from dpfit.privacy.minimiser_release import VectorRelease, plan_minimiser, plan_vector
from dpfit.privacy.objective import Objective
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.private_records import PrivateRecords
from dpfit.privacy.quantity import Quantity

GRID = Grid(1.0, RowMap.CLIP, 20, True)
CHARGED = Objective(HuberSmoothed(0.5, 0.1), 40.0)
WEAKER = Objective(HuberSmoothed(0.5, 0.1), 20.0)
REPLACE_ONE = Adjacency.REPLACE_ONE


def on_grid(beside: VectorRelease | None) -> Release:
    planned = PlannedRelease(
        "it", Quantity.MINIMISER, 1, Fraction(0), laplace=True, objective=CHARGED
    )
    return plan_minimiser(
        planned,
        GRID,
        n_rows=6,
        n_features=2,
        unit_bits=20,
        vector=beside,
        squared_mu=None,
        epsilon=Fraction(1),
        adjacency=REPLACE_ONE,
    )


def vector(objective: Objective) -> VectorRelease:
    law, term = MinimiserLaw.L2, Quantity.OBJECTIVE_TERM
    planned = PlannedRelease("b", term, 1, Fraction(0), objective=objective, law=law)
    return plan_vector(
        planned, GRID, n_features=2, squared_mu=None, epsilon=Fraction(1), adjacency=REPLACE_ONE
    )


def door(*releases: Release) -> Curator:
    X, y = np.eye(6, 2), np.linspace(0.0, 1.0, 6)
    records = PrivateRecords(dense_design(X, GRID), y)
    return Curator(
        records=records, loss=Absolute(), grid=GRID, n_rows=6, releases=releases, noise=NoNoise()
    )


def test_the_charged_one_comes_with_its_vector_or_its_own_noise() -> None:
    """Both ways in which a minimiser may be protected are open."""
    door(on_grid(vector(CHARGED)), vector(CHARGED)).minimiser("it", CHARGED, 0.5)
    door(on_grid(None)).minimiser("it", CHARGED, 0.5)


def test_another_objective_than_charged_is_refused() -> None:
    """A weaker ridge moves further than was paid for, on the grid and in the vector."""
    with pytest.raises(RuntimeError, match="another objective"):
        door(on_grid(vector(CHARGED)), vector(CHARGED)).minimiser("it", WEAKER, 0.5)
    with pytest.raises(RuntimeError, match="another objective"):
        door(on_grid(vector(CHARGED)), vector(WEAKER)).minimiser("it", CHARGED, 0.5)


def test_last_digits_alone_protect_nothing() -> None:
    """The grid's noise for the solver's error is no release without the random vector before it."""
    with pytest.raises(RuntimeError, match="random vector"):
        door(on_grid(vector(CHARGED))).minimiser("it", CHARGED, 0.5)
