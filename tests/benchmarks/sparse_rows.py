"""Files of random sparse rows, made as fast as the disk takes them and the same every time.

usage: python tests/benchmarks/sparse_rows.py OUT.(svm|csv|parquet) ROWS COLUMNS NONZEROS_PER_ROW

Columns are log-uniform, so that few are frequent, and each row has the same number of them; twenty
frequent ones decide the label. In a CSV file, which is dense, every column is filled.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pac
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray
from usage import answer_help

_ENTRIES: Final = 1 << 20  # a block
_DIGITS: Final = 1000  # values are multiples of its inverse


def row_blocks(
    n_rows: int, n_columns: int, per_row: int
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int16], NDArray[np.int8]]]:
    """Columns from 0, values in thousandths, each (m, per_row), and labels, (m,)."""
    rng = np.random.default_rng(0)
    places, wide = np.arange(per_row, dtype=np.int32), n_columns - per_row
    size = max(1, _ENTRIES // per_row)
    for start in range(0, n_rows, size):
        shape = min(size, n_rows - start), per_row
        share = (places + rng.random(shape, np.float32)) / np.float32(per_row)
        ranks = 10.0 * np.exp(share * np.float32(np.log((wide + 10.0) / 10.0))) - 10.0
        columns = ranks.astype(np.int32).clip(0, wide) + places  # rise strictly
        values = rng.integers(1, _DIGITS, shape, np.int16)
        half = per_row // 2
        score = values[:, 1:half:2].sum(axis=1) - values[:, 2 : half + 1 : 2].sum(axis=1)
        yield columns, values, np.where(score > 0, 1, -1).astype(np.int8)


def write_svm(path: Path, n_rows: int, n_columns: int, per_row: int) -> None:
    """LIBSVM, columns from 1."""
    numbers = pa.array([f"{i / _DIGITS:g}" for i in range(_DIGITS)])
    with path.open("wb") as stream:
        for columns, values, labels in row_blocks(n_rows, n_columns, per_row):
            names = pa.array((columns + 1).ravel()).cast(pa.string())
            cells = numbers.take(pa.array(values.ravel()))
            pairs = pac.binary_join_element_wise(names, cells, ":")
            rows = pac.binary_join(
                pa.FixedSizeListArray.from_arrays(pairs, per_row).cast(pa.list_(pa.string())), " "
            )
            lines = pac.binary_join_element_wise(pa.array(labels).cast(pa.string()), rows, " ")
            stream.write(_joined(lines))


def _joined(lines: pa.Array) -> bytes:
    whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    return pac.binary_join(whole, "\n")[0].as_py().encode() + b"\n"


def write_parquet(path: Path, n_rows: int, n_columns: int, per_row: int) -> None:
    """Lists of indices from 0 and of values; not compressed."""
    lists = pa.list_(pa.int32()), pa.list_(pa.float64())
    schema = pa.schema([("label", pa.int8()), ("indices", lists[0]), ("values", lists[1])])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for columns, values, labels in row_blocks(n_rows, n_columns, per_row):
            flat = pa.array(columns.ravel()), pa.array((values / _DIGITS).ravel())
            parts = [
                pa.FixedSizeListArray.from_arrays(part, per_row).cast(kind)
                for part, kind in zip(flat, lists, strict=True)
            ]
            writer.write_table(pa.table([pa.array(labels), *parts], schema=schema))


def write_csv(path: Path, n_rows: int, n_columns: int, per_row: int) -> None:
    """Dense columns ``x1``, ``x2``, ... beside ``label``."""
    schema = pa.schema(
        [("label", pa.int8()), *((f"x{j + 1}", pa.float32()) for j in range(n_columns))]
    )
    with pacsv.CSVWriter(path, schema) as writer:
        for _, values, labels in row_blocks(n_rows, n_columns, n_columns):
            columns = [pa.array(column / np.float32(_DIGITS)) for column in values.T]
            writer.write_table(pa.table([pa.array(labels), *columns], schema=schema))


WRITERS: Final = {".svm": write_svm, ".csv": write_csv, ".parquet": write_parquet}

if __name__ == "__main__":
    answer_help(__doc__)
    out = Path(sys.argv[1])
    WRITERS[out.suffix](out, *map(int, sys.argv[2:]))
    print(f"{out.stat().st_size:,} bytes")
