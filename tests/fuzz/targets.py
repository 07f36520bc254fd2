"""What files are fuzzed: how each format is read, from which seeds, and by which laws.

A target reads bytes of unknown content. It may end with a value or with a `DpfitError`; anything
else is a finding. Where a format has a fast parser and a strict one, it also compares the two.
"""

from __future__ import annotations

import bz2
import contextlib
import functools
import gzip
import io
import json
import lzma
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpfit.data import libsvm, libsvm_reference, rating_reference, table_reference
from dpfit.data.delimited import BlockParser
from dpfit.data.features import FeatureMap
from dpfit.data.id_table import IdTable, read_ids
from dpfit.data.indices import IndexRules
from dpfit.data.matrix_market import EntryParser, MatrixSize
from dpfit.data.pairs import read_pairs
from dpfit.data.rating_options import RatingOptions
from dpfit.data.rating_records import RatingParser
from dpfit.data.rating_reference import RatingPlan
from dpfit.data.rating_rows import CodedRatings, ItemRule
from dpfit.data.ratings import RatingReader
from dpfit.data.ratings_by_user import collect_ratings
from dpfit.data.reader import Reader, ReadOptions
from dpfit.data.rows import RowBlock
from dpfit.data.schema import ColumnRole, Schema
from dpfit.data.table_reference import TablePlan
from dpfit.data.text_blocks import TextBlock
from dpfit.errors import DpfitError
from dpfit.files.factor_model import parse_factor_model
from dpfit.files.linear_model import parse_linear_model
from dpfit.fitting.factor_file import factor_outcome
from dpfit.fitting.prediction import LinearPredictor
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.canonical_json import canonical, digest
from dpfit.privacy.ledger_document import LedgerDocument, parse_ledger, resume
from dpfit.privacy.ledger_frame import Cap
from fuzz.json_scripts import changed

SVM: Final = b"+1 1:1 3:0.5 # a note\n-1 qid:3 2:-1e3 4:2\n\n1 1:1\n"
CSV: Final = b'y,a,"b ""c"""\n1,2,3\n-1,0,1e3\n1,"4",5\n'
SCHEMA: Final = b"""rows = 9
label = "y"
labels = ["a", "b"]
na = ["?"]
[columns]
a = { range = [0, 1] }
b = { levels = ["x", "z"], other = true }
c = { role = "hashed" }
"""
RATINGS: Final = b"u,i,v\nanna,1,5\nben,7,2.5\nanna,7,1\n"
MATRIX: Final = b"%%MatrixMarket matrix coordinate integer general\n% note\n3 4 2\n1 2 5\n3 4 1\n"
MATRIX_SIZE: Final = MatrixSize(30, 40, 9)
NAMES: Final = ("u", "i", "v")
TABLE: Final = FeatureMap.build(
    ["y", "a", "b", "c"],
    {"b": ColumnRole("categorical", ("x", "1"), True), "c": ColumnRole("hashed")},
    "y",
    2,
    ("?", "NA", "2"),
)
RULES: Final = (
    IndexRules(),
    IndexRules(base=1, n_features=10, duplicates="sum"),
    IndexRules(duplicates="last", hash_bits=2),
    IndexRules(base=0, n_features=3, ignore_new=True),
)
BLOCK: Final = RowBlock(np.array([0, 2]), np.array([1, 3], np.int32), np.array([1.0, 2.0]), None)


@dataclass(frozen=True)
class Target:
    """A format under attack.

    Attributes
    ----------
    read : callable
        Reads bytes of unknown content.
    seeds : callable
        Makes files of the format to start from.
    """

    read: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]


def refused(read: Callable[[bytes], object], data: bytes) -> bool:
    """Whether the bytes were refused, as documented: with one line and nothing else."""
    told = None
    try:
        read(data)
    except DpfitError as error:
        told = str(error)
    assert told is None or "\n" not in told
    return told is not None


def rows(**options: Any) -> Callable[[bytes], list[RowBlock]]:
    return lambda data: list(Reader(["-"], ReadOptions(**options), stdin=io.BytesIO(data)))


def ratings(data: bytes, kind: str) -> object:
    named = dict(zip(("user", "item", "value"), NAMES, strict=True)) if kind != "mtx" else {}
    options = RatingOptions(format=kind, **named)
    return collect_ratings(RatingReader(["-"], options, stdin=io.BytesIO(data)))


def by_name(read: Callable[[str], object]) -> Callable[[bytes], object]:
    def call(data: bytes) -> object:
        with tempfile.NamedTemporaryFile(prefix="dpfit-fuzz-") as file:
            file.write(data)
            file.flush()
            return read(file.name)

    return call


def block_of(data: bytes) -> TextBlock:
    data = data if data.endswith(b"\n") else data + b"\n"
    return TextBlock(data, 1, data.count(b"\n"))


def numbers(rows: RowBlock) -> list[Any]:
    """A block as values that are equal when all bits are."""
    arrays = (rows.indptr, rows.indices, rows.values, rows.target)
    return [None if one is None else (one.dtype, one.tolist(), str(one.tolist())) for one in arrays]


def read_svm(data: bytes) -> None:
    """LIBSVM: what the fast parser accepts, the strict one reads alike."""
    block = block_of(data)
    for rules in RULES:
        for labelled in (True, False):
            fast = libsvm.parse_fast(block.data, block.n_lines, rules, labelled)
            if fast is not None:
                slow = libsvm_reference.parse_block(block, "x", rules, labelled)
                assert numbers(fast) == numbers(slow)
    rows(format="libsvm")(data)


def read_csv(data: bytes) -> None:
    """CSV: the same."""
    block = block_of(data)
    for textual in (True, False):
        for missing in ("error", "zero"):
            plan = TablePlan(b",", 4, TABLE, (1, 2, 3), 0, textual, missing)
            fast = BlockParser("x", plan).parse_fast(block.data)
            if fast is not None:
                assert numbers(fast) == numbers(table_reference.parse_block(block, "x", plan))
    rows(format="csv", label="y")(data)


def read_ratings(data: bytes) -> None:
    """Ratings in CSV: the same."""
    block = block_of(data)
    for rule in (ItemRule(), ItemRule(frozenset(["1", "7"]))):
        plan = RatingPlan(b",", 3, 0, 1, 2, rule)
        fast = RatingParser("x", plan).parse_fast(block.data)
        if fast is not None:
            assert texts(fast) == texts(rating_reference.parse_block(block, "x", plan))
    ratings(data, "csv")


def texts(coded: CodedRatings) -> list[Any]:
    ids = [[part.texts[code] for code in part.codes] for part in (coded.users, coded.items)]
    return [*ids, None if coded.values is None else coded.values.tobytes()]


def read_matrix(data: bytes) -> None:
    """Matrix Market: the same."""
    block, parser = block_of(data), EntryParser("x", MATRIX_SIZE, ItemRule())
    fast = parser.parse_fast(block.data)
    if fast is not None:
        slow = parser.parse_slowly(block)
        for name in ("row", "column", "value"):
            assert getattr(fast, name).tobytes() == getattr(slow, name).tobytes()
    ratings(data, "mtx")


def read_pair_file(data: bytes) -> None:
    """Pairs to predict, with a model's items."""
    items = IdTable(("1", "7"), fixed=True)
    options = RatingOptions(format="csv", user="u", item="i", values=False, ignore_new_items=True)
    read_pairs(RatingReader(["-"], options, stdin=io.BytesIO(data), items=items))


def read_linear(data: bytes) -> None:
    """A linear model: what is accepted can predict."""
    model = parse_linear_model(data, "m")
    if model.feature_map is not None:
        try:
            FeatureMap.from_json(model.feature_map)
        except ValueError:
            return
    predictor = LinearPredictor(model)
    margins = predictor.margins(BLOCK)
    assert np.isfinite(margins).all()
    predictor.means(margins)
    predictor.answers(margins)


def read_factors(data: bytes) -> None:
    """A model of ratings: what is accepted can be prepared for users."""
    model = parse_factor_model(data, "m")
    try:
        factor_outcome(model)
    except ValueError:
        return


SCRIPTS: Final = [b"", b"\0\1\0", b"\0\7\x0b\1\2\x90", b"\0\5\xff"]


@functools.cache
def linear_documents() -> list[Any]:
    return [json.loads(model(name)) for name in ("linear", "table")]


def read_linear_script(script: bytes) -> None:
    """A linear model whose JSON was changed."""
    for document in linear_documents():
        read = functools.partial(read_linear, json.dumps(changed(document, script)).encode())
        with contextlib.suppress(DpfitError):
            read()


def read_ledger_script(script: bytes) -> None:
    """A ledger that was changed and hashed anew: in any layout it is the same, or refused."""
    for seed in map(without_checkpoint, ledgers()):
        document = chained(changed(json.loads(seed), script))
        found = [ledger_or_nothing(json.dumps(document, indent=1).encode())]
        with contextlib.suppress(KeyError, TypeError, ValueError):
            found.append(ledger_or_nothing(as_written(document)))
        assert found[0] == found[-1]


def read_ledger(data: bytes) -> None:
    """What a run takes up by its checkpoint is what is verified, or the file is refused."""
    resumed, verified = resume(data), parse_ledger(data, "l")
    assert resumed is None or (resumed.data, resumed.checkpoint) == (data, verified.checkpoint)


def ledger_or_nothing(data: bytes) -> bytes:
    try:
        return parse_ledger(data, "l").data
    except DpfitError:
        return b""


def as_written(document: Any) -> bytes:
    """A document in the layout that dpfit writes, whatever it holds."""
    lines = b",\n".join(canonical(entry).encode() for entry in document["entries"])
    frame = document.keys() == {"schema", "cap", "entries"} and isinstance(
        document["entries"], list
    )
    if not frame or document["schema"] != "dpfit-ledger/1":
        raise ValueError
    cap = canonical(document["cap"]).encode()
    return b'{"schema":"dpfit-ledger/1",\n"cap":%b,\n"entries":[\n%b\n]}\n' % (cap, lines)


def chained(document: Any) -> Any:
    """The document with right hashes where its shape has any."""
    with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):
        tip = digest({"schema": document["schema"], "cap": document["cap"]})
        for entry in document["entries"]:
            entry.pop("hash", None)
            entry["previous"] = tip
            tip = entry["hash"] = digest(entry)
    return document


@functools.cache
def factor_parts() -> tuple[pa.Table, Any]:
    file = pq.ParquetFile(pa.BufferReader(model("factor")))
    return file.read(), json.loads(file.metadata.metadata[b"dpfit"])


def read_factor_script(script: bytes) -> None:
    """A model of ratings whose header was changed."""
    table, header = factor_parts()
    sink = io.BytesIO()
    plain = {"compression": "none", "use_dictionary": False, "store_schema": False}
    with pq.ParquetWriter(sink, table.schema.remove_metadata(), **plain) as writer:
        writer.write_table(table.replace_schema_metadata(None))
        writer.add_key_value_metadata({"dpfit": json.dumps(changed(header, script))})
    read_factors(sink.getvalue())


def as_parquet(columns: dict[str, Any], **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, **options)
    return sink.getvalue()


def parquets() -> list[bytes]:
    wide = {"y": [1.0, -1.0], "a": [0.5, 2.0]}
    entries = [[{"index": 1, "value": 0.5}], [{"index": 2, "value": 1.0}]]
    return [
        as_parquet(wide, compression="none"),
        as_parquet(wide, compression="none", use_dictionary=False, data_page_version="2.0"),
        as_parquet({"y": [1, -1], "s": entries}, compression="none"),
        as_parquet({"y": ["p", "q"], "i": [[0], [1]], "v": [[0.5], [1.0]]}, compression="zstd"),
    ]


def rating_parquets() -> list[bytes]:
    table = {"u": ["anna", "ben"], "i": [1, 7], "v": [5.0, 2.5]}
    return [as_parquet(table, compression="none"), as_parquet(table, use_dictionary=False)]


def compressed() -> list[bytes]:
    zstd = pa.compress(SVM, codec="zstd", asbytes=True)
    packed = [gzip.compress(SVM, mtime=0), bz2.compress(SVM), lzma.compress(SVM), zstd]
    return [*packed, packed[0] * 2, packed[1] + b"\0" * 8, packed[2] + b"\0" * 8]


def ledgers() -> list[bytes]:
    event = {"mechanism": "non-private", "label": "x", "count": 1}
    document = LedgerDocument.start(Cap(4.0, 1e-6, Adjacency.REPLACE_ONE))
    document = document.append({"kind": "reserved", "run": "a", "events": [event]})
    closed = document.append({"kind": "aborted", "run": "a"})
    part = closed.next_part().append({"kind": "reserved", "run": "b", "events": [event]})
    return [document.data, closed.data, LedgerDocument.start().data, part.data]


def without_checkpoint(ledger: bytes) -> bytes:
    """As earlier versions wrote it: nothing helps, so the entries are verified."""
    return ledger.partition(b',\n"checkpoint"')[0] + b"}\n"


def model(name: str) -> bytes:
    """A model that the program writes."""
    with tempfile.TemporaryDirectory() as folder:
        source, path = os.path.join(folder, "a.svm"), os.path.join(folder, "m")
        budget = ("--eps", "4", "--delta", "0.01", "-q", "-o", path, "--ledger", f"{path}.l")
        if name == "factor":
            Path(source).write_bytes(b"1:5 2:4\n2:3 3:1\n" * 20)
            args = ["complete-matrix", source, *budget, "--rank", "1", "--range", "1", "5"]
        elif name == "table":
            source = os.path.join(folder, "a.csv")
            Path(source).write_bytes(b"y,a,c\n" + b"yes,1,red\nno,2,blue\nmaybe,0,red\n" * 20)
            args = ["fit", source, *budget, "--label", "y", "--labels", "yes,no,maybe"]
            args += ["--hash-bits", "2", "--schema", os.path.join(folder, "s.toml")]
            Path(folder, "s.toml").write_text('[columns]\nc = { role = "hashed" }\n', "utf-8")
        else:
            Path(source).write_bytes(b"+1 1:1 3:0.5\n-1 2:1\n" * 20)
            args = ["fit", source, *budget, "--algo", "dp-gd", "--no-intercept"]
        program = [sys.executable, "-c", "from dpfit.cli.app import main; main()"]
        subprocess.run([*program, *args], check=True, timeout=300)
        return Path(path).read_bytes()


TARGETS: Final[dict[str, Target]] = {
    "libsvm": Target(read_svm, lambda: [SVM, b"1 1:2\n", b"1:1 2:0.5\n"]),
    "csv": Target(read_csv, lambda: [CSV, b"1,2,x,red\n-1,0.5,1,blue\n"]),
    "parquet": Target(rows(format="parquet", label="y"), parquets),
    "compressed": Target(rows(format="libsvm"), compressed),
    "ratings": Target(read_ratings, lambda: [RATINGS, RATINGS[6:]]),
    "rating-parquet": Target(lambda data: ratings(data, "parquet"), rating_parquets),
    "matrix-market": Target(read_matrix, lambda: [MATRIX, b"1 2 5\n3 4 1\n"]),
    "identifiers": Target(by_name(read_ids), lambda: [b"1\n7\n\nanna\r\n"]),
    "pairs": Target(read_pair_file, lambda: [RATINGS, b"i,u\n1,ben\n"]),
    "linear-model": Target(read_linear, lambda: [model("linear"), model("table")]),
    "factor-model": Target(read_factors, lambda: [model("factor"), parquets()[0]]),
    "ledger": Target(read_ledger, lambda: [*ledgers(), *map(without_checkpoint, ledgers())]),
    "linear-model-script": Target(read_linear_script, lambda: SCRIPTS),
    "factor-model-script": Target(read_factor_script, lambda: SCRIPTS),
    "ledger-script": Target(read_ledger_script, lambda: SCRIPTS),
    "schema": Target(by_name(Schema.from_file), lambda: [SCHEMA]),
}

TOKENS: Final = (
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b'"', b":", b",", b"{", b"[" * 2000,
    b"nan", b"1e999", b"9" * 400, b"9" * 5000, b"-0", b"0x1", b"1_0", b" " * 50, b"NaN", b"\\u",
    b"\\ud800", b"null", b"true", b"qid:", b"2147483647", b"18446744073709551616", b"PAR1", b"%%",
    b"#", b"\t", b"+", b"e5", b"Infinity", b"(BZh", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"1979-01-01",
)  # fmt: skip
"""What formats choke on."""
