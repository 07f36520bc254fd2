"""One unit, with all its rows, moves every released sum by no more than was charged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfit.data.owners import coded
from dpfit.data.rows import RowBlock
from dpfit.design.grid import RowMap
from dpfit.design.storage import IN_MEMORY
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.plan import finest_grid
from dpfit.fitting.request import FitRequest
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.cluster_records import ClusterCollected
from dpfit.privacy.collected_records import CollectedRecords
from dpfit.privacy.declared_facts import DeclaredFacts, Layout
from dpfit.privacy.mechanisms.noise import NoNoise
from dpfit.privacy.owner_release import (
    MOST_ROWS,
    OwnerRule,
    owner_factor,
    plan_owner_release,
)
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.point import Point
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.unit_exchange import UnitExchange, exchanged
from workers_here import WorkersHere

D = 4
N_UNITS = 3
MOST = 3  # rows of a unit that take part
VALUES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 5e-324]),
)
TARGETS = st.one_of(st.floats(0.0, 2.0), st.sampled_from([0.0, 1.0, 2.0, math.nan, 1e308]))
ROWS = st.tuples(st.lists(VALUES, min_size=D, max_size=D), TARGETS, st.floats(0.0, 2.0))
UNITS = st.one_of(
    st.lists(ROWS, min_size=1, max_size=2 * MOST),
    st.builds(lambda row, n: [row] * n, ROWS, st.integers(1, 2 * MOST)),  # the same row again
)
COORDINATES = st.floats(-1e6, 1e6)
CLIP = 0.3
LOSSES = ("logistic", "squared", "huber", "poisson", "multinomial")
K = 3


def fitted(
    units: Sequence[list], request: FitRequest, first: int = 0, readers: Sequence[int] = ()
) -> LinearFit:
    """A planned fit of units, their rows by turns, and their identifiers from a number on; on a
    cluster whose workers read the rows in turn, if it says so."""
    rows = [(i, row) for i, unit in enumerate(units, first) for row in unit]
    rows = rows[::2] + rows[1::2]
    classes = {"logistic": 2, "multinomial": K}.get(str(request.loss))
    targets = np.array([y for _, (_, y, _) in rows])
    if classes:
        targets = np.nan_to_num(np.minimum(targets, 2.0), nan=0.0) // 1 % classes
    offset = np.array([w - 1.0 for _, (_, _, w) in rows])
    block = RowBlock(
        np.arange(0, D * len(rows) + 1, D, dtype=np.int64),
        np.tile(np.arange(D, dtype=np.int32), len(rows)),
        np.array([value for _, (x, _, _) in rows for value in x], np.float64),
        targets,
        offset=offset if request.exposed else None,
        weight=np.array([w for _, (_, _, w) in rows]),
        owner=coded([str(i) for i, _ in rows]),
    )
    if not readers:
        return LinearFit.of(request, [block], layout=Layout, source="units")
    reader = np.resize(readers, len(rows))
    parts = [[block.at(np.flatnonzero(reader == worker))] for worker in range(max(readers) + 1)]
    return LinearFit(request, on_workers(parts, request), layout=Layout, source="units")


def on_workers(parts: Sequence[list[RowBlock]], request: FitRequest) -> ClusterCollected:
    """Rows on a cluster, by the worker that reads them."""
    workers, sides = WorkersHere(len(parts)), []
    for blocks in parts:
        own = CollectedRecords(finest_grid(request), "units", threads=1, storage=IN_MEMORY)
        read = (block for block in blocks if block.n_rows)
        sides.append(UnitExchange(read, own, entries=6, n_workers=len(parts)))
    return ClusterCollected(workers, exchanged(workers, sides))


def asked(loss: str, adjacency: Adjacency, **others: Any) -> FitRequest:
    labels = {"logistic": (0.0, 1.0), "multinomial": (0.0, 1.0, 2.0)}.get(loss)
    declared = DeclaredFacts(
        n_rows=5,
        n_features=D,
        index_base=0,
        labels=labels,
        target_range=None if labels else (0.0, 1.5),
        max_weight=1.5,
        max_exposure=2.0 if loss == "poisson" else None,
        n_owners=N_UNITS,
    )
    request = FitRequest(
        sparsity=None,
        budget=Budget.from_request(2.0, 1e-5, None, None),
        dataset="units",
        algorithm="dp-gd",
        loss=loss,
        exposed=loss == "poisson",
        row_map=RowMap.CLIP,
        adjacency=adjacency,
        declared=declared,
        unit="person",
        max_rows_per_unit=MOST,
    )
    return replace(request, **others)


def point_of(numbers: Sequence[float], loss: str) -> Point:
    if loss != "multinomial":
        return Point(np.array(numbers[:D]), numbers[D])
    table = np.resize(np.array(numbers), (D + 1, K))
    return Point(table[:-1], table[-1], np.zeros(K))


def sums(fit: LinearFit, point: Point) -> list[int]:
    """The integers of a gradient before its noise."""
    released = fit.curator(NoNoise()).gradient("gradient", point, clip=CLIP)
    (release,) = (one for one in fit.plan.releases if one.label == "gradient")
    owners = fit.request.owners
    assert owners is not None
    length = owners.clip * fit.plan.grid.row_norm * CLIP / release.unit / fit.plan.n_rows
    numbers = np.append(released.coefficients.ravel(), np.ravel(released.intercept)) / length
    return [int(value) for value in np.rint(numbers)]


def moved(before: Sequence[int], after: Sequence[int]) -> int:
    return sum((a - b) ** 2 for a, b in zip(before, after, strict=True))


def charged(fit: LinearFit, label: str = "gradient") -> Fraction:
    (event,) = (one for one in fit.plan.events if one.label == label)
    return Fraction(event.squared_sensitivity.under(fit.request.adjacency))


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=25, deadline=None)
@given(
    st.lists(UNITS, min_size=N_UNITS, max_size=N_UNITS),
    UNITS,
    st.lists(COORDINATES, min_size=D + 1, max_size=D + 1),
    st.sampled_from([None, 1.0, 0.01, float(MOST)]),
    st.booleans(),
)
def test_replacing_a_unit_moves_the_sums_within_the_charge(
    loss: str, units: list, other: list, numbers: list, clip: float | None, intercept: bool
) -> None:
    """Whatever rows it has, however many, and however many the other one had."""
    request = asked(loss, Adjacency.REPLACE_ONE, unit_clip=clip, intercept=intercept)
    point = point_of(numbers, loss)
    one, two = fitted(units, request), fitted([other, *units[1:]], request)
    assert moved(sums(one, point), sums(two, point)) <= charged(one)


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=25, deadline=None)
@given(
    st.lists(UNITS, min_size=2, max_size=N_UNITS),
    st.lists(COORDINATES, min_size=D + 1, max_size=D + 1),
)
def test_leaving_a_unit_out_moves_the_sums_within_the_charge(
    loss: str, units: list, numbers: list
) -> None:
    """Add-remove: all its rows are gone, the divisor stays."""
    request = asked(loss, Adjacency.ADD_REMOVE)
    point = point_of(numbers, loss)
    one, two = fitted(units, request), fitted(units[1:], request, 1)
    assert moved(sums(one, point), sums(two, point)) <= charged(one)


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=25, deadline=None)
@given(
    st.lists(UNITS, min_size=N_UNITS, max_size=N_UNITS),
    UNITS,
    st.lists(COORDINATES, min_size=D + 1, max_size=D + 1),
    st.lists(st.integers(0, 4), min_size=1, max_size=9),
)
def test_a_cluster_changes_no_sum(
    loss: str, units: list, other: list, numbers: list, readers: list[int]
) -> None:
    """Whichever workers read a unit's rows it is shrunk once, as a whole: the sums are those of one
    process, and a unit moves them within the charge."""
    request = asked(loss, Adjacency.REPLACE_ONE)
    point = point_of(numbers, loss)
    before, after = (
        sums(fitted(held, request, readers=readers), point) for held in (units, [other, *units[1:]])
    )
    one = fitted(units, request)
    assert before == sums(one, point)
    assert moved(before, after) <= charged(one)


@pytest.mark.parametrize("adjacency", Adjacency)
@settings(max_examples=25, deadline=None)
@given(st.lists(UNITS, min_size=2, max_size=N_UNITS), UNITS)
def test_a_unit_moves_the_sums_of_counts_and_exposures_within_the_charge(
    adjacency: Adjacency, units: list, other: list
) -> None:
    """These are not clipped: at most m rows of a unit count, each from 0 to one unit twice."""
    request = asked("poisson", adjacency)
    left_out = adjacency is Adjacency.ADD_REMOVE
    rest = units[1:] if left_out else [other, *units[1:]]
    request = replace(request, declared=replace(request.declared, n_owners=len(units)))
    one, two = fitted(units, request), fitted(rest, request, int(left_out))
    (release,) = (r for r in one.plan.releases if r.label == "mean rate")
    scale = release.unit * one.plan.n_rows
    before, after = (
        [round(v * scale) for v in fit.curator(NoNoise()).target_and_exposure_means("mean rate")]
        for fit in (one, two)
    )
    assert moved(before, after) <= charged(one, "mean rate")


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_the_bound_is_attained(loss: str) -> None:
    """Units at their clip and opposite to each other reach the charge: no slack is sold."""
    request = asked(loss, Adjacency.REPLACE_ONE, unit_clip=1.0)
    row = [1.0, 0.0, 0.0, 0.0]
    no, yes = [(row, 0.0, 2.0)] * MOST, [(row, 1.0, 2.0)] * MOST
    point = point_of([0.0] * (D + 1), loss)
    one, two = fitted([no, no, no], request), fitted([yes, no, no], request)
    found = moved(sums(one, point), sums(two, point))
    share = 1.0 if loss == "logistic" else 0.75  # two classes of three are 120 degrees apart
    assert found == pytest.approx(share * float(charged(one)), rel=1e-5)


def test_rows_beyond_the_number_that_takes_part_change_nothing() -> None:
    """A unit's sums of all rows and of those chosen alone are the same."""
    chance = np.random.default_rng(0)
    rows = [(chance.standard_normal(D).tolist(), 1.0, 1.0) for _ in range(9)]
    point = point_of([0.3] * (D + 1), "logistic")
    request = asked("logistic", Adjacency.REPLACE_ONE, unit_clip=float(MOST))
    others = [[rows[0]], [rows[1]]]
    found = {
        tuple(sums(fitted([[rows[i] for i in order], *others], request), point))
        for order in (chance.permutation(9) for _ in range(5))
    }
    assert len(found) == 1


@given(
    st.fractions(Fraction(1, 10**10), Fraction(10**3)),
    st.integers(1, 1000),
    st.sampled_from(Adjacency),
    st.sampled_from([Quantity.GRADIENT, Quantity.TARGET_AND_EXPOSURE_SUMS]),
    st.integers(1, 10**6),
    st.integers(1, MOST_ROWS),
)
def test_a_plan_spends_at_most_the_budget_and_nearly_all_of_it(
    squared_mu: Fraction,
    count: int,
    adjacency: Adjacency,
    quantity: Quantity,
    n_units: int,
    most: int,
) -> None:
    """The squared sensitivity over the squared scale of all releases, exactly."""
    planned = PlannedRelease("it", quantity, count, Fraction(1))
    rule = OwnerRule("person", most, 1.0)
    release = plan_owner_release(
        planned, rule, n_owners=n_units, squared_mu=squared_mu, adjacency=adjacency
    )
    event = release.event()
    spent = count * event.squared_sensitivity.under(adjacency) / Fraction(event.scale) ** 2
    assert spent <= squared_mu
    assert spent >= squared_mu * (1 - Fraction(4, release.unit))


def test_what_has_no_form_over_units_is_not_planned() -> None:
    """Votes, selections, means and minimisers."""
    able = {Quantity.OWNER_GRADIENT, Quantity.TARGET_AND_EXPOSURE_SUMS}
    for quantity in set(Quantity) - able:
        with pytest.raises(ValueError, match="no sum over units"):
            owner_factor(quantity, OwnerRule("person", 3, 1.0))
