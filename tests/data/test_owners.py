"""Identifiers of privacy units, as the readers find them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfit.data import libsvm, libsvm_reference
from dpfit.data.indices import IndexRules, LineFault
from dpfit.data.owners import coded, queries_of, query_of
from dpfit.data.text_blocks import TextBlock

RULES = IndexRules(
    base=None, n_features=None, duplicates="error", hash_bits=None, ignore_new=False,
    predicting=False,
)  # fmt: skip
LINES = st.lists(
    st.sampled_from(
        [b"1 qid:7 1:2", b"-1\tqid:007 2:1 # qid:9", b"0 qid:123", b"1 1:1 qid:5", b"", b"# qid:4",
         b"1 qid:8 3:1\r", b"1 qid:9999999999999999999 1:1"]
    ),
    min_size=1,
    max_size=6,
)  # fmt: skip


def texts(cells: object) -> list[str]:
    return [cells.texts[code] for code in cells.codes]  # type: ignore[attr-defined]


@given(LINES)
def test_the_fast_parser_finds_what_the_strict_one_finds(lines: list[bytes]) -> None:
    """Wherever in the line the qid stands, whatever a comment says."""
    block = TextBlock(b"\n".join(lines) + b"\n", 1, len(lines))
    fast = libsvm.parse_block(block, "f", RULES, True, owned=True)
    strict = libsvm_reference.parse_block(block, "f", RULES, True, owned=True)
    assert fast.owner is not None
    assert strict.owner is not None
    assert texts(fast.owner) == texts(strict.owner)
    assert len(fast.owner.codes) == fast.n_rows


def test_the_usual_line_needs_no_second_look() -> None:
    """A qid right after the label, once a line."""
    cells = queries_of(b"1 qid:7 1:2\n-1 qid:007 2:1\n0\tqid:12\n", 3)
    assert cells is not None
    assert texts(cells) == ["7", "7", "12"]
    assert queries_of(b"1 qid:7 qid:8\n1 1:1\n", 2) is None
    assert queries_of(b"1 qid:7 qid:8\n", 1) is None


@pytest.mark.parametrize(("line", "what"), [(b"1 1:1", "no"), (b"1 qid:1 qid:1", "more than one")])
def test_a_record_has_one_query(line: bytes, what: str) -> None:
    """Neither none nor two."""
    with pytest.raises(LineFault, match=f"the record has {what} qid"):
        query_of(line)


@given(st.lists(st.text()))
def test_coded_texts_are_the_texts(found: list[str]) -> None:
    """Each distinct one once."""
    cells = coded(found)
    assert texts(cells) == found
    assert len(set(cells.texts)) == len(cells.texts)
