"""The order of events of a fit, and what it takes as public."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import dpfit.fitting.linear_fit as linear_fit
import dpfit.privacy.mechanisms.noise as noise
from dense_rows import dense_block
from dpfit.algorithms.outcome import Outcome
from dpfit.data.rows import RowBlock
from dpfit.errors import DataError, PrivacyError, UsageError
from dpfit.fitting.algorithm_traits import ORIGINALS
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.request import FitRequest
from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.curator import Curator
from dpfit.privacy.declared_facts import DeclaredFacts, Layout
from dpfit.privacy.events import NonPrivateEvent
from dpfit.privacy.mechanisms.noise import NoNoise
from dpfit.privacy.point import Point

BUDGET = Budget.from_request(2.0, 1e-6, None, None)
REQUEST = FitRequest(sparsity=5, budget=BUDGET, dataset="toy")
ALL_DECLARED = DeclaredFacts(n_rows=300, n_features=20, index_base=1, labels=(-1.0, 1.0))


def toy_blocks(labels: tuple[object, ...] = (-1.0, 1.0), base: int = 1) -> Iterator[RowBlock]:
    rng = np.random.default_rng(0)
    values = rng.standard_normal((300, 20))
    codes = (values @ np.linspace(-1, 1, 20) > 0).astype(int)
    kind = object if isinstance(labels[0], str) else np.float64
    target = np.array([labels[code] for code in codes], kind)
    for part in np.array_split(np.arange(300), 3):
        yield dense_block(values[part], target[part], base=base)


def loaded(request: FitRequest = REQUEST, **rows: object) -> LinearFit:
    return LinearFit.of(request, toy_blocks(**rows), layout=Layout, source="toy.svm")


def ignore(*_: object) -> None:
    pass


def fitted(request: FitRequest = REQUEST) -> Outcome:
    return loaded(request).run(ignore, ignore)


def dense(outcome: Outcome) -> np.ndarray:
    coefficients = np.zeros(20)
    coefficients[outcome.columns] = outcome.values
    return coefficients


def same(left: Outcome, right: Outcome) -> bool:
    return np.array_equal(dense(left), dense(right)) and left.intercept == right.intercept


def test_the_key_is_born_after_the_reservation(monkeypatch: pytest.MonkeyPatch) -> None:
    """reserve() returns before any key exists, and before any release."""
    order: list[str] = []

    class Key:
        @staticmethod
        def from_system() -> object:
            order.append("key")
            return real.from_system()

    real = noise.RunKey
    monkeypatch.setattr(noise, "RunKey", Key)
    loaded().run(lambda description: order.append("reserve"), lambda done: order.append("step"))
    assert order[:3] == ["reserve", "key", "step"]
    assert order.count("key") == 1


def test_a_refused_reservation_releases_nothing() -> None:
    """When the charge does not fit, no key is made and no gradient asked."""

    def refuse(description: object) -> None:
        raise PrivacyError("no")

    steps: list[int] = []
    with pytest.raises(PrivacyError):
        loaded().run(refuse, steps.append)
    assert steps == []


def test_two_private_runs_differ_and_two_seeded_ones_do_not() -> None:
    """Noise comes from the system unless a seed is given, which marks the run as not private."""
    assert not same(fitted(), fitted())
    seeded = replace(REQUEST, seed=5)
    assert same(fitted(seeded), fitted(seeded))
    assert not same(fitted(seeded), fitted(replace(REQUEST, seed=6)))
    assert not seeded.private
    assert loaded(seeded).plan.events == [NonPrivateEvent(label="gradient")]


def test_threads_and_declared_facts_do_not_change_a_bit() -> None:
    """The same seed gives the same model for any threads and wherever the facts came from."""
    one = fitted(replace(REQUEST, seed=5, threads=1))
    assert same(one, fitted(replace(REQUEST, seed=5, threads=3)))
    assert same(one, fitted(replace(REQUEST, seed=5, declared=ALL_DECLARED)))


@pytest.mark.parametrize("original", ORIGINALS)
@pytest.mark.parametrize("budget", [0.3, 30.0])
def test_with_noise_zero_it_is_the_original_to_the_last_bit(
    monkeypatch: pytest.MonkeyPatch, original: str, budget: float
) -> None:
    """The private algorithm, its noise silenced, equals the original of the same budget."""
    request = replace(
        REQUEST,
        algorithm=ORIGINALS[original],
        budget=Budget.from_request(budget, 1e-6, None, None),
        sparsity=None if original == "fw" else 5,
    )
    plain = fitted(replace(request, algorithm=original, without_noise=True))
    assert not same(plain, fitted(request))
    monkeypatch.setattr(linear_fit, "noise_of", lambda **asked: NoNoise())
    silenced = fitted(request)
    assert np.array_equal(plain.columns, silenced.columns)
    assert same(plain, silenced)


def test_an_original_is_never_private() -> None:
    """It has no noise whatever budget is given, and the ledger counts it as unbounded."""
    fit = loaded(replace(REQUEST, algorithm="ight", without_noise=True))
    assert not fit.request.private
    assert fit.plan.events == [NonPrivateEvent(label="gradient")]
    assert fit.description()["algorithm"] == "ight"
    assert fit.description()["private"] is False
    with pytest.raises(UsageError, match="without noise"):
        replace(REQUEST, algorithm="ight")


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("iterations", [1, 7, 100])
def test_the_charge_keeps_the_budget(adjacency: Adjacency, iterations: int) -> None:
    """The certified epsilon of the plan's events is at most the one asked for, and near it."""
    plan = loaded(replace(REQUEST, adjacency=adjacency, iterations=iterations)).plan
    epsilon = compose(plan.events, adjacency).epsilon(1e-6)
    assert epsilon <= 2.0
    assert epsilon == pytest.approx(2.0, rel=1e-4)


@pytest.mark.parametrize("algorithm", ["dp-ight", "dp-gd"])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_a_wide_clip_has_room_for_the_refined_steps(algorithm: str, adjacency: Adjacency) -> None:
    """Above tau = 1/2 a replace-one run charges 4 and 2 units, any other run 4 and 1.

    The number under the run's own relation, and so the budget that is spent, stays.
    """
    request = replace(REQUEST, algorithm=algorithm, adjacency=adjacency, iterations=7)
    for clip, refined in ((0.5, False), (0.9, True)):
        [event] = loaded(replace(request, residual_clip=clip)).plan.events
        squares = event.squared_sensitivity
        room = refined and adjacency is Adjacency.REPLACE_ONE
        assert squares.replace_one == (2 if room else 4) * squares.add_remove
        assert compose([event], adjacency).epsilon(1e-6) == pytest.approx(2.0, rel=1e-4)


def test_no_variant_of_dp_ight_changes_the_charge() -> None:
    """Threshold and projection are post-processing; they are recorded as settings."""
    published = loaded().plan
    variant = loaded(replace(REQUEST, threshold="final", projection_radius=2.0)).plan
    assert variant.events == published.events
    assert variant.algorithm.settings()["threshold"] == "final"
    assert variant.algorithm.settings()["projection_radius"] == 2.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threshold": "final", "algorithm": "dp-gd"}, "--threshold is no setting"),
        ({"projection_radius": 1.0, "algorithm": "dp-iht"}, "--projection-radius is no setting"),
        ({"threshold": "never"}, "--threshold 'never' is not known"),
        ({"projection_radius": 0.0}, "--projection-radius must be a positive"),
    ],
)
def test_variants_belong_to_dp_ight(changes: dict, message: str) -> None:
    """Other algorithms, unknown names and empty balls are refused before anything is read."""
    with pytest.raises(UsageError, match=message):
        replace(REQUEST, **changes)


def test_the_stated_noise_scale_is_the_real_one() -> None:
    """The plan's noise scale is the standard deviation of what a release gets."""
    request = replace(REQUEST, iterations=400)
    fit = loaded(request)
    seen: list[np.ndarray] = []
    clip = fit.plan.algorithm.residual_clip

    class Spy:
        name = "spy"

        def settings(self) -> dict[str, float]:
            return {}

        def run(self, curator: Curator, between: object) -> Outcome:
            zero = Point(np.zeros(20), 0.0)
            for _ in range(400):
                seen.append(curator.gradient("gradient", zero, clip=clip).coefficients)
            return Outcome(np.zeros(0, np.int64), np.zeros(0), 0.0)

    fit.plan = replace(fit.plan, algorithm=Spy())
    fit.run(ignore, ignore)
    share = clip * math.hypot(1.0, 0.1) / 300  # of a mean over 300 rows
    stated = fit.plan.noise_multipliers()["gradient"] * share
    assert np.std(seen, axis=0).mean() == pytest.approx(stated, rel=0.05)


def test_assumed_facts_are_listed_and_declared_ones_are_not() -> None:
    """What was read off the data is named as assumed, nothing else."""
    assumed = {fact.name for fact in loaded().plan.facts.assumed()}
    assert assumed == {"rows", "features", "index_base", "labels", "loss"}
    assert loaded(replace(REQUEST, declared=ALL_DECLARED)).plan.facts.assumed() == []


@pytest.mark.parametrize("missing", ["n_rows", "n_features", "index_base", "labels"])
def test_strict_refuses_each_assumption(missing: str) -> None:
    """--strict names the option that declares the fact."""
    declared = replace(ALL_DECLARED, **{missing: None})
    with pytest.raises(PrivacyError, match=r"--strict") as refusal:
        loaded(replace(REQUEST, declared=declared, strict=True, loss="logistic"))
    assert "--" in str(refusal.value.hint)


def test_declared_facts_are_enforced() -> None:
    """A wrong number of rows, a column beyond the width and a strange label are data errors."""
    for wrong in (
        replace(ALL_DECLARED, n_rows=299),
        replace(ALL_DECLARED, n_features=19),
        replace(ALL_DECLARED, labels=(0.0, 1.0)),
    ):
        with pytest.raises(DataError):
            loaded(replace(REQUEST, declared=wrong))


def test_a_declared_number_of_rows_is_a_divisor_under_add_remove() -> None:
    """Under add-remove a different count is no error: an error would tell of a single record."""
    declared = replace(ALL_DECLARED, n_rows=299)
    loaded(replace(REQUEST, declared=declared, adjacency=Adjacency.ADD_REMOVE))


def test_the_positive_label_decides_the_sign() -> None:
    """Naming the other class as positive flips the model, bit by bit without noise."""
    plain = replace(REQUEST, budget=None, without_noise=True, iterations=3)
    up = fitted(replace(plain, positive_label=1.0))
    down = fitted(replace(plain, positive_label=-1.0))
    assert dense(down) == pytest.approx(-dense(up), rel=1e-3, abs=1e-3)


def test_textual_labels_are_classes() -> None:
    """Two texts make a logistic model; the later in order is positive."""
    assert loaded(labels=("no", "yes")).classes == ("no", "yes")


def test_a_target_of_many_values_is_a_regression() -> None:
    """More than two values: squared loss over the assumed range."""

    def blocks() -> Iterator[RowBlock]:
        for block in toy_blocks():
            yield replace(block, target=block.values[::20].copy())

    fit = LinearFit.of(REQUEST, blocks(), layout=Layout, source="toy.svm")
    assert fit.plan.loss.name == "squared"
    assert fit.target_range is not None
    assert "target_range" in {fact.name for fact in fit.plan.facts.assumed()}


@pytest.mark.parametrize(
    "change",
    [
        {"algorithm": "sgd"},
        {"loss": "hinge"},
        {"sparsity": 0},
        {"threads": 0},
        {"iterations": 0},
        {"iterations": 10**9},
        {"step_size": float("nan")},
        {"residual_clip": -1.0},
        {"row_norm": float("inf")},
        {"row_norm": 1e300},
        {"declared": DeclaredFacts(n_rows=0)},
        {"declared": DeclaredFacts(target_range=(1.0, 1.0))},
        {"declared": DeclaredFacts(target_range=(-1e308, 1e308))},
        {"declared": DeclaredFacts(labels=(0.0, 1.0), target_range=(0.0, 1.0))},
        {"declared": DeclaredFacts(labels=(0.0, 1.0)), "loss": "squared"},
        {"declared": DeclaredFacts(target_range=(0.0, 1.0)), "loss": "logistic"},
    ],
    ids=str,
)
def test_a_senseless_request_is_a_usage_error(change: dict[str, object]) -> None:
    """Every setting is checked before anything is read."""
    with pytest.raises(UsageError):
        replace(REQUEST, **change)


@pytest.mark.parametrize("epsilon", [1e-5, 3e-4])
def test_a_hopeless_budget_still_ends_within_its_charge(epsilon: float) -> None:
    """Noise far above the data makes wild column means; the centre stays within a row's length."""

    def blocks() -> Iterator[RowBlock]:
        rng = np.random.default_rng(1)
        columns = np.sort(rng.choice(20_000, (10, 5), replace=True), axis=1) + np.arange(5)
        yield RowBlock(
            np.arange(0, 51, 5, dtype=np.int64),
            columns.astype(np.int32).ravel(),
            rng.random(50),
            np.array([-1.0, 1.0] * 5),
        )

    budget = Budget.from_request(epsilon, 1e-6, None, None)
    declared = replace(ALL_DECLARED, n_rows=10, n_features=20_010, index_base=0)
    request = replace(REQUEST, algorithm="dp-screen", budget=budget, declared=declared, sparsity=5)
    for _ in range(5):
        outcome = LinearFit.of(request, blocks(), layout=Layout, source="x").run(ignore, ignore)
        assert outcome.centring is not None
        assert np.linalg.norm(outcome.centring.centre) <= 1.0 + 1e-9
        assert np.all(np.isfinite(outcome.values))


@pytest.mark.parametrize(
    "chosen",
    [
        {"algorithm": "dp-fw", "sparsity": None},
        {"algorithm": "dp-iht"},
        {"algorithm": "dp-iht", "selection": "peeling"},
    ],
    ids=str,
)
def test_selections_refuse_far_more_records_than_declared(chosen: dict[str, object]) -> None:
    """Before the charge: compared scores must not wrap around, as noised sums may."""
    declared = replace(ALL_DECLARED, n_rows=10)
    request = replace(REQUEST, declared=declared, adjacency=Adjacency.ADD_REMOVE, **chosen)
    fit = loaded(request)  # 300 records: far more than 10, but the scores have room
    huge = replace(fit.plan.releases[0], unit=2**40)
    with pytest.raises(DataError, match="more records"):
        fit._records.check([huge], 1, fit.plan.grid, "toy.svm")


@pytest.mark.parametrize("algorithm", ["dp-ight", "dp-iht", "dp-screen", "dp-gd", "two-stage"])
def test_more_coefficients_than_columns_is_all_columns(algorithm: str) -> None:
    """A sparsity above d asks for d, and the charged run ends with a model."""
    outcome = loaded(replace(REQUEST, algorithm=algorithm, sparsity=500)).run(ignore, ignore)
    assert len(outcome.columns) <= 20


def test_a_tiny_entry_clip_without_intercept_still_has_a_grid() -> None:
    """The entry bound is at least one integer."""
    request = replace(REQUEST, algorithm="dp-iht", entry_clip=1e-9, intercept=False)
    loaded(request).run(ignore, ignore)


@pytest.mark.parametrize("algorithm", ["dp-iht", "dp-fw", "two-stage"])
def test_a_budget_in_mu_for_selections_is_refused_before_reading(algorithm: str) -> None:
    """The request itself refuses: no row needs to be read to know it."""
    budget = Budget.from_request(None, None, None, 0.5)
    sparsity = None if algorithm == "dp-fw" else 5
    with pytest.raises(UsageError, match="Gaussian noise only"):
        replace(REQUEST, algorithm=algorithm, sparsity=sparsity, budget=budget)


def test_a_range_wider_than_numbers_go_is_not_assumed() -> None:
    """Values could not be predicted within it; the refusal comes before the charge."""

    def wide() -> Iterator[RowBlock]:
        for block in toy_blocks():
            yield replace(block, target=block.target * 1e308)

    with pytest.raises(PrivacyError, match="wider"):
        LinearFit.of(replace(REQUEST, loss="squared"), wide(), layout=Layout, source="toy.svm")


@pytest.mark.parametrize("radius", [1e-101, 1e101, 1e308])
def test_a_ball_beyond_usable_numbers_is_refused(radius: float) -> None:
    """Its vertices times a row could leave the floats after the charge."""
    with pytest.raises(UsageError, match="--l1-radius"):
        FitRequest(None, BUDGET, "toy", algorithm="dp-fw", l1_radius=radius)


def test_a_public_number_of_rows_takes_no_memory() -> None:
    """Under add-remove it is only a divisor, as large as one likes."""
    declared = replace(ALL_DECLARED, n_rows=1 << 40)
    asked = replace(REQUEST, adjacency=Adjacency.ADD_REMOVE, declared=declared, iterations=1)
    assert loaded(asked).plan.facts.integer("rows") == 1 << 40
