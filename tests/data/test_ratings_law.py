"""The laws of the rating readers: fast results are the strict ones, and no bytes crash them."""

from __future__ import annotations

import io
import re
import tempfile
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpfit.data import rating_reference
from dpfit.data.encode import CodedText
from dpfit.data.id_table import IdTable
from dpfit.data.matrix_market import EntryParser, MatrixSize
from dpfit.data.rating_records import RatingParser
from dpfit.data.rating_reference import RatingPlan
from dpfit.data.rating_rows import CodedRatings, ItemRule
from dpfit.data.rating_runs import RatingRuns
from dpfit.data.ratings import RATING_FORMATS, RatingOptions, RatingReader
from dpfit.data.ratings_by_user import collect_ratings, stream_ratings
from dpfit.data.text_blocks import TextBlock
from dpfit.errors import DataError

KNOWN = ItemRule(frozenset(["1", "7", "a,b", "é", 'q"q']))
NAMES = {"user": "u", "item": "i", "value": "v"}

IDS = st.one_of(
    st.sampled_from(["1", "7", '"a,b"', "é", '"q""q"', " 7 ", "007", '"7"', "x", "", " ", '""']),
    st.text('ab,"\n\r\t 1', max_size=4),
)
VALUES = st.one_of(
    st.floats(-9, 9).map(repr),
    st.sampled_from(["3", "0.5", ".5", "5.", " 2 ", "+4", "-0", '"5"', "1e-3"]),
    st.sampled_from(["", " ", "nan", "inf", "1e400", "0x1", "1_0", "NA", "nan(1)", "-"]),
)
GOOD = st.tuples(
    st.sampled_from(["1", "2", "anna", '"b,c"', "é"]),
    st.sampled_from(["1", "7", '"a,b"', "é"]),
    st.sampled_from(["x", "", '"a\nb"', "9"]),
    st.sampled_from(["1", "4.5", " 2", "-1e-3"]),
).map(",".join)
LINES = st.one_of(
    GOOD,
    GOOD,
    st.tuples(IDS, IDS, st.sampled_from(["", "z"]), VALUES).map(",".join),
    st.sampled_from(["", " ", "1,2", '"', ",,,", ",,,,"]),
)
FILES = st.lists(LINES, max_size=5).flatmap(
    lambda rows: st.sampled_from(["\n", "\r\n"]).map(lambda end: end.join(rows) + end)
)
PLANS = st.builds(
    RatingPlan,
    delimiter=st.just(b","),
    n_fields=st.just(4),
    user=st.just(0),
    item=st.just(1),
    value=st.sampled_from([3, 3, None]),
    rule=st.sampled_from([ItemRule(), ItemRule(), KNOWN]),
)


def block_of(data: bytes) -> TextBlock:
    return TextBlock(data, 1, data.count(b"\n"))


def cells(coded: CodedText) -> list[str]:
    return [coded.texts[code] for code in coded.codes]


def plain(ratings: CodedRatings) -> tuple[Any, ...]:
    values = None if ratings.values is None else ratings.values.tobytes()
    return cells(ratings.users), cells(ratings.items), values


def codes(ratings: CodedRatings) -> list[list[int]]:
    return [IdTable().codes(coded).tolist() for coded in (ratings.users, ratings.items)]


def check_law(data: bytes, plan: RatingPlan) -> bool:
    fast = RatingParser("x", plan).parse_fast(data)
    if fast is not None:
        slow = rating_reference.parse_block(block_of(data), "x", plan)
        assert plain(fast) == plain(slow)
        assert codes(fast) == codes(slow)
    return fast is not None


@settings(max_examples=400, deadline=None)
@given(FILES, PLANS)
def test_accepted_records_read_as_by_the_reference(text: str, plan: RatingPlan) -> None:
    """Fast result = reference result, texts, codes and bits, whenever there is a fast result."""
    check_law(text.encode(), plan)


@settings(max_examples=250, deadline=None)
@given(
    st.lists(GOOD, min_size=1, max_size=4).map("\n".join),
    st.floats(0, 1),
    st.binary(max_size=2),
    st.integers(0, 2),
    PLANS,
)
def test_damaged_records_read_as_by_the_reference(
    text: str, place: float, patch: bytes, removed: int, plan: RatingPlan
) -> None:
    """The law holds where a valid file was damaged at one place."""
    raw = text.encode()
    at = int(place * len(raw))
    check_law(raw[:at] + patch + raw[at + removed :] + b"\n", plan)


@settings(max_examples=100, deadline=None)
@given(st.lists(GOOD, min_size=1, max_size=5), st.sampled_from(["\n", "\r\n", "\n\n"]), PLANS)
def test_valid_records_stay_on_the_fast_path(rows: list[str], end: str, plan: RatingPlan) -> None:
    """Well-formed records of known items need no second look."""
    assert check_law((end.join(rows) + end).encode(), plan)


INDICES = st.sampled_from(["1", "2", "3", "003", "4", "0", "-1", "+1", "1.0", "", "9" * 20, "x"])
ENTRIES = st.one_of(
    st.tuples(st.sampled_from("123"), st.sampled_from("123"), VALUES).map(" ".join),
    st.tuples(INDICES, INDICES, VALUES).map(" ".join),
    st.tuples(st.sampled_from("12"), st.sampled_from("13"), VALUES).map("  ".join),
    st.sampled_from(["", " ", "1 2", "1 2 3 4", "%1", "1\t2\t3", " 1 2 3 ", "1 2 3\0", "1 2 3\r"]),
)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(ENTRIES, max_size=5),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([ItemRule(), ItemRule(frozenset("12"))]),
)
@example(["1 2", "3 1 2 3"], "\n", ItemRule())
def test_accepted_entries_read_as_line_by_line(rows: list[str], end: str, rule: ItemRule) -> None:
    """Matrix Market: fast result = strict result, bit for bit, whenever there is a fast result."""
    data = (end.join(rows) + end).encode()
    parser = EntryParser("x", MatrixSize(3, 3, 99), rule)
    fast = parser.parse_fast(data)
    if fast is not None:
        slow = parser.parse_slowly(block_of(data))
        for left, right in zip(vars(fast).values(), vars(slow).values(), strict=True):
            assert left.tobytes() == right.tobytes()


@pytest.mark.parametrize("end", ["\n", "\r\n", " \n", "\n\n"])
@pytest.mark.parametrize("gap", [" ", "\t", "   "])
def test_usual_entries_stay_on_the_fast_path(end: str, gap: str) -> None:
    """Blanks of any number and kind need no second look."""
    data = end.join([gap.join(["", "1", "3", "-2.5e0"]), gap.join(["2", "1", "4"]), ""]).encode()
    fast = EntryParser("x", MatrixSize(3, 3, 2), ItemRule()).parse_fast(data)
    assert fast is not None
    assert fast.row.tolist() == [1, 2]
    assert fast.value.tolist() == [-2.5, 4]


BANNER = "%%MatrixMarket matrix coordinate real general\n"
STARTS = st.sampled_from(
    [
        "",
        "u,i,v\n",
        "u,i,v\n1,2,3\n",
        BANNER,
        BANNER + "2 2 1\n1 1 1\n",
        "1 1:5\n",
        "PAR1",
        "\ufeff",
    ]
)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(RATING_FORMATS),
    STARTS,
    st.one_of(st.binary(max_size=40), st.text("0123 :,.\n\r%\t-", max_size=40).map(str.encode)),
    st.booleans(),
)
def test_any_bytes_end_in_ratings_or_a_data_error(
    kind: str, start: str, data: bytes, fixed: bool
) -> None:
    """No bytes raise anything but DataError, in any format; what is read is finite."""
    named = NAMES if kind in ("csv", "tsv", "parquet") else {}
    items = IdTable(["1", "2"], fixed=True) if fixed else None
    stream = io.BytesIO(start.encode() + data)
    reader = RatingReader(["-"], RatingOptions(format=kind, **named), stream, items=items)
    try:
        table = collect_ratings(reader)
    except DataError:
        return
    assert np.isfinite(table.ratings.values).all()
    assert table.ratings.indptr[-1] == len(table.ratings.items)
    assert table.ratings.n_users == len(table.users)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_streaming_and_collecting_give_the_same(data: st.DataObject) -> None:
    """Users whose ratings stand together: the parts joined are the whole, at any block size."""
    lengths = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    lines = ["u,i,v"]
    for user, n in enumerate(lengths):
        items = data.draw(st.permutations(range(5)))[:n]
        lines += [f"{user},{item},{data.draw(st.integers(1, 9))}" for item in items]
    size = data.draw(st.integers(1, 40))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "dpfit.data.text_blocks.text_blocks.__kwdefaults__", {"size": size, "quote": b""}
        )

        def reader() -> RatingReader:
            stream = io.BytesIO("\n".join(lines).encode())
            items = IdTable([str(i) for i in range(5)], fixed=True)
            return RatingReader(["-"], RatingOptions(format="csv", **NAMES), stream, items=items)

        whole, parts = collect_ratings(reader()).ratings, list(stream_ratings(reader()))
    assert [part.first_user for part in parts] == np.cumsum(
        [0] + [part.n_users for part in parts[:-1]]
    ).tolist()
    lengths_of_parts = np.concatenate([np.diff(part.indptr) for part in parts])
    assert lengths_of_parts.tolist() == lengths
    assert np.concatenate([part.items for part in parts]).tolist() == whole.items.tolist()
    assert np.concatenate([part.values for part in parts]).tolist() == whole.values.tolist()


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_runs_on_disk_and_collecting_give_the_same(data: st.DataObject) -> None:
    """The same ratings of all users, or the same fault, whatever part is in memory at a time."""
    rating = st.tuples(st.integers(0, 5), st.integers(0, 30), st.integers(1, 9))
    lines = ["u,i,v", *(f"{u},{i},{v}" for u, i, v in data.draw(st.lists(rating, min_size=1)))]
    duplicates = data.draw(st.sampled_from(["error", "last"]))
    fixed, size = data.draw(st.booleans()), data.draw(st.integers(1, 60))

    def reader() -> RatingReader:
        stream = io.BytesIO("\n".join(lines).encode())
        items = IdTable([str(i) for i in range(31)], fixed=True) if fixed else None
        options = RatingOptions(format="csv", duplicates=duplicates, **NAMES)
        return RatingReader(["-"], options, stream, items=items)

    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(
            "dpfit.data.text_blocks.text_blocks.__kwdefaults__", {"size": size, "quote": b""}
        )
        runs = RatingRuns(reader(), folder, data.draw(st.integers(1, 20)))
        try:
            table = collect_ratings(reader())
        except DataError as fault:
            with pytest.raises(DataError, match=f"^{re.escape(str(fault))}$"):
                list(runs.parts())
            return
        parts = list(runs.parts())
    assert (runs.n_users, runs.items.texts) == (len(table.users), table.items.texts)
    ends = np.cumsum([0] + [part.n_users for part in parts])
    assert [part.first_user for part in parts] == ends[:-1].tolist()
    counts = np.concatenate([np.diff(part.indptr) for part in parts])
    assert counts.tolist() == np.diff(table.ratings.indptr).tolist()
    for name in ("items", "values"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        assert joined.tolist() == getattr(table.ratings, name).tolist()
