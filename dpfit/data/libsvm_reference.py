"""The LIBSVM grammar, line by line: slow, strict, and the law that the fast parser must obey.

A record is one line, ``[LABEL] [qid:NUMBER] INDEX:VALUE ... [# comment]``; blanks are spaces and
tabs; lines that hold nothing else are skipped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from dpfit.data.advice import Cause, advice, unknown_label
from dpfit.data.indices import IndexRules, LineFault, checked_index, fold, store_entry
from dpfit.data.numbers import BadNumber, parse_number
from dpfit.data.owners import coded, query_of
from dpfit.data.rows import RowBlock
from dpfit.data.text_blocks import NOT_TEXT, TextBlock
from dpfit.errors import DataError

_DIGITS = re.compile(rb"[0-9]+\Z")
_MAX_QID = 2**64 - 1

Labels: TypeAlias = tuple[float, ...] | None


@dataclass
class Records:
    """Records of a block while they are collected."""

    lengths: list[int] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    labels: list[float] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)

    def add(self, label: float | None, entries: dict[int, float]) -> None:
        self.lengths.append(len(entries))
        for index in sorted(entries):
            self.indices.append(index)
            self.values.append(entries[index])
        if label is not None:
            self.labels.append(label)

    def block(self, labelled: bool, *, owned: bool = False) -> RowBlock:
        indptr = np.zeros(len(self.lengths) + 1, dtype=np.int64)
        np.cumsum(self.lengths, out=indptr[1:])
        return RowBlock(
            indptr=indptr,
            indices=np.array(self.indices, dtype=np.int32),
            values=np.array(self.values, dtype=np.float64),
            target=np.array(self.labels, dtype=np.float64) if labelled else None,
            owner=coded(self.owners) if owned else None,
        )


def has_label(line: bytes) -> bool | None:
    """Whether a line starts with a label; None for a line that holds no record."""
    tokens = line.split(b"#", 1)[0].split()
    return None if not tokens else b":" not in tokens[0]


def parse_block(
    block: TextBlock,
    path: str,
    rules: IndexRules,
    labelled: bool,
    labels: Labels = None,
    *,
    owned: bool = False,
) -> RowBlock:
    """Parse a block line by line.

    Parameters
    ----------
    block : TextBlock
    path : str
        The file's name for errors.
    rules : IndexRules
    labelled : bool
        Whether every record must have a label; otherwise none may.
    labels : tuple of float, optional
        The labels that may occur; None allows all.
    owned : bool
        Whether every record must have a ``qid``, which says whose it is.

    Raises
    ------
    DataError
        At the first faulty line.
    """
    records = Records()
    lines = block.data.split(b"\n")[:-1]
    for number, line in enumerate(lines, start=block.first_line):
        try:
            record = parse_line(line, rules, labelled)
            if record is not None and labels is not None and record[0] not in labels:
                raise _unknown_label(rules)
            if record is not None and owned:
                records.owners.append(query_of(line))
        except LineFault as fault:
            raise DataError(fault.message, path=path, line=number, hint=fault.hint) from None
        if record is not None:
            records.add(*record)
    return records.block(labelled, owned=owned)


def _unknown_label(rules: IndexRules) -> LineFault:
    message = unknown_label(predicting=rules.predicting)
    return LineFault(f"the label {message}", advice(Cause.LABEL, "", predicting=rules.predicting))


def parse_line(
    line: bytes, rules: IndexRules, labelled: bool
) -> tuple[float | None, dict[int, float]] | None:
    """Label and merged entries of one line, or None if it holds no record."""
    line = line.removesuffix(b"\r")
    if b"\0" in line:
        raise LineFault("the line holds a NUL byte", NOT_TEXT)
    if b"\r" in line:
        raise LineFault("a carriage return stands inside the line")
    tokens = [token for token in re.split(rb"[ \t]+", line.split(b"#", 1)[0]) if token]
    if not tokens:
        return None
    label = _label(tokens, labelled)
    entries = _entries(tokens[1:] if labelled else tokens, rules)
    return label, _folded(entries, rules)


def _label(tokens: list[bytes], labelled: bool) -> float | None:
    token = tokens[0]
    if b":" in token:
        if labelled:
            raise LineFault("the label is missing", "a record is LABEL INDEX:VALUE ...")
        return None
    if not labelled:
        raise LineFault("a label appears, but earlier records have none")
    if b"," in token:
        raise LineFault(
            "the record has several labels",
            "give --format csv if it is a table; several labels a record are not supported",
        )
    try:
        return parse_number(token)
    except BadNumber as bad:
        raise LineFault(f"the label {bad}") from None


def _entries(tokens: list[bytes], rules: IndexRules) -> dict[int, float]:
    entries: dict[int, float] = {}
    for token in tokens:
        name, colon, text = token.partition(b":")
        if not colon:
            raise LineFault("a field is not INDEX:VALUE")
        if name == b"qid":
            _check_qid(text)
            continue
        index = _index(name, rules)
        try:
            value = parse_number(text)
        except BadNumber as bad:
            raise LineFault(f"a value {bad}") from None
        if index is not None:
            store_entry(entries, index, value, rules.duplicates)
    if not all(map(np.isfinite, entries.values())):
        raise LineFault("the sum of a repeated column is too large for a float")
    return entries


def _check_qid(text: bytes) -> None:
    digits = text.lstrip(b"0")
    if not _DIGITS.match(text) or len(digits) > 20 or int(digits or b"0") > _MAX_QID:
        raise LineFault("a qid is not a 64-bit whole number")


def _index(name: bytes, rules: IndexRules) -> int | None:
    """The raw index, or None for an entry that is to be dropped."""
    if not _DIGITS.match(name):
        if name.startswith(b"-") and _DIGITS.match(name[1:]):
            raise LineFault("a column index is negative")
        raise LineFault("a column index is not a whole number")
    digits = name.lstrip(b"0")
    # More digits than any bound has: avoid the quadratic conversion of a hostile token.
    index = int(digits or b"0") if len(digits) <= 20 else 10**20
    return checked_index(index, rules)


def _folded(entries: dict[int, float], rules: IndexRules) -> dict[int, float]:
    if rules.hash_bits is None or not entries:
        return entries
    raw = sorted(entries)
    folded: dict[int, float] = {}
    for index, column in zip(
        raw, fold(np.array(raw, dtype=np.uint64), rules.hash_bits).tolist(), strict=True
    ):
        folded[column] = folded[column] + entries[index] if column in folded else entries[index]
    if not all(map(np.isfinite, folded.values())):
        raise LineFault("the sum of columns that share a hash is too large for a float")
    return folded
