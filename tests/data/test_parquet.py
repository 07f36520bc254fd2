"""Parquet: wide tables, the sparse layouts, and what is refused."""

from __future__ import annotations

import datetime
import decimal
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpfit.data import spool
from dpfit.data.features import FeatureMap
from dpfit.data.reader import Reader, ReadOptions
from dpfit.data.schema import ColumnRole
from dpfit.errors import DataError, UsageError


def parquet_bytes(columns: dict[str, Any], **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, **options)
    return sink.getvalue()


def fault(read, table: dict[str, Any], **options: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        read(parquet_bytes(table), "x.parquet", **{"label": "y", **options})
    return caught.value


def test_wide_tables(read) -> None:
    """Numbers of any width, booleans and decimals are columns; zeros are left out."""
    table = {
        "a": pa.array([1, 0], pa.int8()),
        "y": [1, -1],
        "b": [True, False],
        "c": pa.array([0.5, 2.0], pa.float32()),
        "d": [decimal.Decimal("1.25"), decimal.Decimal("0.00")],
        "e": pa.array([7, 8]).dictionary_encode(),
    }
    rows = read(parquet_bytes(table), "x.parquet", label="y")
    assert rows.matrix.toarray().tolist() == [[1, 1, 0.5, 1.25, 7], [0, 0, 2, 0, 8]]
    assert rows.matrix.nnz == 7
    assert rows.target.tolist() == [1, -1]


@pytest.mark.parametrize("encode", [False, True])
def test_text_columns_are_levels(read, encode) -> None:
    """Rule 33: a dictionary column is read as codes; the levels are the declared ones."""
    job = pa.array(["farmer", "clerk", None])
    table = {"job": job.dictionary_encode() if encode else job, "y": ["no", "yes", "no"]}
    columns = {"job": ColumnRole("categorical", ("clerk", "farmer"))}
    rows = read(parquet_bytes(table), "x.pq", label="y", columns=columns, missing="zero")
    assert rows.matrix.toarray().tolist() == [[0, 1], [1, 0], [0, 0]]
    assert rows.target.tolist() == ["no", "yes", "no"]
    assert "row 3" in fault(read, table, columns=columns).message
    few = {"job": ColumnRole("categorical", ("clerk",))}
    error = fault(read, table, columns=few)
    assert "row 1" in error.message
    assert "farmer" not in str(error)
    assert "not numeric" in fault(read, table).message


def sparse_table(layout: str) -> dict[str, Any]:
    rows = [([3, 0], [1.0, 2.0]), ([], []), ([7], [0.5])]
    target = {"y": [1.0, -1.0, 1.0]}
    if layout == "struct":
        kind = pa.list_(pa.struct([("index", pa.int32()), ("value", pa.float64())]))
        lists = [[{"index": i, "value": v} for i, v in zip(*r, strict=True)] for r in rows]
        return {"features": pa.array(lists, kind), **target}
    return {
        "values": pa.array([r[1] for r in rows], pa.large_list(pa.float32())),
        "indices": pa.array([r[0] for r in rows], pa.list_(pa.uint16())),
        **target,
    }


@pytest.mark.parametrize("layout", ["struct", "pair"])
def test_sparse_layouts(read, layout) -> None:
    """Rule 33: one list of structs, or a pair of lists, whatever their order."""
    rows = read(parquet_bytes(sparse_table(layout)), "x.parquet", label="y")
    expected = [[2, 0, 0, 1, 0, 0, 0, 0], [0] * 8, [0, 0, 0, 0, 0, 0, 0, 0.5]]
    assert rows.matrix.toarray().tolist() == expected


@pytest.mark.parametrize("layout", ["struct", "pair"])
def test_a_column_beside_sparse_rows_is_named(read, layout) -> None:
    """What stands beside the lists is the target, or is to be set aside."""
    error = fault(read, {**sparse_table(layout), "z": [1, 2, 3]}, label="z")
    assert error.message == "sparse rows stand alone, but the file also has column 'y'"
    assert (error.hint or "").startswith("name the target with --label")
    aside = {"z": ColumnRole("ignore")}
    content = parquet_bytes({**sparse_table(layout), "z": [1, 2, 3]})
    assert read(content, "x.parquet", label="y", columns=aside).matrix.nnz == 3
    model = {"columns": {"y": ColumnRole("label")}, "predicting": True, "target_required": False}
    with pytest.raises(DataError, match="column 'z'") as caught:
        read(content, "x.parquet", **model)
    assert "--ignore-new-features" in (caught.value.hint or "")
    rows = read(content, "x.parquet", ignore_new_features=True, **model)
    assert rows.target is None
    assert rows.matrix.nnz == 3


def test_a_model_of_numbered_columns_reads_no_named_ones(read) -> None:
    """A table never passes for sparse rows of the same width."""
    content = parquet_bytes({"a": [1.0], "b": [2.0]})
    for more in ({}, {"ignore_new_features": True}):
        with pytest.raises(DataError, match="its columns have names"):
            read(content, "x.parquet", predicting=True, target_required=False, n_features=2, **more)


@pytest.mark.parametrize("layout", ["struct", "pair", "table"])
@pytest.mark.parametrize("predicting", [False, True])
def test_a_label_outside_the_set_has_its_row(read, layout, predicting) -> None:
    """Numbers and texts, in every layout."""
    table = sparse_table(layout) if layout != "table" else {"a": [1.0, 2.0, 3.0]}
    for target, labels in (([1, 2, 3], (1.0, 2.0)), (["no", "yes", "Yes"], ("no", "yes"))):
        content = parquet_bytes({**table, "y": target})
        model = FeatureMap.build(["a", "y"], {}, "y", None) if layout == "table" else None
        options = {"feature_map": model if predicting else None, "predicting": predicting}
        with pytest.raises(DataError, match=r"'y' has a label that is not declared \(row 3\)") as c:
            read(content, "x.parquet", label="y", labels=labels, **options)
        assert ("--labels" in (c.value.hint or "")) != predicting
        everything = (*labels, target[2])
        assert read(content, "x.parquet", label="y", labels=everything).matrix.shape[0] == 3


def test_a_label_that_is_not_needed_is_not_read(read) -> None:
    """Whatever its type is."""
    for target in ([1.0, None], ["x", "y"], [b"x", b"y"], [[1], [2]]):
        content = parquet_bytes({"a": [1.0, 2.0], "y": target})
        model = FeatureMap.build(["a", "y"], {}, "y", None)
        options = {"feature_map": model, "predicting": True, "target_required": False}
        rows = read(content, "x.parquet", textual_labels=False, **options)
        assert rows.target is None
        assert rows.matrix.toarray().tolist() == [[1], [2]]


def test_ranges_texts_for_empty_and_other_levels(read) -> None:
    """As in text files; ``na`` speaks of texts, so a column of numbers does not know it."""
    columns = {
        "a": ColumnRole(range=(0.0, 4.0)),
        "job": ColumnRole("categorical", ("x",), other=True),
    }
    table = {"a": [-1, 1, 9], "job": ["x", " ? ", "z"], "y": [1, 2, 3]}
    options = {"columns": columns, "na": ("?", "9")}
    assert fault(read, table, **options).message == "column 'job' is empty (row 2)"
    rows = read(parquet_bytes(table), "x.parquet", label="y", missing="zero", **options)
    assert rows.matrix.toarray().tolist() == [[0, 1], [0.25, 0], [1, 0]]
    columns["job"] = ColumnRole("categorical", ("x",))
    error = fault(read, table, missing="zero", **options)
    assert error.message == "column 'job' has a level that is not declared (row 3)"
    assert (error.hint or "").startswith("add it to the levels of column job")


def test_sparse_indices_obey_the_rules(read) -> None:
    """Base, width, duplicates, sign and size as in LIBSVM; the base is 0 unless declared."""

    def table(*index: int) -> dict[str, Any]:
        kind = pa.uint64() if max(index) > 2**63 else pa.int64()
        lists = {"indices": pa.array([[0], list(index)], pa.list_(kind))}
        return {**lists, "values": [[1.0], [1.0] * len(index)], "y": [1, 2]}

    assert "row 1" in fault(read, table(1), index_base=1).message
    assert "row 2" in fault(read, table(3), n_features=3).message
    assert "repeated (row 2)" in fault(read, table(3, 3)).message
    assert "negative" in fault(read, table(-3)).message
    for big in (2**31 - 1, 2**64 - 1):
        assert "--hash-bits" in (fault(read, table(big)).hint or "")
    content = parquet_bytes(table(3, 3))
    assert read(content, "x.pq", label="y", duplicates="sum").matrix[1, 3] == 2
    content = parquet_bytes(table(2**40))
    assert read(content, "x.pq", label="y", hash_bits=5).matrix.nnz == 2


def test_sparse_nulls_and_infinities_are_errors(read) -> None:
    """Nothing missing inside a sparse row is read as something."""
    for index, value in (([None], [1.0]), ([1], [None]), ([1], [float("nan")]), (None, [1.0])):
        table = {
            "indices": pa.array([[1], index], pa.list_(pa.int64())),
            "values": pa.array([[1.0], value], pa.list_(pa.float64())),
            "y": [1, 2],
        }
        assert "row 2" in fault(read, table).message
    table = {"indices": [[1], [1, 2]], "values": [[1.0], [1.0]], "y": [1, 2]}
    assert "differ in length (row 2)" in fault(read, table).message


@pytest.mark.parametrize("bad", [None, float("nan"), float("inf")])
def test_missing_cells(read, bad) -> None:
    """Rule 18: null and NaN are errors by default or 0; infinity is always an error."""
    table = {"a": [1.0, bad], "y": [1, 2]}
    assert "row 2" in fault(read, table).message
    if bad == float("inf"):
        assert "infinite" in fault(read, table, missing="zero").message
    else:
        rows = read(parquet_bytes(table), "x.parquet", label="y", missing="zero")
        assert rows.matrix.toarray().tolist() == [[1], [0]]
    assert "row 2" in fault(read, {"a": [1.0, 2.0], "y": [1.0, bad]}, missing="zero").message


@pytest.mark.parametrize(
    "column",
    [
        [[1.0], [2.0]],
        [{"a": 1}, {"a": 2}],
        [[[1]], [[2]]],
        [datetime.date(2020, 1, 1)] * 2,
        [b"a", b"b"],
        ["a", "b"],
    ],
)
def test_other_types_are_a_named_error(read, column) -> None:
    """Rule 33: the column is named, and nothing of it is read."""
    error = fault(read, {"odd": column, "a": [1, 2], "y": [1, 2]})
    assert "'odd'" in error.message


def test_labels_of_the_wrong_kind(read) -> None:
    """Declared text or numbers must be what the column holds."""
    assert "text" in fault(read, {"a": [1], "y": ["x"]}, textual_labels=False).message
    assert "numeric" in fault(read, {"a": [1], "y": [1]}, textual_labels=True).message
    assert "neither" in fault(read, {"a": [1], "y": [b"x"]}).message
    assert "label" in fault(read, {"a": [1], "z": [1]}).message
    with pytest.raises(UsageError):
        read(parquet_bytes({"a": [1]}), "x.parquet")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"y,a\n1,2\n", b"PAR1" + b"\0" * 50 + b"PAR1"])
def test_something_else_called_parquet(read, content) -> None:
    """Content that contradicts the format is an error that names --format."""
    with pytest.raises(DataError) as caught:
        read(content, "x.parquet", label="y")
    assert "--format" in (caught.value.hint or "")


def test_parquet_through_a_pipe(read_stdin, monkeypatch) -> None:
    """Rule 24: spooled to a temporary file, up to a limit."""
    content = parquet_bytes({"a": [1.0, 2.0], "y": [1, 2]})
    assert read_stdin(content, format="parquet", label="y").matrix.shape == (2, 1)
    monkeypatch.setattr(spool, "SPOOL_LIMIT", 100)
    with pytest.raises(DataError, match="limit"):
        read_stdin(content, format="parquet", label="y")


def test_a_compressed_parquet_file(read) -> None:
    """A file compressed as a whole is spooled as well."""
    import gzip

    content = gzip.compress(parquet_bytes({"a": [1.0], "y": [1]}))
    assert read(content, "x.parquet.gz", label="y").matrix.shape == (1, 1)


def test_damaged_files_end_in_documented_errors(tmp_path: Path) -> None:
    """Flipping any one byte gives rows or a DataError."""
    content = parquet_bytes({"a": np.arange(20.0), "b": ["x"] * 20, "y": [1] * 20})
    options = ReadOptions(label="y", columns={"b": ColumnRole("categorical", ("x",))})
    path = tmp_path / "x.parquet"
    for at in range(0, len(content), 7):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x5A]) + content[at + 1 :])
        try:
            list(Reader([str(path)], options))
        except (DataError, UsageError):
            continue


def test_batches_do_not_matter(tmp_path: Path, monkeypatch) -> None:
    """Row numbers in errors count from the file's start, over batches and row groups."""
    from dpfit.data import parquet

    monkeypatch.setattr(parquet, "_ROWS_PER_BATCH", 3)
    values = np.arange(1.0, 21.0)
    values[13] = np.nan
    path = tmp_path / "x.parquet"
    path.write_bytes(parquet_bytes({"a": values, "y": np.ones(20)}, row_group_size=5))
    with pytest.raises(DataError, match=r"row 14"):
        list(Reader([str(path)], ReadOptions(label="y", threads=2)))
