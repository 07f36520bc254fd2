"""Files changed at random: every reader ends with rows or with a documented error, and soon.

Each example takes one of the small files below and changes it by a few edits: bytes flipped, cut,
repeated or put in, among them what formats choke on. ``DPFIT_FUZZ`` sets the examples of each test
(default 150); the inputs tried are printed with ``-s``.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpfit.data.ratings import RatingOptions, RatingReader
from dpfit.data.ratings_by_user import collect_ratings
from dpfit.data.reader import Reader, ReadOptions
from dpfit.data.schema import Schema
from dpfit.errors import DpfitError
from dpfit.files.factor_model import parse_factor_model
from dpfit.files.linear_model import read_linear_model
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.ledger_document import Cap, LedgerDocument, parse_ledger, resume

EXAMPLES = int(os.environ.get("DPFIT_FUZZ", "150"))
TRIED = Counter[str]()

SVM = b"+1 1:1 3:0.5 # a note\n-1 qid:3 2:-1e3 4:2\n\n1 1:1\n"
CSV = b'y,a,"b ""c"""\n1,2,3\n-1,0,1e3\n1,"4",5\n'
SCHEMA = b'rows = 9\nlabel = "y"\nlabels = ["a", "b"]\n[columns]\na = { range = [0, 1] }\n'
RATINGS = b"%%MatrixMarket matrix coordinate integer general\n% note\n3 4 2\n1 2 5\n3 4 1\n"
RESERVED = {
    "kind": "reserved",
    "run": "a",
    "events": [{"mechanism": "non-private", "label": "x", "count": 1}],
}
LEDGER = LedgerDocument.start(Cap(4.0, 1e-6, Adjacency.REPLACE_ONE)).append(RESERVED).data
OLD_LEDGER = LEDGER.partition(b',\n"checkpoint"')[0] + b"}\n"


def parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"y": [1.0, -1.0], "a": [0.5, 2.0]}), sink)
    return sink.getvalue()


def model(name: str) -> bytes:
    """A model that the program writes."""
    with tempfile.TemporaryDirectory() as folder:
        source, path = os.path.join(folder, "a.svm"), os.path.join(folder, "m")
        budget = ("--eps", "4", "--delta", "0.01", "-q", "-o", path, "--ledger", f"{path}.l")
        if name == "linear":
            Path(source).write_bytes(b"+1 1:1 3:0.5\n-1 2:1\n" * 20)
            args = ["fit", source, *budget, "--algo", "dp-gd", "--no-intercept"]
        else:
            Path(source).write_bytes(b"1:5 2:4\n2:3 3:1\n" * 20)
            args = ["complete-matrix", source, *budget, "--rank", "1", "--range", "1", "5"]
        program = [sys.executable, "-c", "from dpfit.cli.app import main; main()"]
        subprocess.run([*program, *args], check=True, timeout=60)
        return Path(path).read_bytes()


def rows(**options: object) -> Callable[[bytes], object]:
    return lambda data: list(Reader(["-"], ReadOptions(**options), stdin=io.BytesIO(data)))  # type: ignore[arg-type]


def ratings(data: bytes) -> object:
    reader = RatingReader(["-"], RatingOptions(format="mtx"), stdin=io.BytesIO(data))
    return collect_ratings(reader)


def by_name(read: Callable[[str], object]) -> Callable[[bytes], object]:
    def call(data: bytes) -> object:
        Path("fuzzed").write_bytes(data)
        return read("fuzzed")

    return call


TARGETS: dict[str, tuple[Callable[[bytes], object], Callable[[], list[bytes]]]] = {
    "libsvm": (rows(format="libsvm"), lambda: [SVM]),
    "csv": (rows(format="csv", label="y"), lambda: [CSV]),
    "parquet": (rows(format="parquet", label="y"), lambda: [parquet()]),
    "compressed": (
        rows(format="libsvm"),
        lambda: [gzip.compress(SVM), bz2.compress(SVM), lzma.compress(SVM), gzip.compress(SVM) * 2],
    ),
    "matrix market": (ratings, lambda: [RATINGS]),
    "ledger": (
        lambda data: (resume(data), parse_ledger(data, "l")),
        lambda: [LEDGER, LedgerDocument.start().data, OLD_LEDGER],
    ),
    "linear model": (by_name(read_linear_model), lambda: [model("linear")]),
    "factor model": (
        lambda data: parse_factor_model(data, "m"),
        lambda: [model("factor"), parquet()],
    ),
    "schema": (by_name(Schema.from_file), lambda: [SCHEMA]),
}
ODD = st.sampled_from(
    [
        b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b'"', b":", b",", b"{", b"[" * 2000,
        b"nan", b"1e999", b"9" * 400, b"9" * 5000, b"-0", b"0x1", b"1_0", b" " * 50, b"NaN", b"\\u",
    ]
)  # fmt: skip
EDITS = st.lists(
    st.tuples(st.integers(0, 1 << 16), st.integers(0, 30), ODD | st.binary(max_size=4)), max_size=4
)


def edited(data: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    for at, removed, added in edits:
        at %= len(data) + 1
        data = data[:at] + added + data[at + removed :]
    return data


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("target", TARGETS)
def test_only_documented_errors(target: str) -> None:
    """A changed file is read, or refused with an error that names no more than it may."""
    read, make = TARGETS[target]
    corpus = make()

    @settings(
        max_examples=EXAMPLES, deadline=10_000, suppress_health_check=list(HealthCheck),
        database=None,
    )  # fmt: skip
    @given(st.sampled_from(corpus), EDITS)
    def tried(data: bytes, edits: list[tuple[int, int, bytes]]) -> None:
        TRIED[target] += 1
        try:
            read(edited(data, edits))
        except DpfitError as error:
            TRIED[f"{target}, refused"] += 1
            told = str(error)
        else:
            told = ""
        assert "\n" not in told

    tried()
    print(f"{target}: {TRIED[target]} inputs, {TRIED[f'{target}, refused']} refused")
