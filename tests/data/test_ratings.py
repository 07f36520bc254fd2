"""Ratings: every format means the same, several files are one input, faults have their place."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfit.data.id_table import IdTable, read_ids
from dpfit.data.ratings import RatingOptions, RatingReader
from dpfit.data.ratings_by_user import RatingTable, collect_ratings, stream_ratings
from dpfit.data.text_blocks import text_blocks
from dpfit.errors import DataError, StorageError, UsageError

NAMES = {"user": "u", "item": "i", "value": "v"}
MATRIX = "%%MatrixMarket matrix coordinate integer general\n% a note\n\n3 4 4\n"
TRIPLES = [("1", "2", 5.0), ("1", "4", 3.0), ("3", "1", 1.0), ("3", "4", 0.0)]


def parquet(columns: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


CONTENTS = {
    "csv": "u,when,i,v\n1,x,2,5\n1,x,4,3\n3,x,1,1\n3,x,4,0\n",
    "tsv": "v\ti\tu\n5\t2\t1\n3\t4\t1\n1\t1\t3\n0\t4\t3\n",
    "mtx": MATRIX + "1 2 5\n1 4 3\n3 1 1\n3 4 0\n",
    "libsvm": "2:5 4:3\n# a note\n1:1 4:0\n",
    "parquet": parquet({"v": [5, 3, 1, 0], "u": [1, 1, 3, 3], "i": [2, 4, 1, 4]}),
}


def options_of(kind: str, **more: Any) -> RatingOptions:
    return RatingOptions(format=kind, **({} if kind in ("mtx", "libsvm") else NAMES), **more)


def table_of(content: bytes | str, kind: str, *, items: Any = None, **more: Any) -> RatingTable:
    data = content.encode() if isinstance(content, str) else content
    fixed = None if items is None else IdTable(items, fixed=True)
    return collect_ratings(
        RatingReader(["-"], options_of(kind, **more), io.BytesIO(data), items=fixed)
    )


def triples(table: RatingTable) -> list[tuple[str, str, float]]:
    ratings = table.ratings
    return [
        (table.users.texts[row], table.items.texts[item], value)
        for row, item, value in zip(
            ratings.rows.tolist(), ratings.items.tolist(), ratings.values.tolist(), strict=True
        )
    ]


def fault(content: bytes | str, kind: str, **more: Any) -> str:
    with pytest.raises(DataError) as caught:
        table_of(content, kind, **more)
    return str(caught.value)


@pytest.mark.parametrize("kind", sorted(CONTENTS))
def test_every_format_reads_the_same_ratings(kind: str) -> None:
    """Users, items and values; a value of 0 is a rating like any other."""
    found = triples(table_of(CONTENTS[kind], kind))
    expected = TRIPLES
    if kind == "libsvm":  # its users are the rows
        expected = [("1" if user == "1" else "2", item, value) for user, item, value in TRIPLES]
    assert found == expected


def test_a_libsvm_row_without_entries_is_a_user() -> None:
    """Rows count, labels do not; the users of a second file follow."""
    table = table_of("1 1:5\n1\n-1 2:4 # two\n1\n", "libsvm")
    assert table.users.texts == ["1", "2", "3", "4"]
    assert np.diff(table.ratings.indptr).tolist() == [1, 0, 1, 0]


def test_columns_go_by_number_without_a_header() -> None:
    """From 1, as the other tables count; a header is then a faulty record."""
    options = {"header": False, "user": "2", "item": "1", "value": "4"}
    data = b"a\tx\t0\t4.5\nb\tx\t0\t3\n"
    reader = RatingReader(["-"], RatingOptions(format="tsv", **options), io.BytesIO(data))
    assert triples(collect_ratings(reader)) == [("x", "a", 4.5), ("x", "b", 3.0)]
    with pytest.raises(DataError, match="the value column 'c4' is not among the columns"):
        list(RatingReader(["-"], RatingOptions(format="csv", **options), io.BytesIO(b"1,2,3\n")))


@pytest.mark.parametrize("kind", sorted(CONTENTS))
def test_several_files_folders_and_compression(tmp_path: Path, kind: str) -> None:
    """Parts of a folder by name, compressed ones too; rows of LIBSVM and matrices are new users."""
    folder = tmp_path / "parts"
    folder.mkdir()
    second = {
        "csv": b"i,u,v\n2,z,2\n",
        "tsv": b"u\ti\tv\nz\t2\t2\n",
        "parquet": parquet({"v": [2.0], "u": ["z"], "i": ["2"]}),
        "libsvm": b"2:2\n",
        "mtx": b"%%MatrixMarket matrix coordinate real general\n1 4 1\n1 2 2\n",
    }[kind]
    content = CONTENTS[kind]
    (folder / f"1.{kind}").write_bytes(content.encode() if isinstance(content, str) else content)
    (folder / f"2.{kind}.gz").write_bytes(gzip.compress(second))
    table = collect_ratings(RatingReader([str(folder)], options_of(kind)))
    user = {"mtx": "4", "libsvm": "3"}.get(kind, "z")
    assert len(table.ratings.values) == 5
    assert triples(table)[-1] == (user, "2", 2.0)
    assert table.items.texts == ["1", "2", "4"]


def test_formats_do_not_mix(tmp_path: Path) -> None:
    """Every file has the format of the first; a matrix the columns of the first."""
    (tmp_path / "a.csv").write_text("u,i,v\n1,1,1\n")
    (tmp_path / "b.mtx").write_text("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n")
    (tmp_path / "c.mtx").write_text("%%MatrixMarket matrix coordinate real general\n1 2 1\n1 2 1\n")
    with pytest.raises(UsageError, match=r"b\.mtx: this file is mtx, the first one csv"):
        RatingReader([str(tmp_path / "a.csv"), str(tmp_path / "b.mtx")], RatingOptions(**NAMES))
    with pytest.raises(DataError, match=r"c\.mtx: the first file has another number"):
        list(RatingReader([str(tmp_path / "b.mtx"), str(tmp_path / "c.mtx")], RatingOptions()))


def test_whole_numbers_and_texts_are_the_same_identifiers() -> None:
    """7 of a Parquet integer is 7 of a text; 007 is another. Unused dictionary entries are none."""
    users = pa.DictionaryArray.from_arrays([2, 0], ["b", "unused", "a"])
    items = pa.DictionaryArray.from_arrays([1, 1], [8, 7])
    table = table_of(parquet({"u": users, "i": items, "v": [1.0, 2.0]}), "parquet", items=["7"])
    assert table.users.texts == ["a", "b"]
    assert triples(table) == [("a", "7", 1.0), ("b", "7", 2.0)]
    assert "not among those declared" in fault("u,i,v\n1,007,2\n", "csv", items=["7"])


def test_assumed_items_are_in_an_order_that_says_nothing() -> None:
    """Numbers by size, then texts by their letters, whatever the order of the ratings."""
    orders = [["b", "10", "a", "9", "09", "é"], ["é", "09", "9", "a", "10", "b"]]
    for order in orders:
        content = "u,i,v\n" + "".join(f"1,{item},2\n" for item in order)
        found = table_of(content, "csv").items.texts
        assert found == ["09", "9", "10", "a", "b", "é"]


def test_declared_items_keep_their_order(tmp_path: Path) -> None:
    """One a line; blank lines and blanks around are nothing; a fixed table does not grow."""
    path = tmp_path / "items.txt"
    path.write_bytes(b"\xef\xbb\xbf 4 \r\n\n2\n#x\n1")
    ids = read_ids(str(path))
    assert ids == ("4", "2", "#x", "1")
    table = table_of(CONTENTS["csv"], "csv", items=ids)
    assert table.items.texts == list(ids)
    assert sorted(triples(table)) == TRIPLES
    for content, message in [
        (b"a\nb\na\n", "items.txt:3: the identifier also stands on line 1"),
        (b"a\n\xff\n", "items.txt:2: the line is not UTF-8"),
        (b"a\0b\n", "items.txt:1: the line holds a NUL"),
        (b" \n\n", "items.txt: the file holds no identifiers"),
    ]:
        path.write_bytes(content)
        with pytest.raises(DataError, match=message):
            read_ids(str(path))
    with pytest.raises(StorageError):
        read_ids(str(tmp_path / "none.txt"))


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        ("csv", "u,i,v\n1,2,3\n\n1,5,3\n", "standard input:4: the item (field 2) is not among"),
        ("csv", 'u,i,v\n"1\n1",2,3\n1,5,3\n', "standard input:4: the item"),
        ("mtx", MATRIX + "1 2 5\n1 3 3\n3 1 1\n3 4 0\n", "standard input:6: the item is not"),
        ("libsvm", "1 1:2\n# note\n\n1 2:1 3:2\n", "standard input:4: the item is not among"),
        ("parquet", parquet({"u": [1, 2], "i": [1, 5], "v": [1, 1]}), "is not among those "),
    ],
)
def test_an_item_that_is_not_declared_has_its_place(
    kind: str, content: bytes | str, message: str
) -> None:
    """File and line, row in Parquet; with --ignore-new-items the rating is left out instead."""
    known = ["1", "2", "4"]
    assert message in fault(content, kind, items=known)
    if kind == "parquet":
        assert "row 2" in fault(content, kind, items=known)
    kept = table_of(content, kind, items=known, ignore_new_items=True)
    assert {item for _, item, _ in triples(kept)} <= set(known)
    assert len(triples(kept)) >= 1


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        ("csv", "u,i,v\nsecret,2,3\nsecret,2,\n", ":3: the value (field 3) is empty"),
        ("csv", "u,i,v\nsecret,2,nan\n", ":2: the value (field 3) is not finite"),
        ("csv", "u,i,v\nsecret,2,4,5\n", ":2: the record has 4 fields where 3"),
        ("csv", "u,i,v\n ,2,4\n", ":2: the user (field 1) is empty"),
        ("csv", "u,i,v\n1,,4\n", ":2: the item (field 2) is empty"),
        ("csv", b"u,i,v\n\xff,1,4\n", ":2: the user (field 1) is not UTF-8"),
        ("csv", "u,i\n1,1\n", "the value column 'v' is not among the columns"),
        ("csv", "1,2,3\n", ":1: the names of columns 1, 2 and 3 are numbers"),
        ("csv", "1 2:3 4:5\n", ":1: the first record consists of INDEX:VALUE pairs"),
        ("csv", "u,i,v\n", "the input holds no ratings"),
        ("csv", "", "the input holds no ratings"),
        (
            "csv",
            "u,i,v\nsecret,2,3\nx,2,3\nsecret,2,4\n",
            ":4: a user rates an item for the second time",
        ),
        ("csv", "u,i,v\n\nsecret,2,3\nx,2,3\nsecret,2,4\n", "for the second time (rating 3)"),
        ("mtx", MATRIX + "1 2 1\n1 1 2\n1 2 1\n3 4 0\n", ":7: a user rates an item for the sec"),
        ("parquet", parquet({"u": [1] * 2, "i": [1] * 2, "v": [1] * 2}), "time (rating 2)"),
        ("libsvm", "1:2 1:3\n", ":1: a column index is repeated"),
        ("parquet", parquet({"u": [1.5], "i": [1], "v": [1]}), "user column 'u' holds neither"),
        ("parquet", parquet({"u": [1], "i": [1], "v": ["1"]}), "the value column 'v' is not"),
        (
            "parquet",
            parquet({"u": [1, None], "i": [1, 1], "v": [1, 1]}),
            "user is empty (row 2)",
        ),
        ("parquet", parquet({"u": [1], "i": [1], "v": [np.nan]}), "the value is empty or NaN (row"),
        ("parquet", b"PAR1", "not a readable Parquet file"),
    ],
)
def test_faults_are_one_line_without_a_value(kind: str, content: bytes | str, message: str) -> None:
    """The place and the cause; never what stands there."""
    said = fault(content, kind)
    assert message in said
    assert "\n" not in said
    assert "secret" not in said


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("3 3 1\n", ":1: the first line is no Matrix Market banner"),
        ("%%MatrixMarket vector coordinate real general\n", ":1: the banner names no matrix"),
        ("%%MatrixMarket matrix array real general\n", ":1: the matrix is not in coordinate form"),
        ("%%MatrixMarket matrix coordinate pattern general\n", ":1: a pattern matrix holds no"),
        ("%%MatrixMarket matrix coordinate complex general\n", ":1: the values are neither"),
        ("%%MatrixMarket matrix coordinate real symmetric\n", ":1: a symmetric matrix does not"),
        (MATRIX.replace("3 4 4", "3 4"), ":4: the size line does not hold three"),
        (MATRIX.replace("3 4 4", "3 4 x"), ":4: the size line does not hold three"),
        (MATRIX.replace("3 4 4", "9999999999 4 4"), ":4: the matrix has over 2^31"),
        (MATRIX.replace("3 4 4\n", ""), "the file ends before its size line"),
        (MATRIX + "1 1 1\n", "there are fewer entries than the size line says"),
        (MATRIX + "1 1 1\n1 2 1\n\n1 3 1\n1 4 1\n2 1 1\n", ":10: there are more entries"),
        (MATRIX + "4 1 1\n", ":5: the row is outside the size"),
        (MATRIX + "1 0 1\n", ":5: the column is outside the size"),
        (MATRIX + "1 1.0 1\n", ":5: the column is not a whole number"),
        (MATRIX + "1 1\n", ":5: the line does not hold a row, a column and a value"),
        (MATRIX + "1 1 inf\n", ":5: the value is not finite"),
    ],
)
def test_matrices_that_hold_no_ratings(head: str, message: str) -> None:
    """Pattern, symmetric, dense, truncated and contradictory files are refused by name."""
    assert message in fault(head, "mtx")


def test_the_later_rating_counts_if_asked() -> None:
    """A user's second rating of an item: an error with its place, or --duplicates last."""
    content = "u,i,v\n1,2,3\n2,2,1\n1,2,4\n1,1,9\n"
    assert ":4: a user rates an item for the second time" in fault(content, "csv")
    found = triples(table_of(content, "csv", duplicates="last"))
    assert found == [("1", "1", 9.0), ("1", "2", 4.0), ("2", "2", 1.0)]
    assert triples(table_of("1:2 1:3\n", "libsvm", duplicates="last")) == [("1", "1", 3.0)]


def test_a_user_who_comes_back_is_found() -> None:
    """Streaming is for files where the ratings of a user stand together."""
    content = b"u,i,v\na,1,3\nb,1,3\nsecret,1,3\na,2,3\n"
    items = IdTable(["1", "2"], fixed=True)
    reader = RatingReader(["-"], options_of("csv"), io.BytesIO(content), items=items)
    with pytest.raises(DataError, match=r"input:5: a user comes back after another one"):
        list(stream_ratings(reader))


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 1), st.binary(min_size=1, max_size=3))
def test_damaged_parquet_ends_in_ratings_or_a_data_error(place: float, patch: bytes) -> None:
    """The law of all inputs, for a valid file damaged at one place."""
    data = CONTENTS["parquet"]
    assert isinstance(data, bytes)
    at = int(place * len(data))
    try:
        table_of(data[:at] + patch + data[at + len(patch) :], "parquet")
    except DataError:
        return


@pytest.mark.parametrize("threads", [1, 3])
def test_more_threads_same_ratings(monkeypatch: Any, threads: int) -> None:
    """Blocks come in file order, and users get the same codes."""
    monkeypatch.setitem(text_blocks.__kwdefaults__, "size", 64)
    content = "u,i,v\n" + "".join(f"{i % 7},{i},{i}\n" for i in range(300))
    table = table_of(content, "csv", threads=threads)
    assert table.users.texts == [str(i) for i in range(7)]
    assert sorted(value for _, _, value in triples(table)) == list(range(300))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"user": None}, "the user column is not named"),
        ({"value": None}, "the value column is not named"),
        ({"item": "u"}, "cannot be both the user and the item"),
        ({"duplicates": "sum"}, "--duplicates is one of error, last"),
        ({"format": "libsvm"}, "--user names a column of a table; a LIBSVM file"),
        ({"format": "mtx"}, "--user names a column of a table; a Matrix Market file"),
        ({"format": "arff"}, "unknown format; --format is one of auto, libsvm, csv, tsv, parquet"),
    ],
)
def test_options_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    """Found before anything is opened."""
    with pytest.raises(UsageError, match=message):
        RatingReader(["-"], RatingOptions(**{"format": "csv", **NAMES, **changes}))


def test_pairs_need_no_value() -> None:
    """Without values the column is not even looked for."""
    stream = io.BytesIO(b"i,u\n1,2\n")
    (block,) = RatingReader(["-"], options_of("csv", values=False), stream)
    assert block.value is None
    assert len(block) == 1
