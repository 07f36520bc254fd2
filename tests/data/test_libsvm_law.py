"""The law of the LIBSVM reader: what the fast parser accepts is what the reference parser reads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpfit.data import libsvm, libsvm_reference
from dpfit.data.indices import IndexRules
from dpfit.data.rows import RowBlock
from dpfit.data.text_blocks import TextBlock
from dpfit.errors import DataError

NUMBERS = st.one_of(
    st.integers(-5, 5).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1, 1).map(lambda x: f"{x:.7f}"),
    st.sampled_from(["+1", "1.", ".5", "-.5", "+.25", "1E5", "1e+5", "00.5", "1e-400", "-0"]),
    st.sampled_from(
        ["1e400", "nan", "inf", "0x10", "1_0", "1e", "+", "-", "", "+-1", "++1", "1d5"]
    ),
)
INDICES = st.one_of(
    st.integers(0, 20).map(str),
    st.sampled_from(["007", "2147483646", "2147483647", "9223372036854775807", "-0", "+5", "5."]),
    st.sampled_from(["9223372036854775808", "0x3", "", "1e1", "18446744073709551616", "x"]),
)
GAPS = st.sampled_from([" ", " ", " ", "  ", "\t", " \t "])
TAILS = st.sampled_from(["", "", "", " ", " # note", "#1:2", "\r", " \t\r"])


@st.composite
def lines(draw: st.DrawFn) -> str:
    tokens = [draw(NUMBERS)] if draw(st.integers(0, 9)) else []
    if not draw(st.integers(0, 5)):
        tokens.append("qid:" + draw(st.sampled_from(["1", "99999999999999999999", "x", "7"])))
    n = draw(st.integers(0, 4))
    indices = draw(st.lists(INDICES, min_size=n, max_size=n))
    if draw(st.booleans()):
        indices = [str(i) for i in sorted(draw(st.sets(st.integers(0, 99), max_size=4)))]
    tokens += [f"{index}:{draw(NUMBERS)}" for index in indices]
    if not draw(st.integers(0, 19)):
        tokens.append(
            draw(st.sampled_from([":5", "7", "1:2:3", "1,3", "\0", "é", "\r", ":", "::"]))
        )
    gap = draw(GAPS)
    lead = draw(st.sampled_from(["", "", "", " "]))
    return lead + gap.join(tokens) + draw(TAILS)


FILES = st.lists(st.one_of(lines(), st.just(""), st.just(" ")), max_size=5).map("\n".join)
VALID = st.lists(
    st.tuples(
        st.sampled_from(["+1", "-1", "0.5", "1e-3"]),
        st.dictionaries(st.integers(0, 50), st.floats(-9, 9).map(repr), max_size=5),
    ),
    min_size=1,
    max_size=6,
).map(lambda rows: "\n".join(" ".join([y, *(f"{i}:{v}" for i, v in r.items())]) for y, r in rows))
RULES = st.builds(
    IndexRules,
    base=st.sampled_from([None, 0, 1]),
    n_features=st.sampled_from([None, None, 10, 60]),
    duplicates=st.sampled_from(["error", "sum", "last"]),
    hash_bits=st.sampled_from([None, None, 2, 20]),
    ignore_new=st.booleans(),
)
MUTATION = st.tuples(st.floats(0, 1), st.binary(max_size=2), st.integers(0, 2))


def block_of(text: bytes) -> TextBlock:
    data = text if text.endswith(b"\n") else text + b"\n"
    return TextBlock(data, 1, data.count(b"\n"))


def same_bits(a: RowBlock, b: RowBlock) -> bool:
    arrays = [(a.indptr, b.indptr), (a.indices, b.indices), (a.values, b.values)]
    if a.target is not None and b.target is not None:
        arrays.append((a.target, b.target))
    same = all(x.dtype == y.dtype and x.tobytes() == y.tobytes() for x, y in arrays)
    return same and (a.target is None) == (b.target is None)


def check_law(text: bytes, rules: IndexRules, labelled: bool) -> None:
    block = block_of(text)
    fast = libsvm.parse_fast(block.data, block.n_lines, rules, labelled)
    if fast is not None:
        assert same_bits(fast, libsvm_reference.parse_block(block, "x", rules, labelled))


@settings(max_examples=500, deadline=None)
@given(FILES, RULES, st.booleans())
@example("1 :5\n", IndexRules(), True)
@example("+5:1\n", IndexRules(), False)
@example("+-1 1:2\n", IndexRules(), True)
@example("1 -0:5\n", IndexRules(), True)
@example("1 3:5\n:7\n", IndexRules(), True)
@example("5:1 :7\n\n", IndexRules(), False)
@example("+ 1:2\n", IndexRules(), True)
@example("1 1:1e308 1:1e308\n", IndexRules(duplicates="sum"), True)
@example("1 1:-0.0 2:5 2:-0.0\n", IndexRules(duplicates="sum"), True)
def test_accepted_text_reads_as_by_the_reference(
    text: str, rules: IndexRules, labelled: bool
) -> None:
    """Fast result = reference result, bit for bit, whenever there is a fast result."""
    check_law(text.encode(), rules, labelled)


@settings(max_examples=250, deadline=None)
@given(VALID, MUTATION, RULES, st.booleans())
def test_mutated_text_reads_as_by_the_reference(
    text: str, mutation: tuple[float, bytes, int], rules: IndexRules, labelled: bool
) -> None:
    """The law holds where a valid file was damaged at one place."""
    raw = text.encode()
    place, patch, removed = mutation
    at = int(place * len(raw))
    check_law(raw[:at] + patch + raw[at + removed :], rules, labelled)


@settings(max_examples=150, deadline=None)
@given(VALID, st.sampled_from(["\n", "\r\n", " \n", "\n\n", " # note\n", "\t\n"]))
def test_common_variants_stay_on_the_fast_path(text: str, line_end: str) -> None:
    """Valid text in its usual variants needs no second look."""
    data = (text.replace("\n", line_end) + line_end).encode()
    rows = libsvm.parse_fast(data, data.count(b"\n"), IndexRules(), True)
    assert rows is not None


def test_query_numbers_stay_on_the_fast_path() -> None:
    """qid is taken out before the parse, at any place a blank precedes it."""
    data = b"1 qid:7 1:2\n-1\tqid:9\t2:3\n1 qid:18446744073709551\n"
    rows = libsvm.parse_fast(data, 3, IndexRules(), True)
    assert rows is not None
    assert rows.indices.tolist() == [1, 2]


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_end_in_rows_or_a_data_error(text: bytes, labelled: bool) -> None:
    """No bytes raise anything but DataError."""
    try:
        rows = libsvm.parse_block(block_of(text), "x", IndexRules(), labelled)
    except DataError:
        return
    assert np.isfinite(rows.values).all()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_more_threads_same_rows(threads: int) -> None:
    """Blocks come in file order for any number of threads."""
    import io

    from dpfit.data.text_blocks import text_blocks  # small blocks force several of them

    text = "".join(f"{i} {i + 1}:1\n" for i in range(500)).encode()
    blocks = text_blocks(io.BytesIO(text), "x", size=64)
    rows = list(libsvm.read_libsvm(blocks, "x", IndexRules(), libsvm.LabelPresence(True), threads))
    assert np.concatenate([block.target for block in rows]).tolist() == list(range(500))
