"""Which rows of a unit take part."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpfit.design.mixing import mixed
from dpfit.privacy.owner_choice import chosen_rows, contents_of

UNITS = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=8), min_size=1, max_size=5)


def records(units: list[list[int]], first: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Unit and content of each row."""
    owners = np.repeat(np.arange(len(units)), [len(unit) for unit in units])
    digests = np.array([content for unit in units for content in unit], np.uint64)
    names = [f"p{number}" for number in range(first, first + len(units))]
    return owners, contents_of(digests, [], owners, names)


def taking_part(owners: np.ndarray, contents: np.ndarray, most: int) -> list[list[int]]:
    chosen = chosen_rows(owners, contents, most)
    return [sorted(contents[chosen[owners[chosen] == i]].tolist()) for i in range(max(owners) + 1)]


@given(UNITS, UNITS, st.integers(1, 4))
def test_a_unit_s_choice_depends_on_its_own_rows_alone(
    units: list, others: list, most: int
) -> None:
    """Other units before and behind it change nothing."""
    alone = taking_part(*records(units), most)
    assert taking_part(*records([*units, *others]), most)[: len(units)] == alone
    assert taking_part(*records(units[1:], 1), most) == alone[1:] if units[1:] else True


@given(UNITS, st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_choice_does_not_depend_on_the_order(units: list, most: int, chance: object) -> None:
    """Rows may be read in any order; of rows that are alike any may take part."""
    owners, contents = records(units)
    order = list(range(len(owners)))
    chance.shuffle(order)  # type: ignore[attr-defined]
    assert taking_part(owners[order], contents[order], most) == taking_part(owners, contents, most)


@given(UNITS, st.integers(1, 4))
def test_as_many_rows_take_part_as_may(units: list, most: int) -> None:
    """All of a small unit; each row once; a unit's rows side by side."""
    owners, contents = records(units)
    chosen = chosen_rows(owners, contents, most)
    assert len(set(chosen.tolist())) == len(chosen)
    assert np.bincount(owners[chosen]).tolist() == [min(len(unit), most) for unit in units]
    assert np.all(np.diff(owners[chosen]) >= 0)


def test_frequent_rows_are_chosen_as_frequently() -> None:
    """Over 4,000 units with nine rows alike and one other, the other takes part in 3 of 10."""
    owners, contents = records([[0] * 9 + [1]] * 4000)
    other = np.arange(len(owners)) % 10 == 9
    share = other[chosen_rows(owners, contents, 3)].sum() / 4000
    assert abs(share - 0.3) < 7 * np.sqrt(0.3 * 0.7 / 4000)


def test_units_with_equal_rows_choose_apart() -> None:
    """A row that wins in one unit does not win in all."""
    owners, contents = records([[0, 1]] * 1000)
    share = (chosen_rows(owners, contents, 1) % 2).mean()
    assert 0.4 < share < 0.6


def test_attributes_tell_rows_apart() -> None:
    """Rows that differ in a target, an offset or a weight differ; minus zero is zero."""
    owners, digests = np.zeros(3, np.int64), np.zeros(3, np.uint64)
    one, two, three = contents_of(digests, [np.array([0.0, 1.0, -0.0]), None], owners, ["p"])
    assert one == three
    assert one != two


def test_mixing_is_one_to_one() -> None:
    """As the published generator mixes: the first words from the state 0."""
    assert hex(int(mixed(np.zeros(1, np.uint64))[0])) == "0xe220a8397b1dcdaf"
    assert len(np.unique(mixed(np.arange(100_000, dtype=np.uint64)))) == 100_000
