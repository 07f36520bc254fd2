"""Weight, offset and exposure of the records of a table: what is read, what is refused."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfit.data.attributes import ATTRIBUTES, offset_and_weight
from dpfit.data.features import FeatureMap
from dpfit.data.reader import Reader, ReadOptions
from dpfit.data.rows import RowBlock
from dpfit.data.schema import ColumnRole
from dpfit.errors import DataError, UsageError

ALL = {"weight": "w", "offset": "o", "exposure": "e"}
TABLE = {"y": [1, 0], "w": [2.0, 0.0], "a": [3, 4], "o": [-1.0, 0.5], "e": [1.0, 10.0]}
BESIDE = {"y": [1, 0], "w": [2.0, 0.0], "o": [-1.0, 0.5], "e": [1.0, 10.0]}
KINDS = ["csv", "tsv", "parquet", "pair", "struct"]


def content_of(table: dict[str, Any], kind: str) -> bytes:
    """A table as the bytes of a format; in the sparse layouts its column ``a`` is column 0."""
    if kind in ("csv", "tsv"):
        mark = "," if kind == "csv" else "\t"
        records = [list(table), *zip(*table.values(), strict=True)]
        return "".join(mark.join(map(str, cells)) + "\n" for cells in records).encode()
    sink = io.BytesIO()
    a = table.get("a", [])
    beside = {name: cells for name, cells in table.items() if name != "a"}
    if kind == "pair":
        lists = {"indices": [[0]] * len(a), "values": [[float(value)] for value in a]}
    elif kind == "struct":
        entry = pa.list_(pa.struct([("index", pa.int32()), ("value", pa.float64())]))
        lists = {"row": pa.array([[{"index": 0, "value": float(v)}] for v in a], entry)}
    else:
        lists = {"a": a}
    pq.write_table(pa.table({**beside, **lists}), sink)
    return sink.getvalue()


def block_of(content: bytes, kind: str, **options: Any) -> RowBlock:
    form = kind if kind in ("csv", "tsv", "libsvm") else "parquet"
    reader = Reader(["-"], ReadOptions(format=form, **options), stdin=io.BytesIO(content))
    (block,) = reader
    return block


def fault(table: dict[str, Any], kind: str = "csv", **options: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        block_of(content_of(table, kind), kind, **{"label": "y", **options})
    return caught.value


# --- what is read --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["options", "roles"])
def test_attributes_are_read_and_are_no_features(kind: str, how: str) -> None:
    """In every format and by option or role: an offset and the logarithm of an exposure add up."""
    roles = {name: ColumnRole(role) for role, name in ALL.items()}
    named: dict[str, Any] = ALL if how == "options" else {"columns": roles}
    block = block_of(content_of(TABLE, kind), kind, label="y", **named)
    assert (block.indices.tolist(), block.values.tolist()) == ([0, 0], [3, 4])
    assert block.target is not None
    assert block.target.tolist() == [1, 0]
    assert block.weight is not None
    assert block.weight.tolist() == [2, 0]
    assert block.offset is not None
    assert block.offset.tolist() == [-1.0, 0.5 + math.log(10)]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_named_is_none(kind: str) -> None:
    """Each attribute stands by itself; without any the block is as ever."""
    for names, offset, weight in (
        ({}, None, None),
        ({"weight": "w"}, None, [2, 0]),
        ({"offset": "o"}, [-1, 0.5], None),
        ({"exposure": "e"}, [0, math.log(10)], None),
    ):
        table = {n: cells for n, cells in TABLE.items() if n in ("y", "a", *names.values())}
        block = block_of(content_of(table, kind), kind, label="y", **names)
        assert (None if block.offset is None else block.offset.tolist()) == offset
        assert (None if block.weight is None else block.weight.tolist()) == weight


def test_without_header_columns_have_numbers() -> None:
    """As for the label: from 1, or c1."""
    for names in ({"weight": "1", "exposure": "4"}, {"weight": "c1", "exposure": "c4"}):
        block = block_of(b"7,1,5,1\n8,0,6,1\n", "csv", label="2", header=False, **names)
        assert block.values.tolist() == [5, 6]
        assert block.weight is not None
        assert block.weight.tolist() == [7, 8]


def test_text_labels_and_attributes_of_the_deciding_block() -> None:
    """The first block, which decides the kind of labels, keeps its attributes."""
    for labels, kind in ((["no", "yes"], str), ([1, 0], float)):
        block = block_of(content_of({**TABLE, "y": labels}, "csv"), "csv", label="y", **ALL)
        assert block.target is not None
        assert {type(label) for label in block.target.tolist()} == {kind}
        assert block.weight is not None
        assert block.offset is not None


def test_an_option_wins_over_a_role() -> None:
    """The column that only had the role is no feature either."""
    table = {"y": [1, 0], "w": [2, 0], "v": [5, 6], "a": [3, 4]}
    columns = {"v": ColumnRole("categorical")}
    for name in ("w", "ghost"):
        columns[name] = ColumnRole("weight")
        block = block_of(content_of(table, "csv"), "csv", label="y", weight="v", columns=columns)
        assert block.weight is not None
        assert block.weight.tolist() == [5, 6]
        assert block.values.tolist() == [3, 4]


@given(st.lists(st.floats(5e-324, 1.7e308), min_size=1, max_size=9), st.booleans(), st.data())
@settings(max_examples=100, deadline=None)
def test_offsets_are_finite(exposures: list[float], both: bool, data: st.DataObject) -> None:
    """Whatever a positive exposure and a finite offset are, and close to the exact logarithm."""
    columns = {"exposure": np.array(exposures)}
    if both:
        finite = st.floats(allow_nan=False, allow_infinity=False)
        columns["offset"] = np.array([data.draw(finite) for _ in exposures])
    offset, weight = offset_and_weight(columns)
    assert weight is None
    assert offset is not None
    assert np.isfinite(offset).all()
    expected = [math.log(exposure) for exposure in exposures]
    if both:
        expected = [a + b for a, b in zip(columns["offset"], expected, strict=True)]
    assert offset.tolist() == pytest.approx(expected, rel=1e-13, abs=1e-13)


# --- what is refused -----------------------------------------------------------------------------

CELLS = [
    ("offset", "", "is empty"),
    ("offset", "nan", "is not finite"),
    ("weight", "inf", "is not finite"),
    ("weight", "1e999", "is too large for a float"),
    ("weight", "-0.5", "is negative: a weight is 0 or more"),
    ("weight", "31415x", "is not a number"),
    ("exposure", "0", "is not positive: an exposure is above 0"),
    ("exposure", "-0.0", "is not positive"),
    ("exposure", "1e-400", "is not positive"),
    ("exposure", "-27182", "is not positive"),
    ("exposure", "", "is empty"),
    ("exposure", "NA", "is empty"),
]


@pytest.mark.parametrize(("role", "cell", "said"), CELLS)
@pytest.mark.parametrize("missing", ["error", "zero"])
@pytest.mark.parametrize("predicting", [False, True])
def test_cells_out_of_bounds(
    role: str, cell: str, said: str, missing: str, predicting: bool
) -> None:
    """The line, the column and the rule; never the cell, and never zero for an empty one."""
    name = ALL[role]
    table = {**TABLE, name: [1, cell]}
    options: dict[str, Any] = {**ALL, "missing": missing, "na": ("NA",)}
    if predicting:
        roles = {name: ColumnRole(role) for role, name in ALL.items()}
        options["feature_map"] = FeatureMap.build(list(TABLE), roles, "y", None, ("NA",))
        options |= {"predicting": True, "target_required": False}
        if role == "weight":
            assert block_of(content_of(table, "csv"), "csv", label="y", **options).weight is None
            return
    error = fault(table, **options)
    assert error.line == 3
    field = list(table).index(name) + 1
    assert error.message.startswith(f"column '{name}' (field {field}) {said}")
    assert not cell or cell in ("0", "inf", "nan") or cell not in str(error)
    wanted = "every record needs its own; --missing zero is for features"
    assert error.hint == (wanted if cell in ("", "nan", "NA") else None)


@pytest.mark.parametrize("kind", ["parquet", "pair", "struct"])
@pytest.mark.parametrize(
    ("role", "cell", "said"),
    [
        ("weight", None, "is empty or NaN"),
        ("offset", math.nan, "is empty or NaN"),
        ("offset", math.inf, "is infinite"),
        ("weight", -1.0, "is negative"),
        ("exposure", 0.0, "is not positive"),
    ],
)
def test_cells_of_parquet(kind: str, role: str, cell: float | None, said: str) -> None:
    """The row and the column, in every layout."""
    name = ALL[role]
    for missing in ("error", "zero"):
        error = fault({**TABLE, name: [1.0, cell]}, kind, missing=missing, **ALL)
        assert error.message.startswith(f"column '{name}' {said}")
        assert error.message.endswith("(row 2)")


@pytest.mark.parametrize("cells", [["a", "b"], [b"a", b"b"], [[1.0], [2.0]], [{"x": 1}] * 2])
@pytest.mark.parametrize("kind", ["parquet", "pair"])
def test_types_of_parquet(kind: str, cells: list[Any]) -> None:
    """Only numbers: text of numbers is text."""
    error = fault({**TABLE, "e": cells}, kind, **ALL)
    assert error.message == "the exposure column 'e' is not numeric"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("role", ATTRIBUTES)
def test_a_column_that_is_not_there(kind: str, role: str) -> None:
    """Named by an option or by the model: in the first file as in the others."""
    table = {name: cells for name, cells in TABLE.items() if name != ALL[role]}
    error = fault(table, kind, **ALL)
    assert error.message == f"the {role} column '{ALL[role]}' is not among the columns"


def test_a_column_that_a_later_file_lacks(tmp_path: Any) -> None:
    """Every file is held to it."""
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    paths[0].write_bytes(content_of(TABLE, "csv"))
    paths[1].write_bytes(content_of({n: c for n, c in TABLE.items() if n != "e"}, "csv"))
    with pytest.raises(DataError, match="the exposure column 'e'") as caught:
        list(Reader([str(path) for path in paths], ReadOptions(label="y", **ALL)))
    assert caught.value.path == str(paths[1])


@pytest.mark.parametrize(
    "named",
    [
        {"weight": "y"},
        {"exposure": "w", "weight": "w"},
        {"offset": "v", "columns": {"v": ColumnRole("exposure")}},
        {"weight": "2", "offset": "c2", "header": False},
        {"label": None, "weight": "y", "columns": {"y": ColumnRole("label")}},
    ],
)
def test_a_column_has_one_meaning(named: dict[str, Any]) -> None:
    """A label is no weight, a weight no offset: refused before anything is read."""
    with pytest.raises(UsageError, match="cannot be both the"):
        ReadOptions(**{"label": "y", **named})


@pytest.mark.parametrize("role", ATTRIBUTES)
def test_libsvm_has_no_named_columns(role: str) -> None:
    """Refused when the reader is made; a model's weight column does not matter."""
    named: dict[str, Any] = {"format": "libsvm", role: "w"}
    with pytest.raises(UsageError, match=rf"--{role} names .* a LIBSVM file has no named columns"):
        Reader(["-"], ReadOptions(**named))
    predicting = ReadOptions(**named, predicting=True)
    if role == "weight":
        Reader(["-"], predicting)
        return
    with pytest.raises(UsageError, match=f"the model takes its {role} from column 'w'"):
        Reader(["-"], predicting)


def test_no_feature_is_left() -> None:
    """Attributes alone fit nothing."""
    with pytest.raises(UsageError, match="no column"):
        block_of(content_of(BESIDE, "csv"), "csv", label="y", **ALL)


# --- prediction ----------------------------------------------------------------------------------


def trained_map(**options: Any) -> FeatureMap:
    content = io.BytesIO(content_of(TABLE, "csv"))
    reader = Reader(["-"], ReadOptions(format="csv", label="y", **options), stdin=content)
    assert reader.feature_map is not None
    return FeatureMap.from_json(reader.feature_map.to_json())


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("told", [True, False])
def test_prediction_reads_offsets_and_no_weights(kind: str, told: bool) -> None:
    """The weight may hold anything or be absent; the rest is as in the fit, and never extra."""
    names = ALL if told else {"offset": "o", "exposure": "e"}
    options = {"feature_map": trained_map(**ALL), "predicting": True, "target_required": False}
    for weights in ({}, {"w": ["x", ""]}, {"w": [-1.0, 2.0]}):
        table = {"o": TABLE["o"], **weights, "e": TABLE["e"], "a": TABLE["a"]}
        block = block_of(content_of(table, kind), kind, **names, **options)
        assert block.values.tolist() == [3, 4]
        assert (block.target, block.weight) == (None, None)
        assert block.offset is not None
        assert block.offset.tolist() == [-1.0, 0.5 + math.log(10)]
    unread = block_of(content_of(TABLE, kind), kind, **options)
    assert (unread.offset, unread.weight) == (None, None)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("role", ["offset", "exposure"])
def test_prediction_needs_its_offsets(kind: str, role: str) -> None:
    """Also where new columns may be left out."""
    options = {"feature_map": trained_map(**ALL), "predicting": True, "target_required": False}
    table = {n: cells for n, cells in TABLE.items() if n in ("a", *ALL.values()) and n != ALL[role]}
    for ignore in (False, True):
        error = fault(table, kind, **ALL, **options, ignore_new_features=ignore)
        assert error.message == f"the {role} column '{ALL[role]}' is not among the columns"


@pytest.mark.parametrize("kind", ["pair", "struct"])
def test_numbered_columns_beside_offsets(kind: str) -> None:
    """Sparse rows of Parquet: the attribute columns are set aside in prediction as well."""
    options: dict[str, Any] = {"predicting": True, "target_required": False, "n_features": 1}
    table = {name: cells for name, cells in TABLE.items() if name != "y"}
    block = block_of(content_of(table, kind), kind, **ALL, **options)
    assert block.weight is None
    assert block.offset is not None
    assert block.offset.tolist() == [-1.0, 0.5 + math.log(10)]
    for ignore in (False, True):
        options["ignore_new_features"] = ignore
        lacking = {name: cells for name, cells in table.items() if name != "e"}
        assert "the exposure column 'e'" in fault(lacking, kind, **ALL, **options).message


def test_a_feature_is_no_attribute() -> None:
    """A model that takes its offset from one of its features is refused, not read twice."""
    model = FeatureMap.build(["a", "o"], {}, None, None)
    options = {"feature_map": model, "predicting": True, "target_required": False}
    error = fault({"a": [1], "o": [2]}, offset="o", label=None, **options)
    assert error.message == "missing columns: 'o'"
