"""The law of the CSV reader: what the fast parser accepts is what the reference parser reads."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfit.data import table_reference
from dpfit.data.delimited import BlockParser, LabelKind, read_delimited
from dpfit.data.features import FeatureMap
from dpfit.data.rows import RowBlock
from dpfit.data.schema import ColumnRole
from dpfit.data.table_reference import TablePlan
from dpfit.data.text_blocks import TextBlock, text_blocks
from dpfit.errors import DataError

ROLES = {
    "job": ColumnRole("categorical", ("clerk", "a,b", 'q"q', "1", "é")),
    "h": ColumnRole("hashed"),
    "g": ColumnRole("hashed"),
    "skip": ColumnRole("ignore"),
}
NAMES = ["y", "n", "job", "h", "skip", "g"]
MAP = FeatureMap.build(NAMES, ROLES, "y", 2)
LENIENT = {
    **ROLES,
    "n": ColumnRole(range=(-0.3, 3.0)),
    "job": ColumnRole("categorical", ("clerk", "a,b", 'q"q', "é"), other=True),
}
LENIENT_MAP = FeatureMap.build(NAMES, LENIENT, "y", 2, ("NA", "2", "0x1", "red", "nan(1)", "x"))


def plan_of(
    textual: bool, missing: str, delimiter: bytes = b",", *, lenient: bool = False
) -> TablePlan:
    columns = LENIENT_MAP if lenient else MAP
    positions = tuple(NAMES.index(column.name) for column in columns.columns)
    labels = (None, ("1", "-1.5", "x") if textual else (1.0, -1.5))[lenient]
    return TablePlan(delimiter, len(NAMES), columns, positions, 0, textual, missing, labels)


NUMBERS = st.one_of(
    st.floats(-9, 9).map(repr),
    st.sampled_from(["0", "-0.0", "1.", ".5", " 2 ", "\t3", "+4", '"5"', '" 6"', "1e5"]),
    st.sampled_from(["", " ", "nan", "-NaN", "nan(1)", "inf", "1e400", "0x1", "1_0", "NA", "1,5"]),
)
JOBS = st.sampled_from(["clerk", '"a,b"', '"q""q"', " clerk ", '"clerk"', "1", "é", "", "x", '""'])
HASHED = st.one_of(
    st.text('ab,"\n\r\t 1#', max_size=5),
    st.sampled_from(["red", "blue", '"a\nb"', '"a\r\nb"', "NA", "null", '"x"y', 'x"y"', "a\0b"]),
)
RECORDS = st.tuples(NUMBERS, NUMBERS, JOBS, HASHED, HASHED, HASHED).map(",".join)
GOOD = st.tuples(
    st.sampled_from(["1", "-1.5", "2"]),
    st.sampled_from(["0", "3.25", " 1e-3"]),
    st.sampled_from(["clerk", '"a,b"', "é"]),
    *[st.sampled_from(["red", "blue", '"a\nb"', '"say ""hi"""'])] * 3,
).map(",".join)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
LINES = st.one_of(GOOD, GOOD, RECORDS, st.sampled_from(["", " ", "1,2", '"', ",,,,,", ",,,,,,"]))
FILES = st.lists(LINES, max_size=5).flatmap(
    lambda rows: st.sampled_from(["\n", "\r\n"]).map(lambda end: end.join(rows) + end)
)


def same_bits(a: RowBlock, b: RowBlock) -> bool:
    arrays = [(a.indptr, b.indptr), (a.indices, b.indices), (a.values, b.values)]
    assert a.target is not None
    assert b.target is not None
    same = all(x.dtype == y.dtype and x.tobytes() == y.tobytes() for x, y in arrays)
    return same and a.target.dtype == b.target.dtype and a.target.tolist() == b.target.tolist()


def check_law(data: bytes, plan: TablePlan) -> bool:
    fast = BlockParser("x", plan).parse_fast(data)
    if fast is not None:
        slow = table_reference.parse_block(TextBlock(data, 1, data.count(b"\n")), "x", plan)
        assert same_bits(fast, slow)
    return fast is not None


@settings(max_examples=400, deadline=None)
@given(FILES, st.booleans(), st.sampled_from(["error", "zero"]), st.booleans())
def test_accepted_text_reads_as_by_the_reference(
    text: str, textual: bool, missing: str, lenient: bool
) -> None:
    """Fast result = reference result, bit for bit, whenever there is a fast result."""
    check_law(text.encode(), plan_of(textual, missing, lenient=lenient))


@settings(max_examples=250, deadline=None)
@given(
    st.lists(GOOD, min_size=1, max_size=4).map("\n".join),
    st.floats(0, 1),
    st.binary(max_size=2),
    st.integers(0, 2),
    st.booleans(),
    st.booleans(),
)
def test_mutated_text_reads_as_by_the_reference(
    text: str, place: float, patch: bytes, removed: int, textual: bool, lenient: bool
) -> None:
    """The law holds where a valid file was damaged at one place."""
    raw = text.encode()
    at = int(place * len(raw))
    check_law(
        raw[:at] + patch + raw[at + removed :] + b"\n", plan_of(textual, "zero", lenient=lenient)
    )


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["1", "-1.5", "1.0"]), FLOATS), min_size=1, max_size=5),
    st.sampled_from([[], ["clerk"], ["farmer", "é"], [" 2 ", "2.0", "2", '"2"']]),
)
def test_ranges_and_numbers_for_empty_keep_the_law(
    rows: list[tuple[str, float]], jobs: list[str]
) -> None:
    """Any finite number lands in [0, 1], by both parsers; 2 is empty only as it is written."""
    numbers = [jobs[i % len(jobs)] if jobs and i % 2 else repr(n) for i, (_, n) in enumerate(rows)]
    lines = [f"{y},{n},clerk,a,b,c" for (y, _), n in zip(rows, numbers, strict=True)]
    data = ("\n".join(lines) + "\n").encode()
    plan = plan_of(False, "zero", lenient=True)
    check_law(data, plan)
    try:
        block = BlockParser("x", plan).parse(TextBlock(data, 1, len(lines)))
    except DataError:
        assert {"clerk", "farmer", "é"} & set(numbers)
        return
    values = block.values[block.indices == 0]
    assert ((values >= 0) & (values <= 1)).all()


@settings(max_examples=100, deadline=None)
@given(st.lists(GOOD, min_size=1, max_size=5), st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_valid_text_stays_on_the_fast_path(rows: list[str], end: str) -> None:
    """Well-formed records, quoted ones included, need no second look."""
    assert check_law((end.join(rows) + end).encode(), plan_of(True, "error"))


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60), st.sampled_from([b",", b"\t", b" ", b";", b"|"]))
def test_any_bytes_end_in_rows_or_a_data_error(data: bytes, delimiter: bytes) -> None:
    """No bytes raise anything but DataError."""
    plan = plan_of(True, "zero", delimiter)
    try:
        rows = BlockParser("x", plan).parse(TextBlock(data + b"\n", 1, 1))
    except DataError:
        return
    assert np.isfinite(rows.values).all()


@settings(max_examples=100, deadline=None)
@given(FILES, st.integers(1, 40), st.integers(1, 3))
def test_block_size_and_threads_change_nothing(text: str, size: int, threads: int) -> None:
    """Blocks end at record ends, also inside quotes, and faults keep their line."""

    def outcome(size: int, threads: int) -> tuple[object, ...]:
        blocks = text_blocks(io.BytesIO(text.encode()), "x", size=size, quote=b'"')
        plan = plan_of(True, "zero")
        try:
            rows = list(read_delimited(blocks, "x", plan, LabelKind(True), threads))
        except DataError as error:
            return ("error", str(error))
        return tuple(np.concatenate([b.values for b in rows]).tolist()) if rows else ()

    assert outcome(1 << 20, 1) == outcome(size, threads)


def test_a_byte_order_mark_counts_at_the_start_of_the_file_only() -> None:
    """A block that starts with one keeps it as part of its first cell."""
    plan = plan_of(True, "zero")
    mark = b"\xef\xbb\xbf"
    for record in (b"y,2,clerk,a,b,c\n", b'"y",2,clerk,a,b,c\n', b"\n"):
        check_law(mark + record, plan)
    assert BlockParser("x", plan).parse(TextBlock(mark + b"y,2,clerk,a,b,c\n", 1, 1)).target == [
        "\ufeffy"
    ]


@pytest.mark.parametrize("tail", ["", "\n", "\r\n", "\n\n\n"])
def test_the_last_newline_may_be_missing(tail: str) -> None:
    """A file ends in a newline or without one."""
    text = "1,2,clerk,a,b,c" + tail
    blocks = text_blocks(io.BytesIO(text.encode()), "x", quote=b'"')
    rows = list(read_delimited(blocks, "x", plan_of(False, "error"), LabelKind(False)))
    assert sum(block.n_rows for block in rows) == 1
