"""Identifiers of users and items, and the numbers they go by inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from numpy.typing import NDArray

from dpfit.data.encode import CodedText, coded_text
from dpfit.data.open import open_binary
from dpfit.data.text_blocks import text_blocks, text_of
from dpfit.errors import DataError

UNKNOWN = -1
"""The code of an identifier that a table does not hold."""


class IdTable:
    """Texts numbered from 0 in the order in which they were first seen.

    A whole number is the text of its decimal digits, so that the same item has one name in CSV,
    Parquet and Matrix Market; texts are compared letter by letter, ``007`` is not ``7``.

    Parameters
    ----------
    texts : sequence of str, optional
        Distinct texts to start with.
    fixed : bool
        Whether nothing may be added.
    """

    def __init__(self, texts: Sequence[str] = (), *, fixed: bool = False) -> None:
        self.texts = list(texts)
        self.fixed = fixed
        self._code = {text: code for code, text in enumerate(self.texts)}

    def __len__(self) -> int:
        return len(self.texts)

    def __contains__(self, text: object) -> bool:
        return text in self._code

    def find(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """The code of each text, `UNKNOWN` for those that are not there."""
        return np.fromiter(
            (self._code.get(text, UNKNOWN) for text in texts), np.int64, count=len(texts)
        )

    def add(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """The code of each text; new ones are added unless the table is fixed."""
        if self.fixed:
            return self.find(texts)
        code = self._code
        for text in texts:
            if text not in code:
                code[text] = len(self.texts)
                self.texts.append(text)
        return self.find(texts)

    def codes(self, cells: CodedText) -> NDArray[np.int64]:
        """The code of each cell; none of them may be null."""
        return self.add(cells.texts)[cells.codes]

    def canonical(self) -> tuple[IdTable, NDArray[np.int64]]:
        """A fixed table of the same texts in an order that tells nothing about the records.

        Whole numbers come first, by size; the others follow by their letters.

        Returns
        -------
        IdTable
        int64 array
            The new code of each old one.
        """
        order = sorted(range(len(self.texts)), key=lambda code: _canonical_key(self.texts[code]))
        new_code = np.empty(len(order), np.int64)
        new_code[order] = np.arange(len(order))
        return IdTable([self.texts[code] for code in order], fixed=True), new_code


def _canonical_key(text: str) -> tuple[bool, int, str, str]:
    if not (text.isascii() and text.isdigit()):
        return True, 0, text, text
    digits = text.lstrip("0")
    return False, len(digits), digits, text


def coded_ids(array: pa.Array) -> CodedText:
    """Texts or whole numbers as coded texts, those that occur only, in order of appearance."""
    coded = pat.is_dictionary(array.type)
    if not pat.is_integer(array.type.value_type if coded else array.type):
        return coded_text(array)
    encoded = array if coded else array.dictionary_encode()
    texts = encoded.dictionary.cast(pa.string())
    return coded_text(pa.DictionaryArray.from_arrays(encoded.indices, texts))


def first_refused(cells: CodedText, allows: Callable[[str], bool]) -> int | None:
    """The first cell whose text is not allowed, counted from 0; a null counts as empty text."""
    texts = [*cells.texts, ""]  # the code of a null is -1: the last
    refused = np.array([not allows(text) for text in texts])[cells.codes]
    return int(np.argmax(refused)) if refused.any() else None


def read_ids(path: str) -> tuple[str, ...]:
    """Identifiers from a public file, one a line; blank lines are skipped.

    Raises
    ------
    StorageError
        The file cannot be read.
    DataError
        A line is no text or says the same as an earlier one, or there is none.
    """
    first_line: dict[str, int] = {}
    with open_binary(path) as stream:
        for block in text_of(text_blocks(stream, path), path):
            for line, raw in enumerate(block.data.split(b"\n")[:-1], start=block.first_line):
                text = _id_text(raw, path, line)
                if text in first_line:
                    message = f"the identifier also stands on line {first_line[text]}"
                    raise DataError(message, path=path, line=line)
                if text:
                    first_line[text] = line
    if not first_line:
        raise DataError("the file holds no identifiers", path=path)
    return tuple(first_line)


def _id_text(raw: bytes, path: str, line: int) -> str:
    raw = raw.removesuffix(b"\r")
    if b"\0" in raw or b"\r" in raw:
        raise DataError("the line holds a NUL byte or a carriage return", path=path, line=line)
    try:
        return raw.decode("utf-8").strip(" \t")
    except UnicodeDecodeError:
        raise DataError("the line is not UTF-8 text", path=path, line=line) from None
