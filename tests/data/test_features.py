"""Feature maps: order, storage, matching, hashing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dpfit.data.features import FeatureMap, hashed_feature
from dpfit.data.schema import ColumnRole
from dpfit.errors import DataError, UsageError

ROLES = {
    "job": ColumnRole("categorical", ("clerk", "farmer")),
    "city": ColumnRole("hashed"),
    "id": ColumnRole("ignore"),
}
NAMES = ["age", "city", "job", "id", "pay", "y"]
MAP = FeatureMap.build(NAMES, ROLES, "y", 4)
RICH = {
    "age": ColumnRole(range=(0.0, 90.0)),
    "job": ColumnRole("categorical", ("clerk", "farmer"), other=True),
}


def test_hashed_columns_share_one_block_at_the_end() -> None:
    """Named features come first, in the table's order."""
    assert MAP.names == ["age", "job=clerk", "job=farmer", "pay"]
    assert MAP.n_features == 4 + 2**4
    assert [(c.name, c.start, c.width) for c in MAP.columns] == [
        ("age", 0, 1),
        ("city", 4, 16),
        ("job", 1, 2),
        ("pay", 3, 1),
    ]
    assert FeatureMap.build(["a"], {}, None, 4).n_features == 1


def test_storing_keeps_everything() -> None:
    """from_json(to_json(x)) == x, through text."""
    assert FeatureMap.from_json(json.loads(json.dumps(MAP.to_json()))) == MAP
    rich = FeatureMap.build(["age", "job", "y"], RICH, "y", None, ("?", "NA"))
    assert FeatureMap.from_json(json.loads(json.dumps(rich.to_json()))) == rich


@pytest.mark.parametrize(
    "change",
    [
        {"columns": 3},
        {"columns": []},
        {"columns": [{}]},
        {"columns": [{"name": "a", "role": "numeric"}] * 2},
        {"columns": [{"name": 1, "role": "numeric"}]},
        {"columns": [{"name": "a", "role": "odd"}]},
        {"columns": [{"name": "a", "role": "numeric", "levels": ["x"]}]},
        {"columns": [{"name": "a", "role": "hashed"}]},
        {"columns": [{"name": "a", "role": "categorical", "levels": ["x"]}]},
        {"columns": [{"name": "a", "role": "categorical", "levels": ["x"], "other": 1}]},
        {"columns": [{"name": "a", "role": "categorical", "levels": "xy", "other": True}]},
        {"columns": [{"name": "a", "role": "categorical", "levels": ["x", "x"], "other": True}]},
        *(
            {"columns": [{"name": "a", "role": "numeric", "range": ends}]}
            for ends in ([1, 0], [0, 0], [0], [0, 1, 2], [-1e308, 1e308], [0, 10**400], [0, "1"], 3)
        ),
        {"hash_bits": 4},
        {"ignored": "abc"},
        {"na": [1]},
        {"na": None},
    ],
)
def test_only_what_is_written_is_read(change: dict[str, Any]) -> None:
    """A stored map with anything else in it, or anything missing, is no feature map."""
    good = FeatureMap.build(["a"], {}, None, None).to_json()
    assert FeatureMap.from_json(good).names == ["a"]
    for bad in ({**good, **change}, {k: v for k, v in good.items() if k not in change}):
        with pytest.raises(ValueError, match="not a feature map"):
            FeatureMap.from_json(bad)


def test_matching_is_by_name() -> None:
    """Rule 5: any order; missing columns are listed, extra ones, maybe data, are counted."""
    MAP.check_names(["pay", "job", "city", "age"], path="x")
    with pytest.raises(DataError) as caught:
        MAP.check_names(["pay", "job", "new"], path="x.csv")
    assert caught.value.message == "missing columns: 'age', 'city'; 1 extra column"


def test_ignored_columns_may_stay() -> None:
    """Rule 16: roles are part of the map; other extra columns only on request."""
    MAP.check_names([*NAMES], path="x")
    with pytest.raises(DataError, match=r": 2 extra columns$"):
        MAP.check_names([*NAMES, "new", "newer"], path="x")
    MAP.check_names([*NAMES, "new"], path="x", ignore_new=True)


def test_cells_taken_for_names_are_not_listed() -> None:
    """Where no expected column is there, the names found may be data."""
    with pytest.raises(DataError) as caught:
        MAP.check_names(["Jane", "Doe"], path="x")
    assert "Jane" not in str(caught.value)


def test_levels_have_features_in_their_order() -> None:
    """Each level is one feature, from the column's first on; looked up, not searched for."""
    levels = tuple(f"level {i}" for i in range(50_000))
    roles = {"job": ColumnRole("categorical", levels)}
    _, job = FeatureMap.build(["age", "job"], roles, None, None).columns
    assert [job.feature_of[level] for level in levels] == [*range(1, 50_001)]
    assert "level 50000" not in job.feature_of
    assert job.feature_of is job.feature_of


def test_impossible_roles() -> None:
    """Usage errors that name the ways out."""
    with pytest.raises(UsageError, match="not there: 'ghost'"):
        FeatureMap.build(["a"], {"ghost": ColumnRole("hashed")}, None, 4)
    for role in ("categorical", "hashed"):
        with pytest.raises(UsageError) as caught:
            FeatureMap.build(["a"], {"a": ColumnRole(role)}, None, None)
        assert (caught.value.hint or "").startswith("give --hash-bits B, for instance 10")
    with pytest.raises(UsageError, match="no column"):
        FeatureMap.build(["y"], {}, "y", None)


def test_hashing_is_stable_and_public() -> None:
    """The bucket of a text never changes, on any machine, in any version."""
    assert [hashed_feature("city", name, 20) for name in ("Paris", "Rome", "é")] == GOLDEN


GOLDEN = [169074, 520919, 1032695]


@pytest.mark.parametrize(
    ("role", "said", "hint"),
    [
        ("categorical", "columns 'a', 'c' are categorical but have no levels", "their levels"),
        ("hashed", "columns 'a', 'c' are hashed but have no hash size", "--hash-bits"),
    ],
)
def test_all_columns_without_a_size_are_named(role: str, said: str, hint: str) -> None:
    """At once, as texts are; one alone is spoken of as one."""
    roles = {name: ColumnRole(role) for name in ("a", "c")}
    with pytest.raises(UsageError) as caught:
        FeatureMap.build(["a", "b", "c", "y"], roles, "y", None)
    assert caught.value.message == said
    assert hint in str(caught.value.hint)
    with pytest.raises(UsageError) as caught:
        FeatureMap.build(["a", "b", "y"], {"a": ColumnRole(role)}, "y", None)
    assert caught.value.message.startswith(f"column 'a' is {role} but has no ")
