"""The one entry point: files, directories, pipes, round trips, and silence about data values."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfit.data.features import FeatureMap
from dpfit.data.reader import Reader, ReadOptions
from dpfit.data.rows import RowBlock
from dpfit.data.schema import ColumnRole
from dpfit.errors import DataError, DpfitError, StorageError, UsageError

SHARED = Path(
    os.environ.get("DPFIT_SHARED_DATA", Path(__file__).parents[2].parent / "shared" / "data")
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def blocks_of(content: bytes, **options: object) -> list[RowBlock]:
    return list(Reader(["-"], ReadOptions(**options), stdin=io.BytesIO(content)))  # type: ignore[arg-type]


def write(folder: Path, **files: str) -> list[str]:
    paths = []
    for name, text in files.items():
        path = folder / name.replace("_", ".")
        path.write_text(text)
        paths.append(str(path))
    return paths


def test_files_are_read_in_the_given_order(tmp_path: Path) -> None:
    """Rows are concatenated; a directory's parts come by name; empty parts are fine."""
    paths = write(tmp_path, b_svm="2 1:1\n", a_svm="1 1:1\n", c_svm="")
    reader = Reader(paths, ReadOptions())
    assert [block.target.tolist() for block in reader] == [[2], [1]]
    assert [block.target.tolist() for block in reader] == [[2], [1]]
    assert [b.target.tolist() for b in Reader([str(tmp_path)], ReadOptions())] == [[1], [2]]


@pytest.mark.parametrize("content", ["", "\n\n", "# only a note\n"])
def test_no_records_is_an_error(tmp_path: Path, content: str) -> None:
    """An empty input is not a data set of no rows."""
    for path in write(tmp_path, a_svm=content):
        with pytest.raises(DataError, match="holds no records"):
            list(Reader([path], ReadOptions()))
    for path in write(tmp_path, a_csv=content.replace("# only a note", "y,a")):
        with pytest.raises(DataError, match="holds no records"):
            list(Reader([path], ReadOptions(label="y")))


def test_the_first_disagreeing_file_is_named(tmp_path: Path) -> None:
    """All files have the first one's format, columns and kind of label."""
    paths = write(tmp_path, a_csv="y,a,b\n1,2,3\n", b_csv="b,y,a\n5,4,6\n", c_csv="y,a,c\n1,2,3\n")
    with pytest.raises(DataError) as caught:
        list(Reader(paths, ReadOptions(label="y")))
    assert caught.value.path == paths[2]
    assert caught.value.message == "missing columns: 'b'; 1 extra column"
    rows = list(Reader(paths[:2], ReadOptions(label="y")))
    assert [row.values.tolist() for row in rows] == [[2, 3], [6, 5]]
    with pytest.raises(UsageError, match=r"d\.svm"):
        Reader([*paths, *write(tmp_path, d_svm="1 1:1\n")], ReadOptions(label="y"))
    paths = write(tmp_path, a_svm="1:1\n", b_svm="1 1:1\n")
    with pytest.raises(DataError) as caught:
        list(Reader(paths, ReadOptions(target_required=False)))
    assert caught.value.path == paths[1]


def test_the_feature_map_is_known_before_the_rows() -> None:
    """Asking for it reads the header only, on a pipe too; no row is lost."""
    stdin = io.BytesIO(b"y,a,b\n1,2,3\n")
    reader = Reader(["-"], ReadOptions(format="csv", label="y"), stdin=stdin)
    assert reader.feature_map is not None
    assert reader.feature_map.names == ["a", "b"]
    assert (reader.format, reader.index_base) == ("csv", 0)
    assert sum(block.n_rows for block in reader) == 1


def test_facts_stay_known_after_the_rows() -> None:
    """A pipe is not opened again by asking; sparse Parquet has no feature map and base 0."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"indices": [[0]], "values": [[1.0]], "y": [1]}), sink)
    stdin = io.BytesIO(sink.getvalue())
    reader = Reader(["-"], ReadOptions(format="parquet", label="y"), stdin=stdin)
    assert sum(block.n_rows for block in reader) == 1
    assert reader.feature_map is None
    assert reader.index_base == 0


def test_wide_tables_keep_rows_and_lines() -> None:
    """Blocks of a wide table are joined; rows and the line of a fault stay right."""
    width, height = 700, 1500
    header = ",".join(f"x{i}" for i in range(width)) + ",y\n"
    row = ",".join(["1"] * (width + 1)) + "\n"
    text = header + row * height
    blocks = blocks_of(text.encode(), format="csv", label="y", threads=2)
    assert sum(block.n_rows for block in blocks) == height
    assert sum(len(block.values) for block in blocks) == width * height
    with pytest.raises(DataError) as caught:
        blocks_of((text + "x" + row).encode(), format="csv", label="y")
    assert caught.value.line == height + 2


def test_prediction_matches_columns_by_name(tmp_path: Path) -> None:
    """Rules 5, 16: the model's map rules order and roles."""
    roles = {"job": ColumnRole("categorical", ("x", "z")), "id": ColumnRole("ignore")}
    fmap = FeatureMap.build(["id", "a", "job", "y"], roles, "y", None)
    options = ReadOptions(label="y", feature_map=fmap, target_required=False)
    (path,) = write(tmp_path, a_csv="job,id,a\nz,text,7\n")
    (block,) = Reader([path], options)
    assert block.indices.tolist() == [0, 2]
    assert block.values.tolist() == [7, 1]
    (path,) = write(tmp_path, a_csv="job,id,new\nz,text,7\n")
    with pytest.raises(DataError, match=r"missing columns: 'a'; 1 extra column$"):
        list(Reader([path], options))


def test_bases(tmp_path: Path) -> None:
    """The reader says what base its indices have, where it is known."""
    (path,) = write(tmp_path, a_svm="1 1:1\n")
    assert Reader([path], ReadOptions()).index_base is None
    assert Reader([path], ReadOptions(index_base=1)).index_base == 1
    assert Reader([path], ReadOptions(index_base=1, hash_bits=9)).index_base == 0


@pytest.mark.parametrize(
    "bad",
    [
        {"format": "arff"},
        {"duplicates": "max"},
        {"missing": "mean"},
        {"index_base": 2},
        {"hash_bits": 31},
        {"hash_bits": 0},
        {"n_features": 0},
        {"threads": 0},
        {"encoding": "base64"},
        {"format": "auto"},
    ],
)
def test_impossible_options_are_usage_errors(bad: dict[str, object]) -> None:
    """Before anything is read."""
    with pytest.raises(UsageError):
        Reader(["-"], ReadOptions(**bad))  # type: ignore[arg-type]


# Round trips


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(FLOATS, st.dictionaries(st.integers(0, 2**31 - 2), FLOATS, max_size=6)),
        min_size=1,
        max_size=6,
    )
)
def test_libsvm_round_trip(rows: list[tuple[float, dict[int, float]]]) -> None:
    """parse(write(x)) == x, to the last bit."""
    text = "".join(
        " ".join([repr(y), *(f"{i}:{v!r}" for i, v in row.items())]) + "\n" for y, row in rows
    )
    (block,) = blocks_of(text.encode(), format="libsvm")
    assert block.target is not None
    assert block.target.tolist() == [y for y, _ in rows]
    expected = [sorted(row.items()) for _, row in rows]
    assert block.indices.tolist() == [i for row in expected for i, _ in row]
    assert block.values.tolist() == [v for row in expected for _, v in row]


TEXTS = (
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)
    .map(lambda s: s.strip(" \t"))
    .filter(bool)
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(TEXTS, FLOATS, TEXTS), min_size=1, max_size=6),
    st.sampled_from(["\n", "\r\n"]),
)
def test_csv_round_trip(rows: list[tuple[str, float, str]], end: str) -> None:
    """parse(write(x)) == x for numbers, levels and labels of any characters."""
    levels = tuple(dict.fromkeys(text for _, _, text in rows))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=end, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerows([("y", "n", "t"), *rows])
    columns = {"t": ColumnRole("categorical", levels)}
    (block,) = blocks_of(
        out.getvalue().encode(), format="csv", label="y", columns=columns, textual_labels=True
    )
    assert block.target is not None
    assert block.target.tolist() == [label for label, _, _ in rows]
    dense = np.zeros((len(rows), 1 + len(levels)))
    dense[np.repeat(np.arange(len(rows)), np.diff(block.indptr)), block.indices] = block.values
    assert dense[:, 0].tolist() == [number for _, number, _ in rows]
    assert [levels[row.argmax()] for row in dense[:, 1:]] == [text for _, _, text in rows]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(FLOATS, FLOATS), min_size=1, max_size=6))
def test_parquet_round_trip(rows: list[tuple[float, float]]) -> None:
    """parse(write(x)) == x."""
    sink = io.BytesIO()
    y, a = zip(*rows, strict=True)
    pq.write_table(pa.table({"y": y, "a": a}), sink)
    (block,) = blocks_of(sink.getvalue(), format="parquet", label="y")
    assert block.target is not None
    assert block.target.tolist() == list(y)
    assert block.values.tolist() == [value for value in a if value]


# Anything at all


@settings(max_examples=400, deadline=None)
@given(
    st.one_of(st.binary(max_size=80), st.text(max_size=60).map(str.encode)),
    st.sampled_from(["libsvm", "csv", "tsv", "parquet"]),
    st.sampled_from(["utf-8", "latin-1", "utf-16", "utf-7"]),
    st.booleans(),
)
def test_any_bytes_end_in_rows_or_documented_errors(
    content: bytes, kind: str, encoding: str, header: bool
) -> None:
    """No format lets another exception out."""
    try:
        label = None if kind == "libsvm" else "1"
        blocks_of(
            content,
            format=kind,
            label=label,
            encoding=encoding,
            header=header,
            target_required=label is None,
        )
    except (DataError, UsageError, StorageError):
        return


SECRETS = ["31415.9265", "-0xSECRET", "Jane_Doe", "nan", "1e999", "2718281828459", "SECRET:7"]
PLACES = {
    "libsvm": ["1 1:2\n{} 1:1\n", "1 1:2\n1 {}:1\n", "1 1:1\n1 1:{}\n", "1 1:1\n1 {}\n",
               "1 {0}:1 {0}:1\n", "1 1:1 qid:{}\n", "{}\n1 1:1\n"],
    "csv": ["y,a\n1,{}\n", "y,a\n{},1\n", "y,job\n1,{}\n", "y,a\n1,2,{}\n", '{0},{0}\n1,2\n',
            'y,a\n1,"{}\n', 'y,a\n1,"2"{}\n', "{},b\n1,2\n", "y,{}\n\n",
            "y,a,exposure\n1,2,{}\n"],
}  # fmt: skip


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(("kind", "text"), [(k, t) for k, ts in PLACES.items() for t in ts])
@pytest.mark.parametrize("flag", [True, False])
def test_no_error_tells_a_value(kind: str, text: str, secret: str, flag: bool) -> None:
    """Message, hint and chained exceptions carry no planted secret and are one line."""
    columns = {"job": ColumnRole("categorical", ("clerk",))} if "job" in text else {}
    label = None if kind == "libsvm" else "y"
    options = {"columns": columns, "label": label, "n_features": 9, "target_required": flag}
    options |= {"labels": (1.0, 2.0), "predicting": not flag}
    if "exposure" in text:
        options["exposure"] = "exposure"
    error = error_of(text.format(secret).encode(), format=kind, **options)
    said = f"{error or ''} {(error and error.hint) or ''}"
    assert "\n" not in said
    assert secret not in said.replace("NaN", "")
    assert error is None or error.__suppress_context__ or error.__context__ is None


def error_of(content: bytes, **options: object) -> DpfitError | None:
    try:
        blocks_of(content, **options)
    except DpfitError as error:
        return error
    return None


# Other readers


@pytest.mark.parametrize("name", ["heart_scale.svm.gz", "frappe.zero-based.svm.gz", "a9a.svm.gz"])
def test_agrees_with_scikit_learn_on_real_files(name: str) -> None:
    """Same matrix and labels as load_svmlight_file, where the shared data are there."""
    if not (SHARED / name).exists():
        pytest.skip("no shared data")
    agree_with_scikit_learn(str(SHARED / name))


def agree_with_scikit_learn(path: str) -> None:
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(path, zero_based=True)
    blocks = list(Reader([path], ReadOptions(threads=2)))
    assert np.concatenate([block.target for block in blocks]).tolist() == y.tolist()
    assert np.concatenate([block.indices for block in blocks]).tolist() == X.indices.tolist()
    assert np.concatenate([block.values for block in blocks]).tolist() == X.data.tolist()


def test_agrees_with_scikit_learn(tmp_path: Path) -> None:
    """Same matrix and labels as load_svmlight_file on a file of several blocks."""
    rng = np.random.default_rng(1)
    path = tmp_path / "x.svm"
    with path.open("w") as file:
        for _ in range(6000):
            columns = np.sort(rng.choice(5000, 25, replace=False)) + 1
            values = rng.random(25)
            pairs = (f"{i}:{v:.7f}" for i, v in zip(columns, values, strict=True))
            file.write(f"{rng.choice(['+1', '-1'])} {' '.join(pairs)}\n")
    assert path.stat().st_size > 2 << 20
    agree_with_scikit_learn(str(path))


def test_a_line_has_a_limit(monkeypatch) -> None:
    """An endless line ends in an error, not in memory."""
    from dpfit.data import text_blocks

    monkeypatch.setattr(text_blocks, "LINE_LIMIT", 3 << 20)
    with pytest.raises(DataError, match="longer than 3 MiB"):
        blocks_of(b"1 1:1\n1 " + b"2:3 " * (1 << 20), format="libsvm")


@pytest.mark.filterwarnings("default")
def test_reading_imports_no_scikit_learn() -> None:
    """scikit-learn costs half a second to import: dpfit/data does without."""
    import subprocess
    import sys

    code = "import dpfit.data.reader, sys; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
