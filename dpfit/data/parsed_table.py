"""A block of text through pyarrow's CSV parser, as every fast parser of text asks it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.csv as pacsv

from dpfit.memory import PARSER_SHARE, require_memory

NOT_PARSED: Final = (pa.ArrowException, ValueError, OverflowError)
"""What the parser raises where only a strict one can tell what is wrong."""


def parsed_table(
    text: bytes | memoryview,
    names: Sequence[str],
    parse: pacsv.ParseOptions,
    convert: pacsv.ConvertOptions,
) -> pa.Table:
    """The columns of a block, in one chunk each.

    Raises
    ------
    MemoryError
        There is too little for the parser, which would end the process.
    """
    read = pacsv.ReadOptions(column_names=names, use_threads=False, block_size=len(text) + 1)
    require_memory(PARSER_SHARE * len(text))
    return pacsv.read_csv(pa.BufferReader(text), read, parse, convert)
