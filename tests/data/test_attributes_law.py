"""The law of the CSV reader for attributes: fast results are those of the reference parser."""

from __future__ import annotations

import io

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfit.data import table_reference
from dpfit.data.attributes import ATTRIBUTES, AttributeColumn
from dpfit.data.delimited import BlockParser, LabelKind, read_delimited
from dpfit.data.features import FeatureMap
from dpfit.data.rows import RowBlock
from dpfit.data.schema import ColumnRole
from dpfit.data.table_reference import TablePlan
from dpfit.data.text_blocks import TextBlock, text_blocks
from dpfit.errors import DataError

ALL = {"weight": "w", "offset": "o", "exposure": "e"}
NAMES = ["y", "n", "w", "job", "e", "o"]
ROLES = {
    "job": ColumnRole("categorical", ("clerk", "a,b"), other=True),
    **{name: ColumnRole(role) for role, name in ALL.items()},
}
MAP = FeatureMap.build(NAMES, ROLES, "y", None, ("NA", "2"))


def plan_of(textual: bool, missing: str, roles: tuple[str, ...] = ATTRIBUTES) -> TablePlan:
    attributes = tuple(AttributeColumn(r, ALL[r], NAMES.index(ALL[r])) for r in roles)
    positions = tuple(NAMES.index(column.name) for column in MAP.columns)
    return TablePlan(b",", len(NAMES), MAP, positions, 0, textual, missing, attributes=attributes)


FINITE = st.floats(allow_nan=False, allow_infinity=False)
GOOD_NUMBERS = st.one_of(
    st.floats(5e-324, 1e308).filter(lambda number: number != 2).map(repr),
    st.sampled_from(["1", " 3 ", '"5"', "1e-300", "7."]),
)
CELLS_OF_ALL_KINDS = st.one_of(
    FINITE.map(repr),
    st.sampled_from(["", " ", "nan", "-NaN", "inf", "1e400", "1e-400", "-1e-400", "0", "-0.0"]),
    st.sampled_from(["0x1", "1_0", "NA", "2", "2.0", " 2 ", '"2"', "+4", "+-4", '" 6"', '""']),
)
GOOD = st.tuples(
    st.sampled_from(["1", "-1.5"]),
    GOOD_NUMBERS,
    st.one_of(GOOD_NUMBERS, st.just("0")),
    st.sampled_from(["clerk", '"a,b"', "spy"]),
    GOOD_NUMBERS,
    FINITE.filter(lambda number: number != 2).map(repr),
).map(",".join)
NUMBERS = st.one_of(GOOD_NUMBERS, CELLS_OF_ALL_KINDS)
RECORDS = st.tuples(
    NUMBERS, NUMBERS, NUMBERS, st.sampled_from(["clerk", "", '"a\nb"']), NUMBERS, NUMBERS
).map(",".join)
LINES = st.one_of(GOOD, GOOD, RECORDS, st.sampled_from(["", "1,2", '"', ",,,,,"]))


def same_bits(a: RowBlock, b: RowBlock) -> bool:
    for name in ("indptr", "indices", "values", "offset", "weight"):
        x, y = getattr(a, name), getattr(b, name)
        if (x is None) != (y is None):
            return False
        if x is not None and (x.dtype != y.dtype or x.tobytes() != y.tobytes()):
            return False
    assert a.target is not None
    assert b.target is not None
    return a.target.tolist() == b.target.tolist()


def check_law(data: bytes, plan: TablePlan) -> bool:
    fast = BlockParser("x", plan).parse_fast(data)
    if fast is not None:
        slow = table_reference.parse_block(TextBlock(data, 1, data.count(b"\n")), "x", plan)
        assert same_bits(fast, slow)
    return fast is not None


SOME = st.sets(st.sampled_from(ATTRIBUTES)).map(lambda some: tuple(sorted(some)))


@settings(max_examples=300, deadline=None)
@given(st.lists(LINES, max_size=5), st.booleans(), st.sampled_from(["error", "zero"]), SOME)
def test_accepted_text_reads_as_by_the_reference(
    lines: list[str], textual: bool, missing: str, roles: tuple[str, ...]
) -> None:
    """Fast result = reference result, bit for bit, whenever there is a fast result."""
    data = "".join(line + "\n" for line in lines).encode()
    check_law(data, plan_of(textual, missing, roles))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(GOOD, min_size=1, max_size=4).map("\n".join),
    st.floats(0, 1),
    st.binary(max_size=2),
    st.integers(0, 2),
)
def test_mutated_text_reads_as_by_the_reference(
    text: str, place: float, patch: bytes, removed: int
) -> None:
    """The law holds where a valid file was damaged at one place."""
    raw = text.encode()
    at = int(place * len(raw))
    check_law(raw[:at] + patch + raw[at + removed :] + b"\n", plan_of(False, "zero"))


@settings(max_examples=100, deadline=None)
@given(st.lists(GOOD, min_size=1, max_size=5), SOME)
def test_valid_text_stays_on_the_fast_path(rows: list[str], roles: tuple[str, ...]) -> None:
    """Attributes need no second look."""
    assert check_law(("\n".join(rows) + "\n").encode(), plan_of(True, "error", roles))


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.binary(max_size=40), st.lists(RECORDS, max_size=3).map("\n".join)))
def test_any_bytes_end_in_rows_or_a_data_error(data: bytes | str) -> None:
    """What gets through is within bounds; nothing else is raised."""
    raw = data.encode() if isinstance(data, str) else data
    try:
        block = BlockParser("x", plan_of(True, "zero")).parse(TextBlock(raw + b"\n", 1, 1))
    except DataError:
        return
    assert block.offset is not None
    assert block.weight is not None
    assert len(block.offset) == len(block.weight) == block.n_rows
    assert np.isfinite(block.offset).all()
    assert (np.isfinite(block.weight) & (block.weight >= 0)).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(LINES, max_size=5), st.integers(1, 40), st.integers(1, 3))
def test_block_size_and_threads_change_nothing(lines: list[str], size: int, threads: int) -> None:
    """Bits of the attributes and lines of the faults stay."""

    def outcome(size: int, threads: int) -> tuple[object, ...]:
        text = "".join(line + "\n" for line in lines).encode()
        plan = plan_of(True, "zero")
        blocks = text_blocks(io.BytesIO(text), "x", size=size, quote=b'"')
        try:
            rows = list(read_delimited(blocks, "x", plan, LabelKind(True), threads))
        except DataError as error:
            return ("error", str(error))
        both = [(b.offset, b.weight) for b in rows]
        return tuple(np.concatenate(arrays).tobytes() for arrays in zip(*both, strict=True))

    assert outcome(1 << 20, 1) == outcome(size, threads)
