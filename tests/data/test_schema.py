"""The schema file."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpfit.data.schema import ColumnRole, Schema
from dpfit.errors import StorageError, UsageError

FULL = """
rows = 20242
features = 47236
labels = [-1, 1]
target_range = [0, 1]
index_base = 1
row_norm = 1.0
label = "income"
na = ["?", -999]
[columns.job]
role = "categorical"
levels = ["clerk", "farmer"]
[columns.city]
role = "hashed"
[columns.grade]
levels = [1, 2]
other = true
[columns.age]
range = [0, 120]
[columns.months]
role = "exposure"
[columns.w]
role = "weight"
[columns.o]
role = "offset"
"""


def schema_of(tmp_path: Path, text: str | bytes) -> Schema:
    path = tmp_path / "s.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return Schema.from_file(str(path))


def test_every_fact(tmp_path: Path) -> None:
    """All keys arrive in their Python types."""
    assert schema_of(tmp_path, FULL) == Schema(
        rows=20242,
        features=47236,
        labels=(-1.0, 1.0),
        target_range=(0.0, 1.0),
        index_base=1,
        row_norm=1.0,
        label="income",
        na=("?", "-999"),
        columns={
            "job": ColumnRole("categorical", ("clerk", "farmer")),
            "city": ColumnRole("hashed"),
            "grade": ColumnRole("categorical", ("1", "2"), other=True),
            "age": ColumnRole(range=(0.0, 120.0)),
            "months": ColumnRole("exposure"),
            "w": ColumnRole("weight"),
            "o": ColumnRole("offset"),
        },
    )
    assert schema_of(tmp_path, "") == Schema()
    assert schema_of(tmp_path, 'labels = ["no", "yes"]').labels == ("no", "yes")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("colour = 1", "colour"),
        ("rows = 0", "rows"),
        ("rows = true", "rows"),
        ("rows = 1.5", "rows"),
        ("features = '3'", "features"),
        ("index_base = 2", "index_base"),
        ("row_norm = 0", "row_norm"),
        ("row_norm = inf", "row_norm"),
        ("target_range = [1, 0]", "target_range"),
        ("target_range = [0, nan]", "target_range"),
        ("labels = [1]", "labels"),
        ("labels = [1, 1.0]", "labels"),
        ("labels = [1, 'a']", "labels"),
        ("label = ''", "label"),
        ("label = 3", "label"),
        ("na = '?'", "na"),
        ("na = []", "na"),
        ("na = ['']", "na"),
        ("na = ['?', '?']", "na"),
        ("na = [' ?']", "na"),
        ("na = [1.5]", "na"),
        ("columns = 3", "columns"),
        ("[columns.age]\nrange = [1, 0]", "columns.age.range"),
        ("[columns.age]\nrange = [0, 0]", "columns.age.range"),
        ("[columns.age]\nrange = [0]", "columns.age.range"),
        ("[columns.age]\nrange = [0, inf]", "columns.age.range"),
        ("[columns.age]\nrange = [-1e308, 1e308]", "columns.age.range"),
        ("[columns.age]\nrange = [0, 1]\nrole = 'hashed'", "columns.age.range"),
        ("[columns.age]\nrange = [0, 1]\nlevels = ['a']", "columns.age.range"),
        ("[columns.job]\nother = true", "columns.job.other"),
        ("[columns.job]\nother = true\nrole = 'categorical'", "columns.job.other"),
        ("[columns.job]\nother = 1\nlevels = ['a']", "columns.job.other"),
        ("[columns]\njob = 3", "columns.job"),
        ("[columns.job]\nrole = 'odd'", "columns.job.role"),
        ("[columns.w]\nrole = 'weight'\nrange = [0, 1]", "columns.w.range"),
        ("[columns.w]\nrole = 'offset'\nlevels = ['a']", "columns.w.levels"),
        ("[columns.job]\nkind = 'numeric'", "columns.job"),
        ("[columns.job]\nlevels = []", "columns.job.levels"),
        ("[columns.job]\nlevels = ['a', 'a']", "columns.job.levels"),
        ("[columns.job]\nlevels = [' a']", "columns.job.levels"),
        ("[columns.job]\nrole = 'numeric'\nlevels = ['a']", "columns.job.levels"),
    ],
)
def test_wrong_keys_and_types_are_named(tmp_path: Path, text: str, key: str) -> None:
    """A fault names the file and the key, in one line."""
    with pytest.raises(UsageError) as caught:
        schema_of(tmp_path, text)
    assert f"'{key}'" in caught.value.message
    assert "s.toml" in caught.value.message
    assert "\n" not in caught.value.message


def test_a_level_cannot_count_as_empty(tmp_path: Path) -> None:
    """One text has one meaning."""
    with pytest.raises(UsageError, match="column 'job' also stands under 'na'"):
        schema_of(tmp_path, "na = ['?']\n[columns.job]\nlevels = ['a', '?']")


def test_two_labels_are_refused(tmp_path: Path) -> None:
    """There is one label column, with one role."""
    for text in (
        "label = 'a'\n[columns.b]\nrole = 'label'",
        "label = 'a'\n[columns.a]\nrole = 'numeric'",
    ):
        with pytest.raises(UsageError, match="label"):
            schema_of(tmp_path, text)


@pytest.mark.parametrize("role", ["label", "weight", "offset", "exposure"])
def test_two_columns_of_a_single_role_are_refused(tmp_path: Path, role: str) -> None:
    """A record has one target, one weight, one offset and one exposure; the label is no weight."""
    with pytest.raises(UsageError, match=f"more than one column has the role '{role}'"):
        schema_of(tmp_path, f"[columns]\na = {{ role = '{role}' }}\nb = {{ role = '{role}' }}")
    if role != "label":
        with pytest.raises(UsageError, match="the label column has another role"):
            schema_of(tmp_path, f"label = 'a'\n[columns.a]\nrole = '{role}'")


def test_malformed_toml_is_usage_with_its_line(tmp_path: Path) -> None:
    """Configuration faults are usage errors; a missing file is a storage error."""
    with pytest.raises(UsageError, match=r"s\.toml:2: "):
        schema_of(tmp_path, "rows = 3\nrows 4\n")
    for text in (b"\xff\xfe", b"a = " + b"[" * 5000):
        with pytest.raises(UsageError):
            schema_of(tmp_path, text)
    with pytest.raises(StorageError):
        Schema.from_file(str(tmp_path / "absent.toml"))
