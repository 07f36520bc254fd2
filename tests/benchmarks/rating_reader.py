"""Speed of the rating reader on a million generated ratings, in each format.

usage: python tests/benchmarks/rating_reader.py [REPEATS]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from usage import answer_help

from dpfit.data.ratings import RatingOptions, RatingReader
from dpfit.data.ratings_by_user import collect_ratings

USERS, ITEMS, RATINGS = 6_000, 3_700, 1_000_000
NAMES = {"user": "user", "item": "item", "value": "value"}


def write_files(folder: Path) -> dict[str, Path]:
    """A million distinct pairs; popular items more often; values 1..5 in halves."""
    rng = np.random.default_rng(0)
    pairs = np.unique(
        rng.integers(0, USERS, 2 * RATINGS) * ITEMS
        + (ITEMS * rng.random(2 * RATINGS) ** 2).astype(np.int64)
    )
    pairs = rng.permutation(pairs)[:RATINGS]
    user, item = np.divmod(pairs, ITEMS)
    value = rng.integers(2, 11, len(pairs)) / 2
    table = pa.table({"user": user, "item": item, "value": value})
    by_user = table.sort_by("user")
    named = pa.table(
        {
            "user": [f"u{i:05d}" for i in user],
            "item": [f"title {i}" for i in item],
            "value": value,
        }
    )
    quoted = pacsv.WriteOptions(quoting_style="needed")
    for name, content in (("mixed", table), ("by-user", by_user), ("named", named)):
        pacsv.write_csv(content, folder / f"{name}.csv", quoted)
    pq.write_table(by_user, folder / "by-user.parquet")
    entries = zip((user + 1).tolist(), (item + 1).tolist(), value.tolist(), strict=True)
    lines = [f"{row} {column} {number}" for row, column, number in entries]
    banner = f"%%MatrixMarket matrix coordinate real general\n{USERS} {ITEMS} {len(pairs)}\n"
    (folder / "mixed.mtx").write_text(banner + "\n".join(lines) + "\n")
    return {path.name: path for path in sorted(folder.iterdir())}


def main(repeats: int) -> None:
    """Time reading alone and with ordering by user; print medians."""
    with tempfile.TemporaryDirectory() as folder:
        for name, path in write_files(Path(folder)).items():
            size = path.stat().st_size / 1e6
            options = RatingOptions(**({} if name.endswith("mtx") else NAMES))
            reading, collecting = [], []
            for _ in range(repeats):
                start = time.perf_counter()
                n = sum(len(block) for block in RatingReader([str(path)], options))
                reading.append(time.perf_counter() - start)
                start = time.perf_counter()
                collect_ratings(RatingReader([str(path)], options))
                collecting.append(time.perf_counter() - start)
            read, collected = median(reading), median(collecting)
            print(
                f"{name:16s} {n} ratings, {size:5.1f} MB: read {read:.3f} s "
                f"({n / read / 1e6:.1f} M/s), by user {collected:.3f} s"
            )


if __name__ == "__main__":
    answer_help(__doc__)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
