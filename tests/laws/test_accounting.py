"""Laws every kind of event obeys, and the files it is written to."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfit.privacy import conversion
from dpfit.privacy.accountant import INFINITE, NOTHING, Cost, compose, cost_of_one
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.events import (
    BoundedRangeEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    MinimiserEvent,
    MinimiserLaw,
    NonPrivateEvent,
    PureEvent,
    ZcdpEvent,
    event_from_json,
)

DELTA = 1e-6
REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
SMALL = st.fractions(min_value=Fraction(1, 10**9), max_value=50)


def pairs(values: st.SearchStrategy[Fraction]) -> st.SearchStrategy[PerAdjacency[Fraction]]:
    return st.builds(PerAdjacency, replace_one=values, add_remove=values)


COMMON = {
    "label": st.text("abc xyz-é", min_size=1, max_size=20),
    "count": st.integers(1, 50),
}
GAUSSIAN = st.builds(
    GaussianEvent,
    squared_sensitivity=st.builds(
        PerAdjacency, replace_one=st.integers(1, 2**90), add_remove=st.integers(1, 2**90)
    ),
    scale=st.integers(1, 2**60),
    **COMMON,
)


@st.composite
def laplace(draw: st.DrawFn) -> LaplaceEvent:
    largest = st.builds(
        PerAdjacency, replace_one=st.integers(1, 2**60), add_remove=st.integers(1, 2**60)
    )
    l1 = draw(largest)
    squared = PerAdjacency(
        replace_one=draw(st.integers(1, l1.replace_one**2)),
        add_remove=draw(st.integers(1, l1.add_remove**2)),
    )
    common = {name: draw(values) for name, values in COMMON.items()}
    scale = draw(st.integers(1, 2**60))
    return LaplaceEvent(l1_sensitivity=l1, squared_sensitivity=squared, scale=scale, **common)


ZCDP = st.builds(ZcdpEvent, rho=pairs(SMALL), **COMMON)
PURE = st.builds(PureEvent, epsilon=pairs(SMALL), **COMMON)
BOUNDED = st.builds(BoundedRangeEvent, eta=pairs(SMALL), **COMMON)
NON_PRIVATE = st.builds(NonPrivateEvent, **COMMON)
MINIMISER = st.builds(
    MinimiserEvent,
    law=st.sampled_from(MinimiserLaw),
    sensitivity=pairs(SMALL),
    scale=SMALL,
    jacobian=pairs(st.just(Fraction(0)) | SMALL),
    **COMMON,
)
ANY = st.one_of(GAUSSIAN, laplace(), ZCDP, PURE, BOUNDED, MINIMISER, NON_PRIVATE)
ADJACENCY = st.sampled_from(Adjacency)


def times(event: Event, count: int) -> Event:
    return dataclasses.replace(event, count=count)


def fractions(numerator: int, denominator: int = 1) -> PerAdjacency[Fraction]:
    half = Fraction(numerator, 2 * denominator)
    return PerAdjacency(replace_one=2 * half, add_remove=half)


def minimiser(law: MinimiserLaw, scale: int | Fraction, jacobian: int = 1) -> MinimiserEvent:
    return MinimiserEvent(
        label="m",
        law=law,
        sensitivity=fractions(3),
        scale=Fraction(scale),
        jacobian=fractions(jacobian, 10**9),
    )


def ints(value: int) -> PerAdjacency[int]:
    return PerAdjacency(replace_one=4 * value, add_remove=value)


# Each kind of event as a function of a noise level.
NOISY: dict[str, Callable[[int], Event]] = {
    "gaussian": lambda s: GaussianEvent(label="g", squared_sensitivity=ints(2), scale=s),
    "laplace": lambda s: LaplaceEvent(
        label="l", l1_sensitivity=ints(3), squared_sensitivity=ints(2), scale=s
    ),
    "zcdp": lambda s: ZcdpEvent(label="z", rho=fractions(1, s)),
    "pure": lambda s: PureEvent(label="p", epsilon=fractions(3, s)),
    "bounded-range": lambda s: BoundedRangeEvent(label="b", eta=fractions(3, s)),
    "minimiser l2": lambda s: minimiser(MinimiserLaw.L2, s),
    "minimiser l1": lambda s: minimiser(MinimiserLaw.L1, s),
    "minimiser gaussian": lambda s: minimiser(MinimiserLaw.GAUSSIAN, s),
}


# --- addition ------------------------------------------------------------------------------------


@given(event=ANY, adjacency=ADJACENCY, count=st.integers(1, 40))
@settings(deadline=None)
def test_a_count_of_k_is_k_single_events(event: Event, adjacency: Adjacency, count: int) -> None:
    single = times(event, 1)
    assert compose([times(event, count)], adjacency) == compose([single] * count, adjacency)


@given(event=ANY, adjacency=ADJACENCY, outer=st.integers(1, 9), inner=st.integers(1, 9))
@settings(deadline=None)
def test_nested_counts_multiply(event: Event, adjacency: Adjacency, outer: int, inner: int) -> None:
    nested = compose([times(event, inner)] * outer, adjacency)
    flat = compose([times(event, outer * inner)], adjacency)
    assert nested == flat == outer * compose([times(event, inner)], adjacency)


@given(events=st.lists(ANY, max_size=5), adjacency=ADJACENCY, data=st.data())
@settings(deadline=None)
def test_order_and_grouping_do_not_matter(
    events: list[Event], adjacency: Adjacency, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(events))
    cut = data.draw(st.integers(0, len(events)))
    whole = compose(events, adjacency)
    assert compose(shuffled, adjacency) == whole
    assert compose(events[:cut], adjacency) + compose(events[cut:], adjacency) == whole


def test_nothing_costs_nothing() -> None:
    assert compose([], REPLACE) == NOTHING
    assert NOTHING.epsilon(0.0) == NOTHING.epsilon(DELTA) == NOTHING.delta(0.0) == 0.0
    assert NOTHING.mu() == NOTHING.rho_bound() == 0.0


@given(event=ANY, adjacency=ADJACENCY)
@settings(deadline=None)
def test_no_event_costs_zero(event: Event, adjacency: Adjacency) -> None:
    """Every bound of every event is positive or unknown, and the final delta is positive."""
    cost = cost_of_one(event, adjacency)
    assert all(part is None or part > 0 for part in (cost.gaussian, cost.rho))
    assert cost.noise is None or cost.pure is None or cost.noise + cost.pure > 0
    assert compose([event], adjacency).delta(0.0) > 0.0


@given(event=ANY, adjacency=ADJACENCY, more=st.lists(ANY, max_size=2))
@settings(deadline=None)
def test_one_more_event_never_costs_less(
    event: Event, adjacency: Adjacency, more: list[Event]
) -> None:
    less = compose(more, adjacency)
    total = compose([*more, event], adjacency)
    assert total.epsilon(DELTA) >= less.epsilon(DELTA) * (1 - 2e-9)
    assert total.delta(1.0) >= less.delta(1.0) * (1 - 2e-9)


@pytest.mark.parametrize("kind", NOISY)
@pytest.mark.parametrize("count", [1, 7, 100])
def test_more_noise_never_costs_more(kind: str, count: int) -> None:
    levels = [1, 2, 3, 5, 10, 11, 100, 1000, 1001, 10**6]
    for adjacency in Adjacency:
        costs = [compose([times(NOISY[kind](s), count)], adjacency) for s in levels]
        for low, high in itertools.pairwise(costs):
            assert high.epsilon(DELTA) <= low.epsilon(DELTA)
            assert high.delta(0.5) <= low.delta(0.5)
            assert high.mu() <= low.mu()
            assert high.rho_bound() <= low.rho_bound()


@pytest.mark.parametrize("kind", NOISY)
def test_repeating_really_costs(kind: str) -> None:
    """The bug to avoid: a hundred selections charged as one."""
    event = NOISY[kind](1000)
    one, hundred = (compose([times(event, k)], REPLACE).epsilon(DELTA) for k in (1, 100))
    assert hundred > 9 * one


def test_a_million_applications_are_cheap_to_account() -> None:
    assert compose([times(NOISY["gaussian"](10**6), 10**6)], ADD).gaussian == Fraction(2, 10**6)


# --- kinds ---------------------------------------------------------------------------------------


def test_gaussian_cost_is_the_exact_fraction() -> None:
    event = GaussianEvent(label="g", squared_sensitivity=ints(12345), scale=2**40, count=30)
    cost = compose([event], REPLACE)
    assert cost.gaussian == Fraction(30 * 4 * 12345, 2**80)
    assert cost.rho == cost.gaussian / 2
    assert cost.noise == cost.gaussian
    assert cost.epsilon(0.0) == math.inf


def test_replace_one_mu_is_exactly_twice_add_remove() -> None:
    event = GaussianEvent(label="g", squared_sensitivity=ints(987654321), scale=2**30, count=49)
    replace, add = compose([event], REPLACE), compose([event], ADD)
    assert replace.gaussian == 4 * add.gaussian
    assert replace.mu() == 2 * add.mu()


@pytest.mark.parametrize(("l1", "squared"), [(3, 9), (100, 100), (100, 2500)])
@pytest.mark.parametrize("scale", [1, 2, 100, 10**5])
def test_laplace_is_pure_in_l1_and_concentrated_in_l2(l1: int, squared: int, scale: int) -> None:
    """Pure l1/b; as zCDP the least of that epsilon's and l2^2/(2 b^2)."""
    event = LaplaceEvent(
        label="l", l1_sensitivity=ints(l1), squared_sensitivity=ints(squared), scale=scale, count=5
    )
    epsilon = PerAdjacency(replace_one=Fraction(4 * l1, scale), add_remove=Fraction(l1, scale))
    as_pure = PureEvent(label="p", epsilon=epsilon, count=5)
    for adjacency in Adjacency:
        cost, pure = compose([event], adjacency), compose([as_pure], adjacency)
        by_l2 = Fraction(5 * ints(squared).under(adjacency), 2 * scale**2)
        assert cost.pure == pure.pure == Fraction(5 * ints(l1).under(adjacency), scale)
        assert cost.gaussian == pure.gaussian
        assert pure.rho is not None
        assert cost.rho == min(by_l2, pure.rho)


def test_an_l2_sensitivity_above_the_l1_sensitivity_is_refused() -> None:
    """No vector has one: the numbers were swapped, or the l1 sensitivity is too small."""
    event = LaplaceEvent(label="l", l1_sensitivity=ints(1), squared_sensitivity=ints(1), scale=1)
    fields = event.to_json()
    for adjacency in Adjacency:
        pair = {"replace-one": 16, "add-remove": 1} | {str(adjacency): 17}
        with pytest.raises(ValueError, match="at most l1_sensitivity squared"):
            event_from_json(fields | {"squared_sensitivity": pair})


def test_pure_stays_pure_when_everything_is_pure() -> None:
    events = [NOISY["pure"](10), NOISY["bounded-range"](20)]
    cost = compose(events, REPLACE)
    assert cost.pure == Fraction(3, 10) + Fraction(3, 20)
    assert cost.epsilon(0.0) == 0.45
    assert cost.delta(0.45) == 0.0
    assert cost.delta(0.44) > 0.0
    assert compose([*events, NOISY["gaussian"](10**9)], REPLACE).epsilon(0.0) == math.inf


def test_a_pure_release_moves_the_gaussian_curve_by_its_epsilon() -> None:
    """A coarse release beside fine noise: no common currency comes near, the sum does."""
    noise, pure = NOISY["gaussian"](10), NOISY["pure"](1)
    cost, alone = compose([noise, pure], REPLACE), compose([noise], REPLACE)
    assert cost.epsilon(DELTA) == pytest.approx(3 + alone.epsilon(DELTA), rel=1e-12)
    assert cost.delta(4.0) == pytest.approx(alone.delta(1.0), rel=1e-12)
    assert cost.epsilon(DELTA) < conversion.zcdp_epsilon(cost.rho_bound(), DELTA) / 2
    assert compose([noise, pure, NOISY["zcdp"](100)], REPLACE).pure is None


def test_many_small_pure_releases_beat_the_sum() -> None:
    cost = compose([times(NOISY["pure"](300), 1000)], REPLACE)
    assert cost.pure == 10
    assert cost.epsilon(DELTA) < 2.0


def test_zcdp_only_events_use_zcdp() -> None:
    cost = compose([NOISY["gaussian"](50), NOISY["zcdp"](100)], REPLACE)
    assert cost.gaussian is None
    assert cost.mu() == math.inf
    assert cost.rho == Fraction(8, 2500) / 2 + Fraction(1, 100)
    assert 0 < cost.epsilon(DELTA) < math.inf


def test_gaussian_with_a_little_selection_stays_on_the_gaussian_curve() -> None:
    """exactness.md 7: either composition is valid, and each wins somewhere."""
    little = compose([NOISY["gaussian"](1), NOISY["bounded-range"](100)], REPLACE)
    assert little.gaussian is not None
    assert little.epsilon(DELTA) == conversion.gaussian_epsilon(little.mu(), DELTA)
    much = compose([NOISY["gaussian"](1000), times(NOISY["bounded-range"](100), 100)], REPLACE)
    assert much.epsilon(DELTA) == conversion.zcdp_epsilon(much.rho_bound(), DELTA)
    assert much.epsilon(DELTA) < conversion.gaussian_epsilon(much.mu(), DELTA)


@pytest.mark.parametrize("field", ["gaussian", "rho", "noise", "pure"])
def test_a_cost_is_never_negative_nor_partly_infinite(field: str) -> None:
    unknown = {"gaussian": None, "rho": None, "noise": None, "pure": None, "doublings": 0}
    with pytest.raises(ValueError, match="not a cost"):
        Cost(**unknown | {field: Fraction(-1)})
    with pytest.raises(ValueError, match="not a cost"):
        Cost(**unknown | {field: Fraction(1)}, infinite=True)


def test_non_private_is_infinite_whatever_else_happens() -> None:
    cost = compose([NOISY["pure"](10), NonPrivateEvent(label="seeded")], REPLACE)
    assert cost == INFINITE
    assert cost.infinite
    assert cost.epsilon(0.5) == cost.mu() == cost.rho_bound() == math.inf
    assert cost.delta(1e300) == 1.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stranger(Event):
    mechanism = "gaussian"


@pytest.mark.parametrize("count", [1, 3])
def test_an_unknown_kind_is_refused(count: int) -> None:
    stranger = Stranger(label="?", count=count)
    with pytest.raises(TypeError, match="unknown kind of event: Stranger"):
        compose([NOISY["pure"](1), stranger], ADD)
    with pytest.raises(TypeError, match="unknown kind of event: list"):
        compose([[NOISY["pure"](1)]], ADD)  # type: ignore[list-item]


@pytest.mark.parametrize("count", [0, -1, 1.0, True])
def test_a_cost_is_multiplied_by_positive_integers_only(count: int) -> None:
    with pytest.raises(ValueError, match="integer >= 1"):
        INFINITE * count


@pytest.mark.parametrize("bad", [-0.1, math.nan, 1.0, 2.0])
def test_nonsensical_delta_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="delta"):
        NOTHING.epsilon(bad)


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf])
def test_nonsensical_epsilon_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        NOTHING.delta(bad)


# --- minimisers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [MinimiserLaw.L1, MinimiserLaw.L2])
@pytest.mark.parametrize("adjacency", Adjacency)
def test_a_pure_law_adds_its_shift_and_the_determinants(
    law: MinimiserLaw, adjacency: Adjacency
) -> None:
    """Sensitivity over scale and ``ln(1 + q)``, as pure epsilon and as nothing better."""
    event = MinimiserEvent(
        label="m", law=law, sensitivity=fractions(3), scale=Fraction(7), jacobian=fractions(1)
    )
    replaces = adjacency is REPLACE
    shift, q = (Fraction(3, 7), 1.0) if replaces else (Fraction(3, 14), 0.5)
    cost = compose([event], adjacency)
    assert cost.pure is not None
    assert shift + Fraction(math.log1p(q)) <= cost.pure
    assert float(cost.pure) == pytest.approx(float(shift) + math.log1p(q), rel=1e-9)
    as_pure = PureEvent(label="p", epsilon=PerAdjacency(cost.pure, cost.pure))
    assert cost == compose([as_pure], adjacency)


def folded_delta(v: float, epsilon: float, adjacency: Adjacency, *, correlation: float) -> float:
    """Delta of the loss ``v/2 + |Z|``, or with ``|Z| + |Z'|`` of half the length each.

    By sums over cells of the normal density; the rest of ``Z'`` given Z is summed over too.
    """
    line = [(k + 0.5) / 40 - 8 for k in range(640)]
    mass = [math.exp(-z * z / 2) / math.sqrt(2 * math.pi) / 40 for z in line]
    root = math.sqrt(v)

    def lost(ratio: float) -> float:
        return max(0.0, -math.expm1(epsilon - v / 2 - ratio))

    if adjacency is ADD:
        return sum(m * lost(root * abs(z)) for z, m in zip(line, mass, strict=True))
    rest = math.sqrt(1 - correlation**2)
    if rest == 0.0:
        return sum(m * lost(root * abs(z)) for z, m in zip(line, mass, strict=True))
    coarse = list(zip(line, mass, strict=True))[::4]
    return sum(
        16 * m * n * lost(root / 2 * (abs(z) + abs(correlation * z + rest * u)))
        for z, m in coarse
        for u, n in coarse
    )


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("scale", [1, 3, 20])
@pytest.mark.parametrize("correlation", [1.0, 0.0, -0.7])
def test_a_gaussian_law_covers_the_folded_loss(
    adjacency: Adjacency, scale: int, correlation: float
) -> None:
    """methods, 3.2 O3: exactly twice the Gaussian curve where one record's loss is not negative."""
    event = minimiser(MinimiserLaw.GAUSSIAN, scale, jacobian=0)
    cost = compose([event], adjacency)
    assert cost.noise is not None
    v = float(cost.noise)
    assert v == pytest.approx((3.0 if adjacency is REPLACE else 1.5) ** 2 / scale**2)
    for more in (0.0, 0.5, 1.0, 2.0):
        epsilon = v / 2 + more * math.sqrt(v)
        folded = folded_delta(v, epsilon, adjacency, correlation=correlation)
        assert folded <= cost.delta(epsilon) * (1 + 2e-3)
        if adjacency is ADD:
            assert cost.delta(epsilon) <= folded * (1 + 2e-3)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("order", [1.001, 1.5, 2.0, 8.0, 100.0])
@pytest.mark.parametrize("scale", [1, 3, 20])
def test_the_rho_of_a_gaussian_law_covers_its_renyi_divergence(
    adjacency: Adjacency, order: float, scale: int
) -> None:
    """methods, 3.2 O3: ``ln(1 + q) + v/2 + ln E exp((a - 1) |Z|) / (a - 1)`` at most rho a."""
    event = dataclasses.replace(
        minimiser(MinimiserLaw.GAUSSIAN, scale), jacobian=PerAdjacency(Fraction(1), Fraction(1, 2))
    )
    cost = compose([event], adjacency)
    assert cost.gaussian is None
    q, moved = (1.0, 3.0) if adjacency is REPLACE else (0.5, 1.5)
    v, t = (moved / scale) ** 2, order - 1
    folded = t * t * v / 2 + math.log1p(math.erf(t * math.sqrt(v / 2)))
    assert math.log1p(q) + v / 2 + folded / t <= cost.rho_bound() * order


@pytest.mark.parametrize(("adjacency", "times_"), [(REPLACE, 4), (ADD, 2)])
@pytest.mark.parametrize("first", [True, False])
def test_a_folded_loss_beside_gaussian_noise_keeps_its_factor(
    adjacency: Adjacency, times_: int, first: bool
) -> None:
    """In either order: one curve of both mu, moved by what is pure, times the factor."""
    noise, pure = NOISY["gaussian"](4), NOISY["pure"](30)
    folded = minimiser(MinimiserLaw.GAUSSIAN, 5)
    events = [folded, noise, pure] if first else [pure, noise, folded]
    cost = compose(events, adjacency)
    squared_mu = sum(compose([one], adjacency).noise or 0 for one in (noise, folded))
    mu = conversion.sqrt_up(Fraction(squared_mu))
    assert cost.pure is not None
    for epsilon in (2.0, 4.0, 6.0):
        expected = times_ * conversion.gaussian_delta(mu, epsilon - float(cost.pure))
        assert cost.delta(epsilon) == pytest.approx(min(expected, cost.delta(epsilon)), rel=1e-9)
        assert cost.delta(epsilon) <= expected * (1 + 1e-9)
    large = cost.epsilon(1e-9)
    beside = float(cost.pure) + conversion.gaussian_epsilon(mu, 1e-9 / times_)
    assert large == pytest.approx(beside, rel=1e-9)
    assert compose([times(folded, 3)], adjacency).doublings == 3 * int(math.log2(times_))


def test_many_foldings_are_no_bound_at_all() -> None:
    """A factor beyond the floats says nothing, however small what it multiplies; rho remains."""
    cost = compose([times(minimiser(MinimiserLaw.GAUSSIAN, 150, 0), 2500)], REPLACE)
    assert cost.doublings == 5000
    assert conversion.gaussian_delta(1.0, 38.0) < 2.0**-1000
    assert cost.delta(38.0) == conversion.zcdp_delta(cost.rho_bound(), 38.0)
    assert cost.epsilon(1e-6) == conversion.zcdp_epsilon(cost.rho_bound(), 1e-6)


MINIMISER_FIELDS = minimiser(MinimiserLaw.L2, 2).to_json()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"law": "cauchy"}, "cauchy"),
        ({"law": 2}, "law must be a string"),
        ({"scale": "0/1"}, "scale"),
        ({"scale": 2}, "scale must be a string"),
        ({"jacobian": {"replace-one": "-1/2", "add-remove": "0/1"}}, "must be a fraction"),
        ({"jacobian": {"replace-one": "1/2"}}, "missing key: add-remove"),
        ({"sensitivity": {"replace-one": "0/1", "add-remove": "1/1"}}, "must be positive"),
        ({"extra": 1}, "unknown key: extra"),
    ],
)
def test_bad_fields_of_a_minimiser_are_named(change: dict[str, object], message: str) -> None:
    assert event_from_json(MINIMISER_FIELDS) == minimiser(MinimiserLaw.L2, 2)
    with pytest.raises(ValueError, match=message):
        event_from_json(MINIMISER_FIELDS | change)


def test_the_constructor_of_a_minimiser_checks_too() -> None:
    event = minimiser(MinimiserLaw.L2, 2)
    for change in ({"law": "l2"}, {"scale": Fraction(0)}, {"scale": 2.0}, {"jacobian": ints(1)}):
        with pytest.raises(ValueError, match=r"law|scale|jacobian"):
            dataclasses.replace(event, **change)


# -------------------------------------------------------------------------------------------------


@given(events=st.lists(ANY, min_size=1, max_size=3), adjacency=ADJACENCY)
@settings(deadline=None)
def test_epsilon_and_delta_agree(events: list[Event], adjacency: Adjacency) -> None:
    """Spending the certified epsilon leaves at most the delta it was certified for."""
    cost = compose(events, adjacency)
    epsilon = cost.epsilon(DELTA)
    if epsilon < math.inf:
        assert cost.delta(epsilon) <= DELTA * (1 + 1e-8)


# --- files ---------------------------------------------------------------------------------------


@given(event=ANY)
def test_json_round_trip(event: Event) -> None:
    assert event_from_json(json.loads(json.dumps(event.to_json()))) == event


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(event=ANY, data=st.data(), value=JSON)
def test_a_changed_field_is_read_exactly_or_refused(
    event: Event, data: st.DataObject, value: object
) -> None:
    """Never a crash, never a silent repair: what is accepted writes back the same."""
    fields: dict[str, object] = dict(event.to_json())
    fields[data.draw(st.sampled_from(sorted(fields)))] = value
    try:
        read = event_from_json(fields)
    except ValueError:
        return
    assert read.to_json() == fields


GOOD = {
    "mechanism": "gaussian",
    "label": "gradient",
    "count": 3,
    "squared_sensitivity": {"replace-one": 4, "add-remove": 1},
    "scale": 8,
}
BAD_FIELDS = [
    ({"mechanism": "os.system"}, "unknown mechanism 'os.system'"),
    ({"mechanism": None}, "unknown mechanism None"),
    ({"mechanism": ["gaussian"]}, "unknown mechanism"),
    ({"extra": 1}, "unknown key: extra"),
    ({"count": 0}, "count must be >= 1, not 0"),
    ({"count": -2}, "count must be >= 1, not -2"),
    ({"count": True}, "count must be an integer, not bool"),
    ({"count": 2.0}, "count must be an integer, not float"),
    ({"scale": math.nan}, "scale must be an integer, not float"),
    ({"scale": "8"}, "scale must be an integer, not str"),
    ({"scale": 0}, "scale must be >= 1"),
    ({"label": ""}, "label must be a text"),
    ({"label": 3}, "label must be a string, not int"),
    ({"label": "a\x1b[2J"}, "control characters"),
    ({"label": "a" * 201}, "label must be a text"),
    ({"squared_sensitivity": 4}, "one number per adjacency"),
    ({"squared_sensitivity": {"replace-one": 4}}, "missing key: add-remove"),
    ({"squared_sensitivity": {"replace-one": 4, "add-remove": 0}}, "must be >= 1, not 0"),
    ({"squared_sensitivity": {"replace-one": 4, "add-remove": 1, "x": 1}}, "unknown key: x"),
]


@pytest.mark.parametrize(("change", "message"), BAD_FIELDS)
def test_bad_fields_are_named(change: dict[str, object], message: str) -> None:
    assert event_from_json(GOOD).count == 3
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        event_from_json(GOOD | change)


@pytest.mark.parametrize("key", GOOD)
def test_every_key_is_needed(key: str) -> None:
    with pytest.raises(ValueError, match=r"missing key|unknown mechanism"):
        event_from_json({k: v for k, v in GOOD.items() if k != key})


BAD_FRACTIONS = ["1", "0.5", "-1/2", "1/-2", "2/4", "0/1", "1/0", "1_0/3", "1e3/1", "٣/4", "nan"]


@pytest.mark.parametrize(
    "text",
    [*BAD_FRACTIONS, " 1/2", "1/2\n", "9" * 5000 + "/1", 0.5, 1, None],
)
@pytest.mark.parametrize(("mechanism", "key"), [("zcdp", "rho"), ("pure", "epsilon")])
def test_only_positive_fractions_in_lowest_terms_are_read(
    mechanism: str, key: str, text: object
) -> None:
    fields: dict[str, object] = {"mechanism": mechanism, "label": "x", "count": 1}
    fields[key] = {"replace-one": "1/2", "add-remove": text}
    with pytest.raises(ValueError, match="must be"):
        event_from_json(fields)


@pytest.mark.parametrize("value", [None, [], "gaussian", 3, {}])
def test_only_objects_with_a_mechanism_are_events(value: object) -> None:
    with pytest.raises(ValueError, match=r"JSON object|unknown mechanism"):
        event_from_json(value)


@pytest.mark.parametrize("value", [1.0, True, "1", -1, 0])
def test_constructors_check_too(value: object) -> None:
    """Integers of another library, floats and booleans never enter the exact sums."""
    with pytest.raises(ValueError, match="scale"):
        GaussianEvent(label="g", squared_sensitivity=ints(1), scale=value)  # type: ignore[arg-type]
    bad = PerAdjacency(replace_one=value, add_remove=value)
    with pytest.raises(ValueError, match="squared_sensitivity"):
        GaussianEvent(label="g", squared_sensitivity=bad, scale=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="l1_sensitivity"):
        LaplaceEvent(label="l", l1_sensitivity=bad, squared_sensitivity=ints(1), scale=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rho"):
        ZcdpEvent(label="z", rho=bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="per adjacency"):
        ZcdpEvent(label="z", rho=Fraction(1))  # type: ignore[arg-type]


def test_accounting_needs_the_standard_library_only() -> None:
    """`dpfit budget` must start at once."""
    code = (
        "import sys, dpfit.privacy.accountant, dpfit.privacy.calibration\n"
        "print([m for m in ('numpy', 'scipy', 'pyarrow', 'typer') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_long_sums_stay_short_and_never_understate() -> None:
    """Runs that each have their own denominator: the total is short, not below the exact sum, and
    no more than 2^-256 for each run above it."""
    rates = [Fraction(1, 10**9 + 2 * number) for number in range(1000)]
    events = [
        PureEvent(label="x", epsilon=PerAdjacency(replace_one=rate, add_remove=rate))
        for rate in rates
    ]
    costs = [compose([event], REPLACE) for event in events]
    exact = sum(rates)
    assert exact.denominator.bit_length() > 10_000
    total = sum(costs, NOTHING)
    for value in (total.gaussian, total.rho, total.noise, total.pure):
        assert value is not None
        assert value.denominator.bit_length() <= 4097
    assert total.pure is not None
    assert 0 <= total.pure - exact < Fraction(len(events), 2**256)
    assert total.pure != exact
    assert sum(costs[:100], NOTHING).pure == sum(rates[:100])
