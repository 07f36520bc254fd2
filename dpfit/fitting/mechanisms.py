"""The mechanisms of a run: what an algorithm plans to ask, with the noise that its budget buys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpfit.algorithms.base import Algorithm
from dpfit.design.grid import Grid
from dpfit.fitting.division import Allowance, divide
from dpfit.fitting.request import FitRequest
from dpfit.losses.base import Loss
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.charged_releases import Release
from dpfit.privacy.gaussian_release import plan_release
from dpfit.privacy.laplace_release import plan_laplace
from dpfit.privacy.logistic_sensitivity import may_refine
from dpfit.privacy.minimiser_release import VectorRelease, plan_minimiser, plan_vector
from dpfit.privacy.owner_release import OwnerRule, plan_owner_release
from dpfit.privacy.peeling_release import plan_peeling
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.printed_noise import PRINTED, real_cost
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.selection_release import plan_selection


@dataclass(frozen=True)
class PublicShape:
    """The public numbers that sensitivities depend on.

    Attributes
    ----------
    grid : Grid
        The record map.
    unit_bits : int
        Upper bound on the bits of a release's unit.
    n_rows, n_features : int
        n and d.
    owners : OwnerRule, optional
        Where the guarantee is for units that own several records.
    n_owners : int
        Their number.
    """

    grid: Grid
    unit_bits: int
    n_rows: int
    n_features: int
    owners: OwnerRule | None = None
    n_owners: int = 0


def mechanisms(
    algorithm: Algorithm, request: FitRequest, shape: PublicShape, refining: Loss | None
) -> list[Release]:
    """Each planned release as a mechanism; a loss may refine the steps of its gradients."""
    planned = algorithm.planned()
    releases: list[Release] = []
    vector: VectorRelease | None = None
    for one, allowance in zip(planned, _allowances(planned, request, shape), strict=True):
        refined = refining is not None and may_refine(one, refining)
        release = mechanism(
            one, shape, allowance, request.adjacency, refined=refined, vector=vector
        )
        if isinstance(release, VectorRelease):
            vector = release
        releases.append(release)
    return releases


def _allowances(
    planned: Sequence[PlannedRelease], request: FitRequest, shape: PublicShape
) -> list[Allowance]:
    """Its part of the budget for each release, or what its printed noise costs."""
    if request.budget is None or not request.printed:
        return divide(planned, request.budget, request.adjacency)
    multiple = PRINTED[request.algorithm, request.calibration]
    asked = request.budget.approximate()
    return [
        Allowance(real_cost(one, shape.grid, multiple(one, *asked), request.adjacency))
        for one in planned
    ]


def mechanism(
    planned: PlannedRelease,
    shape: PublicShape,
    allowance: Allowance,
    adjacency: Adjacency,
    *,
    refined: bool = False,
    vector: VectorRelease | None = None,
) -> Release:
    """The mechanism of a planned release that spends its allowance.

    A minimiser's depends on the random vector planned before it.
    """
    grid, unit_bits = shape.grid, shape.unit_bits
    squared_mu, epsilon = allowance.squared_mu, allowance.epsilon
    if shape.owners is not None:
        return plan_owner_release(
            planned,
            shape.owners,
            n_owners=shape.n_owners,
            squared_mu=squared_mu,
            adjacency=adjacency,
        )
    rho = None if squared_mu is None else squared_mu / 2
    match planned.quantity:
        case Quantity.OBJECTIVE_TERM | Quantity.MINIMISER_SHIFT:
            return plan_vector(
                planned,
                grid,
                n_features=shape.n_features,
                squared_mu=squared_mu,
                epsilon=epsilon,
                adjacency=adjacency,
            )
        case Quantity.MINIMISER:
            return plan_minimiser(
                planned,
                grid,
                n_rows=shape.n_rows,
                n_features=shape.n_features,
                unit_bits=unit_bits,
                vector=vector,
                squared_mu=squared_mu,
                epsilon=epsilon,
                adjacency=adjacency,
            )
    if planned.selects and planned.laplace:
        return plan_peeling(planned, grid, unit_bits=unit_bits, rho=rho, adjacency=adjacency)
    if planned.selects or planned.laplace:
        plan = plan_selection if planned.selects else plan_laplace
        return plan(
            planned, grid, unit_bits=unit_bits, rho=rho, epsilon=epsilon, adjacency=adjacency
        )
    return plan_release(
        planned,
        grid,
        unit_bits=unit_bits,
        squared_mu=squared_mu,
        adjacency=adjacency,
        refined=refined,
    )
