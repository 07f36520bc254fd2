"""Noise as the papers print it: its size, and that what is charged is what it really costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, laplace

from dpfit.data.rows import RowBlock
from dpfit.design.builder import DesignBuilder
from dpfit.design.grid import Grid, RowMap
from dpfit.errors import UsageError
from dpfit.fitting.algorithm_traits import ALGORITHMS
from dpfit.fitting.plan import FitPlan, charge_ahead, plan_fit
from dpfit.fitting.request import FitRequest
from dpfit.fitting.request_checks import check_loss
from dpfit.losses.base import Loss
from dpfit.losses.logistic import Logistic
from dpfit.losses.squared import Squared
from dpfit.privacy.accountant import Cost, compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.curator import Curator
from dpfit.privacy.gaussian_release import GaussianRelease
from dpfit.privacy.laplace_release import LaplaceRelease
from dpfit.privacy.mechanisms.noise import ExactNoise, NoNoise
from dpfit.privacy.peeling_release import PeelingRelease
from dpfit.privacy.point import Point
from dpfit.privacy.printed_noise import PRINTED
from dpfit.privacy.private_records import PrivateRecords
from dpfit.privacy.public_facts import Origin, PublicFact, PublicFacts
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.random_bits import BitSource, RunKey
from dpfit.privacy.selection_release import score_sensitivity

N, D = 20_000, 1_000
FACTS = PublicFacts(
    PublicFact(name, value, Origin.DECLARED, f"--{name}")
    for name, value in (("rows", N), ("features", D))
)
REP, AR = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
PAGE = Path(__file__).resolve().parents[2] / "man" / "sections" / "dpfit-fit.roff"
COARSEST = 1e-4  # what the grid of the noise may add to it

printed_ones = pytest.mark.parametrize(("algorithm", "calibration"), PRINTED)
adjacencies = pytest.mark.parametrize("adjacency", Adjacency)


def request(
    algorithm: str = "dp-ight",
    calibration: str = "paper",
    epsilon: float = 4.0,
    delta: float = 0.01,
    **more: object,
) -> FitRequest:
    sparsity = more.pop("sparsity", 10 if algorithm not in ("dp-gd", "dp-fw") else None)
    return FitRequest(
        sparsity=sparsity,
        budget=more.pop("budget", Budget.from_request(epsilon, delta, None, None)),
        dataset="toy",
        algorithm=algorithm,
        calibration=calibration,
        **more,
    )


def plan(*args: object, loss: Loss | None = None, **more: object) -> FitPlan:
    return plan_fit(request(*args, **more), FACTS, loss or Logistic())


def cost(*args: object, adjacency: Adjacency = REP, **more: object) -> Cost:
    return compose(plan(*args, adjacency=adjacency, **more).events, adjacency)


def shown(value: float, digits: str) -> bool:
    """Whether ``value`` is printed as ``digits``, with a unit of leeway in the last of them."""
    decimals = len(digits.partition(".")[2])
    return abs(value - float(digits)) <= 0.55 * 10.0**-decimals


# --- the tables of methods -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("calibration", "delta", "adjacency", "real"),
    [
        ("paper", 0.01, REP, "1.86 4.30 6.96 9.76 12.66"),
        ("paper", 1e-5, REP, "2.29 4.84 7.53 10.30 13.14"),
        ("paper-corollary", 0.01, REP, "5.43 14.9 27.8 44.3 64.2"),
        ("paper-corollary", 0.01, AR, "2.11 5.43 9.7 14.9 20.9"),
    ],
)
def test_dp_ight_costs_what_the_table_says(
    calibration: str, delta: float, adjacency: Adjacency, real: str
) -> None:
    """Theorem 5.2 and corollary 5.8, whatever the number of steps (methods, 1.2)."""
    for epsilon, digits in zip((2, 4, 6, 8, 10), real.split(), strict=True):
        for steps in (1, 7, 300):
            spent = cost(
                "dp-ight", calibration, epsilon, delta, adjacency=adjacency, iterations=steps
            )
            assert shown(spent.epsilon(delta), digits)


@pytest.mark.parametrize(
    ("epsilon", "ratios"),
    [(0.5, "6.7 9.7 14 23"), (1.0, "6.3 9.1 13.2 21.5"), (4.0, "5.4 7.9 11.4 18.6")],
)
def test_dp_gd_prints_several_times_the_noise_it_needs(epsilon: float, ratios: str) -> None:
    """Printed over exact standard deviation for 5, 10, 20 and 50 steps (methods, 2.2)."""
    for steps, digits in zip((5, 10, 20, 50), ratios.split(), strict=True):
        printed, exact = (
            plan("dp-gd", name, epsilon, 1e-5, iterations=steps).noise_multipliers()["gradient"]
            for name in ("paper", "exact")
        )
        assert shown(printed / exact, digits)


@pytest.mark.parametrize(("epsilon", "ratios"), [(1.0, "13.9 20 29"), (4.0, "12 17.6 25")])
def test_dp_iht_prints_several_times_the_noise_it_needs(epsilon: float, ratios: str) -> None:
    """Printed deviation of a value over the exact one-shot scale, 5 to 20 steps (methods, 2.5)."""
    for steps, digits in zip((5, 10, 20), ratios.split(), strict=True):
        printed, exact = (
            plan("dp-iht", name, epsilon, 1e-5, iterations=steps).noise_multipliers()["support"]
            for name in ("paper", "exact")
        )
        assert shown(math.sqrt(2.0) * printed / exact, digits)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_dp_iht_costs_rounds_and_values_of_one_scale(epsilon: float) -> None:
    """s noisy maxima of eps0, s values and the intercept's of eps0 / 2 each (methods, 2.4)."""
    size, delta = 50, 1e-5
    # The printed lambda is twice what one replaced record moves a score by.
    of_one = epsilon / math.sqrt(3 * size * -math.log(delta)) / 2
    rho = size * of_one**2 / 2 + (size + 1) * (of_one / 2) ** 2 / 2
    spent = cost("dp-iht", "paper", epsilon, delta, iterations=1, sparsity=size, entry_clip=0.1)
    assert spent.rho_bound() == pytest.approx(rho, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("delta", [0.01, 1e-6])
def test_dp_fw_costs_more_than_printed_under_both_relations(epsilon: float, delta: float) -> None:
    """``2 eps + eps^2 / L`` replaced, ``eps + eps^2 / (4 L)`` zeroed, and tighter (methods, 5)."""
    log_inverse = -math.log(delta)
    for adjacency, root in ((REP, 2.0), (AR, 1.0)):
        spent = cost("dp-fw", "paper", epsilon, delta, adjacency=adjacency, iterations=200)
        rho = (root * epsilon) ** 2 / (4 * log_inverse)
        assert spent.rho_bound() == pytest.approx(rho, rel=0.05)
        assert spent.epsilon(delta) <= root * epsilon + rho


def test_the_manual_shows_what_is_charged() -> None:
    """Every number of the manual's table, by real plans."""
    text = PAGE.read_text(encoding="utf-8").replace("\\-", "-")
    head, *lines = text.partition("\nasked ")[2].partition("\n.EE")[0].splitlines()
    asked = [float(word) for word in head.split()[1:]]
    assert len(lines) == 14
    for line in lines:
        name, relation, delta, *real = line.split()
        of = (name, "paper") if name in ALGORITHMS else ("dp-ight", name)
        size = {"sparsity": 50} if ALGORITHMS[of[0]].sparsity else {}
        for epsilon, digits in zip(asked, real, strict=True):
            adjacency = Adjacency(relation)
            spent = cost(
                *of, epsilon, float(delta), adjacency=adjacency, iterations=20, **size
            ).epsilon(float(delta))
            assert shown(spent, digits)


# --- the noise is the printed one ----------------------------------------------------------------


def printed_scale(
    name: tuple[str, str], T: int, s: int, n: int, eta: float, G: float, entry: float
) -> float:
    """What the papers print for epsilon 3, delta 1e-5, in their constants, on a step."""
    eps, delta, L = 3.0, 1e-5, math.log(1e5)
    if name == ("dp-ight", "paper"):
        rho = (math.sqrt(eps + L) - math.sqrt(L)) ** 2
        return eta * math.sqrt(T * G**2 / (n**2 * rho))
    if name == ("dp-ight", "paper-corollary"):
        return eta * math.sqrt(T * G**2 * L / (n * eps) ** 2)
    if name == ("dp-gd", "paper"):
        B_root_d = 4 * G  # 4 (R + c1) sigma_x sqrt(d)
        variance = eta**2 * 2 * B_root_d**2 * math.log(2 * T / delta) / (n**2 * (eps / T) ** 2)
        return math.sqrt(variance)
    if name == ("dp-iht", "paper"):
        lam = eta * 4 * entry / n
        return lam * 2 * math.sqrt(3 * s * math.log(T / delta)) / (eps / T)
    return eta * entry * math.sqrt(8 * T * L) / (n * eps)  # C is the length of a step here


@printed_ones
@adjacencies
@pytest.mark.parametrize("intercept", [True, False])
def test_the_noise_is_the_printed_one(
    algorithm: str, calibration: str, adjacency: Adjacency, intercept: bool
) -> None:
    """To the grid, never less, and the same under both relations: only the charge differs."""
    tau, steps, size = 0.3, 9, 7
    made = plan(
        algorithm,
        calibration,
        3.0,
        1e-5,
        adjacency=adjacency,
        iterations=steps,
        residual_clip=tau,
        row_norm=2.0,
        entry_clip=0.25,
        intercept=intercept,
        **({"sparsity": size} if ALGORITHMS[algorithm].sparsity else {}),
    )
    norm = 2.0 * math.hypot(1.0, 0.1 if intercept else 0.0)
    wanted = printed_scale(
        (algorithm, calibration), steps, size, N, 1.7, norm * tau, 2.0 * 0.25 * tau
    )
    kinds = {type(release) for release in made.releases}
    assert kinds <= {GaussianRelease, LaplaceRelease, PeelingRelease}
    for release in made.releases:
        step = 1.7 * made.grid.unit * tau / release.unit / N
        drawn = math.ldexp(step, release.scale_bits)
        assert 1 - 1e-6 <= drawn / wanted <= 1 + COARSEST  # 1e-6: the intercept's integer


@adjacencies
def test_values_on_many_columns_keep_the_printed_noise(adjacency: Adjacency) -> None:
    """Also where the record's norm, not its largest entries, bounds what the values cost."""
    for size in (1, 30, 900):
        made = plan("dp-iht", adjacency=adjacency, iterations=3, sparsity=size, entry_clip=1.0)
        support, values = made.releases
        scales = [math.ldexp(1.0, one.scale_bits) / one.unit for one in (support, values)]
        assert scales[1] == pytest.approx(scales[0], rel=COARSEST)


def test_no_step_undercuts_the_printed_noise() -> None:
    """Logistic steps are refined for the budget's exact noise only."""
    wide = {"iterations": 5, "residual_clip": 1.0}
    (exact,), (printed,) = (
        plan("dp-ight", name, **wide).releases for name in ("exact", "paper-corollary")
    )
    assert exact.refined
    assert not printed.refined
    z = math.sqrt(5 * math.log(100)) / 4
    assert printed.noise_multiplier == pytest.approx(z, rel=COARSEST)


def test_the_budget_alone_is_asked_for_by_default() -> None:
    """Without the option the noise is that of the budget."""
    assert FitRequest(sparsity=1, budget=Budget(mu=1.0), dataset="toy").calibration == "exact"
    spent = cost("dp-ight", "exact").epsilon(0.01)
    assert spent <= 4.0
    assert spent == pytest.approx(4.0, rel=1e-4)


# --- before the data -----------------------------------------------------------------------------


@printed_ones
@adjacencies
def test_the_charge_ahead_of_reading_is_the_real_one(
    algorithm: str, calibration: str, adjacency: Adjacency
) -> None:
    """With the number of steps given, and for dp-ight without; else it claims nothing."""
    for steps in (None, 1, 40):
        of = {"adjacency": adjacency, "iterations": steps}
        ahead = charge_ahead(request(algorithm, calibration, **of))
        if steps is None and algorithm != "dp-ight":
            assert ahead == []
            continue
        real = cost(algorithm, calibration, **of).rho_bound()
        assert compose(ahead, adjacency).rho_bound() == pytest.approx(real, rel=1e-3)


# --- what has no printed noise -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"algorithm": "dp-screen"}, "--algo dp-screen has no --calibration paper"),
        ({"algorithm": "two-stage"}, "--algo two-stage has no --calibration paper"),
        ({"algorithm": "dp-gd", "calibration": "paper-corollary"}, "--algo dp-gd has no"),
        ({"algorithm": "ight", "without_noise": True}, "without noise"),
        ({"without_noise": True}, "without noise"),
        ({"budget": Budget(rho=0.1, delta=1e-6)}, "--eps and --delta"),
        ({"budget": Budget(mu=0.1)}, "--eps and --delta"),
        ({"algorithm": "dp-iht", "selection": "one-shot"}, "--selection peeling"),
        ({"loss": "poisson"}, "no paper prints"),
        ({"calibration": "paper-corollary", "loss": "squared"}, "belongs to --loss logistic"),
        ({"calibration": "printed"}, "is not known"),
    ],
)
def test_what_no_paper_prints_is_refused(change: dict, told: str) -> None:
    """A usage error, before anything is read."""
    with pytest.raises(UsageError, match=told):
        request(**change)


def test_a_loss_that_no_paper_prints_is_refused_once_it_is_known() -> None:
    """The target may tell the loss only when it was read."""
    for calibration, loss in (
        ("paper", "poisson"),
        ("paper-corollary", "squared"),
        ("paper-corollary", "multinomial"),
    ):
        with pytest.raises(UsageError):
            check_loss(request(calibration=calibration), loss)
    assert cost("dp-ight", loss=Squared()).epsilon(0.01) == pytest.approx(4.30, abs=0.005)
    assert plan("dp-iht", selection="peeling").algorithm.settings()["selection"] == "peeling"


# --- the vertex under Laplace noise --------------------------------------------------------------


def door(release: PeelingRelease, noise: NoNoise | ExactNoise, row: Sequence[float]) -> Curator:
    """One record of a class that pulls along its row."""
    d = len(row)
    grid = Grid(1.0, RowMap.NORMALIZE, 20, False)
    builder = DesignBuilder(grid)
    indptr, columns = np.array([0, d], np.int64), np.arange(d, dtype=np.int32)
    builder.collect([RowBlock(indptr, columns, np.array(row), None)])
    design = builder.build(d, grid=grid, index_base=0)
    return Curator(
        records=PrivateRecords(design, np.array([1.0])),
        loss=Logistic(),
        grid=grid,
        n_rows=1,
        releases=[release],
        noise=noise,
    )


def vertex_release(count: int, scale_bits: int) -> PeelingRelease:
    sensitivity = score_sensitivity(Quantity.SELECTION, Grid(1.0, RowMap.NORMALIZE, 20, False))
    return PeelingRelease("vertex", sensitivity, 1 << 20, scale_bits, 1, count)


def test_a_vertex_under_laplace_noise_has_the_law_of_a_noisy_maximum() -> None:
    """All signed coordinates have noise of their own: counts agree with the integrals.

    The key is fixed; a fresh one fails with probability below 1e-9 (exact binomial tails).
    """
    row, runs, bits = (0.6, -0.8, 0.0), 4_000, 39
    asked = door(vertex_release(runs, bits), ExactNoise(BitSource(RunKey.from_seed(5))), row)
    zero = Point(np.zeros(3), 0.0)
    vertices = [asked.steepest_vertex("vertex", zero, clip=0.5) for _ in range(runs)]
    # The residual is -1/2 and the integers of the row and of the residual are at 2^20 each.
    sums = -np.append(row, 0.0) * 2.0 ** (40 - bits)
    scores = np.concatenate([sums, -sums])
    for index, (sign, column) in enumerate(product((-1, 1), range(4))):
        others = np.delete(scores, index)
        chance = quad(
            lambda x, q=scores[index], rest=others: (
                laplace.pdf(x - q) * np.prod(laplace.cdf(x - rest))
            ),
            -40,
            40,
            points=sorted({*scores}),
        )[0]
        seen = vertices.count((column, sign))
        assert binom.cdf(seen, runs, chance) > 1e-9 / 16
        assert binom.sf(seen - 1, runs, chance) > 1e-9 / 16


def test_without_noise_the_vertex_is_the_steepest() -> None:
    """As under Gumbel noise: column and sign of the largest fall."""
    for row, vertex in (((0.6, -0.8), (1, -1)), ((0.8, 0.6), (0, 1)), ((-0.8, 0.6), (0, -1))):
        asked = door(vertex_release(1, 10), NoNoise(), row)
        assert asked.steepest_vertex("vertex", Point(np.zeros(2), 0.0), clip=0.5) == vertex
