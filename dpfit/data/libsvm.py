"""LIBSVM text to row blocks at the speed of pyarrow's CSV parser.

A block is rewritten into a two-column table ``index:value``, one entry a line, the label being an
entry without index. The rewriting keeps only bytes of a small alphabet, so that pyarrow can see
nothing but decimal numbers; what it accepts is then checked against the number of lines. A block
that fails any check is parsed again by `libsvm_reference`, which decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from dpfit.data import libsvm_reference
from dpfit.data.encode import CellFault, check_labels
from dpfit.data.indices import IndexRules, Indices, NotCanonical, canonical
from dpfit.data.libsvm_reference import Labels
from dpfit.data.owners import queries_of
from dpfit.data.parsed_table import NOT_PARSED, parsed_table
from dpfit.data.pipeline import ordered_map
from dpfit.data.rows import RowBlock
from dpfit.data.text_blocks import TextBlock, newlines
from dpfit.files.arrow_errors import memory_apart

_ALPHABET = b"0123456789.:-+eE\n"
_FOREIGN = b"x"
_TABLE = bytes(
    ord("\n") if byte in b" \t" else byte if byte in _ALPHABET else _FOREIGN[0]
    for byte in range(256)
)

_COMMENT = re.compile(rb"#[^\n]*")
_QID = re.compile(rb"(?<=[ \t])qid:[0-9]{1,19}(?=[ \t\n])")
_BLANK_LINES = re.compile(rb"\n[ \t\n]+")


def read_libsvm(
    blocks: Iterator[TextBlock],
    path: str,
    rules: IndexRules,
    presence: LabelPresence,
    threads: int = 1,
    labels: Labels = None,
    *,
    owned: bool = False,
) -> Iterator[RowBlock]:
    """Yield the row blocks of one LIBSVM file.

    Parameters
    ----------
    blocks : iterator of TextBlock
    path : str
        The file's name for errors.
    rules : IndexRules
    presence : LabelPresence
        Whether records have labels; shared by the files of one input.
    threads : int
        Blocks parsed at a time; the result does not depend on it.
    labels : tuple of float, optional
        The labels that may occur; None allows all.
    owned : bool
        Whether the ``qid`` of each record says to which privacy unit it belongs.
    """

    def parse(block: TextBlock) -> RowBlock:
        return parse_block(block, path, rules, presence.settled, labels, owned=owned)

    yield from ordered_map(parse, presence.watch(blocks), threads)


class LabelPresence:
    """Whether records have labels: required, or as in the first record of the input.

    Parameters
    ----------
    required : bool
        False lets the first record decide for all.
    """

    def __init__(self, required: bool) -> None:
        self._known: bool | None = True if required else None

    @property
    def settled(self) -> bool:
        """The answer; True as long as no record was seen."""
        return self._known is not False

    def watch(self, blocks: Iterator[TextBlock]) -> Iterator[TextBlock]:
        """Pass blocks on, having looked at the first record before it goes."""
        for block in blocks:
            if self._known is None:
                self._known = _first_answer(block.data)
            yield block


def _first_answer(data: bytes) -> bool | None:
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        answer = libsvm_reference.has_label(data[start:end])
        if answer is not None:
            return answer
        start = end + 1
    return None


def parse_block(
    block: TextBlock,
    path: str,
    rules: IndexRules,
    labelled: bool,
    labels: Labels = None,
    *,
    owned: bool = False,
) -> RowBlock:
    """Parse one block, fast if possible; see `libsvm_reference.parse_block` for the contract."""
    rows = parse_fast(block.data, block.n_lines, rules, labelled)
    if rows is not None and _all_known(rows, labels):
        owner = queries_of(block.data, rows.n_rows) if owned else None
        if owner is not None or not owned:
            return replace(rows, owner=owner)
    return libsvm_reference.parse_block(block, path, rules, labelled, labels, owned=owned)


def _all_known(rows: RowBlock, labels: Labels) -> bool:
    try:
        if rows.target is not None:
            check_labels(rows.target, labels)
    except CellFault:
        return False
    return True


def parse_fast(data: bytes, n_lines: int, rules: IndexRules, labelled: bool) -> RowBlock | None:
    """Rows of the block as the reference parser would give them, or None if not sure."""
    if b"\0" in data:
        return None
    # Without labels nothing in the table would betray a blank line.
    if labelled:
        text = _table_text(data, labelled)
        rows = None if text is None else _parse_table(text, n_lines, rules, labelled)
        if rows is not None:
            return rows
    plain = _plain(data)
    if plain is None:
        return None
    if not plain:
        return libsvm_reference.Records().block(labelled)
    data = plain
    text = _table_text(data, labelled)
    return None if text is None else _parse_table(text, newlines(data), rules, labelled)


def _plain(data: bytes) -> bytes | None:
    """The block without comments, query numbers and blank lines; None for a stray return."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
        if b"\r" in data:
            return None
    if b"#" in data:
        data = _COMMENT.sub(b"", data)
    data = _BLANK_LINES.sub(b"\n", b"\n" + data)[1:]
    # Last: a line of nothing but a query number is a record, not a blank line.
    return _QID.sub(b"", data) if b"q" in data else data


def _table_text(data: bytes, labelled: bool) -> memoryview | None:
    """The block as lines ``index:value`` and, once per record, ``:label``; None if not sure."""
    prefix = b":" if labelled else b":0\n"
    text = bytearray(b"\n")  # every record then follows a newline, and gets its prefix there
    text += data
    text = text.replace(b"\n", b"\n" + prefix).translate(_TABLE)
    if _FOREIGN in text:
        return None
    table = memoryview(text)[1 : -len(prefix)]
    return table if b"+" not in text or _blank_leading_plus(table) else None


def _blank_leading_plus(text: memoryview) -> bool:
    """Turn the plus of "+1" into a blank, which pyarrow skips, unlike a plus; False for "+-1"."""
    letters = np.frombuffer(text, dtype=np.uint8)
    plus = np.flatnonzero(letters == ord("+"))
    leading = plus[letters[plus - 1] == ord(":")]
    after = letters[leading + 1]
    letters[leading] = ord(" ")
    return bool((((after >= ord("0")) & (after <= ord("9"))) | (after == ord("."))).all())


_PARSE = pacsv.ParseOptions(delimiter=":", quote_char=False)


def _parse_table(
    text: memoryview, n_lines: int, rules: IndexRules, labelled: bool
) -> RowBlock | None:
    # Unsigned, since pyarrow then refuses a sign and thus "-0".
    index_type = pa.uint32() if rules.hash_bits is None else pa.uint64()
    convert = pacsv.ConvertOptions(
        column_types={"index": index_type, "value": pa.float64()},
        null_values=[""],
        strings_can_be_null=False,
    )
    try:
        with memory_apart():
            table = parsed_table(text, ["index", "value"], _PARSE, convert)
    except NOT_PARSED:
        return None
    if table.num_rows == 0 or table.column(1).null_count:
        return None
    index, value = (table.column(i).combine_chunks() for i in (0, 1))
    return _rows(index, value, n_lines, rules, labelled)


def _rows(
    index: pa.Array, value: pa.Array, n_lines: int, rules: IndexRules, labelled: bool
) -> RowBlock | None:
    # A stray ":5" also is an entry without index: only the count tells it from a label.
    if index.null_count != n_lines:
        return None
    values = value.to_numpy(zero_copy_only=True)
    if not np.isfinite(values).all():
        return None
    is_entry, raw = _entries(index)
    label_at = np.flatnonzero(~is_entry)
    indptr = np.empty(n_lines + 1, dtype=np.int64)
    indptr[:-1] = label_at - np.arange(n_lines)
    indptr[-1] = len(values) - n_lines
    try:
        rows = canonical(indptr, raw[is_entry], values[is_entry], rules)
    except NotCanonical:
        return None
    return RowBlock(*rows, target=values[label_at] if labelled else None)


def _entries(index: pa.Array) -> tuple[NDArray[np.bool_], Indices]:
    """Which entries have an index, and the indices with anything where there is none."""
    validity, data = index.buffers()
    bits = np.frombuffer(validity, dtype=np.uint8)
    is_entry = np.unpackbits(bits, count=len(index), bitorder="little").astype(np.bool_)
    dtype = np.dtype(np.uint32 if index.type == pa.uint32() else np.uint64)
    raw: Indices = np.frombuffer(data, dtype=dtype, count=len(index))
    return is_entry, raw
