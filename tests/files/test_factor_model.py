"""Factor models: every model comes back as it was, and no damaged one gets through."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfit.errors import DataError, StorageError
from dpfit.files.factor_model import FactorModel, read_factor_model

NUMBERS = st.floats(-1e6, 1e6)


@st.composite
def models(draw: st.DrawFn) -> FactorModel:
    """A model of any rank, 0 included, with any names of items."""
    items = draw(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=5, unique=True))
    rank, n = draw(st.integers(0, 3)), len(items)

    def numbers(*shape: int) -> np.ndarray:
        count = int(np.prod(shape))
        drawn = draw(st.lists(NUMBERS, min_size=count, max_size=count))
        return np.array(drawn, np.float64).reshape(shape)

    low = draw(NUMBERS)
    names = st.one_of(st.none(), st.text(max_size=5))
    return FactorModel(
        provenance={"dataset": "toy", "events": [{"mechanism": "gaussian", "count": 3}]},
        private=draw(st.booleans()),
        value_range=(low, low + draw(st.floats(1.0, 100.0))),
        global_mean=draw(NUMBERS),
        constants=draw(st.dictionaries(st.text(max_size=5), NUMBERS, max_size=3)),
        columns={role: draw(names) for role in ("user", "item", "value")},
        items=tuple(items),
        bias=numbers(n),
        count=numbers(n),
        factors=numbers(n, rank),
    )


def read(document: bytes) -> FactorModel:
    """By way of a file, as there is no other."""
    path = Path(f"hypothesis.{os.getpid()}.parquet")
    path.write_bytes(document)
    return read_factor_model(str(path))


@pytest.fixture(autouse=True, scope="module")
def _in_a_folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("models"))
    yield
    os.chdir(before)


def example(rank: int = 2) -> FactorModel:
    rng = np.random.default_rng(3)
    return FactorModel(
        provenance={"algorithm": "toy"},
        private=True,
        value_range=(1.0, 5.0),
        global_mean=3.5,
        constants={"user_ridge": 2.0, "bias_scale": 0.5},
        columns={"user": "u", "item": "i", "value": "v"},
        items=("a", "b", "é"),
        bias=rng.normal(size=3),
        count=rng.normal(size=3),
        factors=rng.normal(size=(3, rank)),
    )


@settings(max_examples=100, deadline=None)
@given(models())
def test_a_model_comes_back_as_it_was(model: FactorModel) -> None:
    """Every member, bit by bit; and what comes back is written to the same bytes."""
    back = read(model.to_bytes())
    for field in fields(FactorModel):
        assert np.array_equal(getattr(back, field.name), getattr(model, field.name))
    assert back.factors.shape == model.factors.shape
    assert back.to_bytes() == model.to_bytes()


def test_the_order_of_constants_is_not_in_the_bytes() -> None:
    """Equal mappings give equal files."""
    model = example()
    turned = dict(reversed(list(model.constants.items())))
    assert FactorModel(**{**vars(model), "constants": turned}).to_bytes() == model.to_bytes()


def test_a_model_reads_without_dpfit() -> None:
    """A plain table for any Parquet reader, its header a JSON text in the metadata."""
    model = example()
    table = pq.read_table(io.BytesIO(model.to_bytes()))
    assert table.column_names == ["item", "bias", "count", "factor_0", "factor_1"]
    assert table["item"].to_pylist() == list(model.items)
    assert table["factor_1"].to_pylist() == model.factors[:, 1].tolist()
    header = json.loads(table.schema.metadata[b"dpfit"])
    assert header["schema"] == "dpfit-factors/1"
    assert header["constants"] == {"bias_scale": 0.5, "user_ridge": 2.0}


def test_item_means_keep_the_range() -> None:
    """Mean plus bias, clipped."""
    model = FactorModel(**{**vars(example()), "bias": np.array([-9.0, 0.25, 9.0])})
    assert model.item_means.tolist() == [1.0, 3.75, 5.0]


@settings(max_examples=300, deadline=None)
@given(models(), st.floats(0, 1), st.binary(max_size=4), st.integers(0, 4))
def test_no_bytes_crash_the_reader(
    model: FactorModel, place: float, patch: bytes, removed: int
) -> None:
    """A file damaged at one place is refused, or is a model of finite numbers."""
    raw = model.to_bytes()
    at = int(place * len(raw))
    try:
        back = read(raw[:at] + patch + raw[at + removed :])
    except DataError as error:
        assert "\n" not in str(error)  # noqa: PT017 - a law of those that are raised
        return
    assert np.isfinite(back.item_means).all()
    assert np.isfinite(back.factors).all()
    assert len(back.items) == len(back.bias) == len(back.factors)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60))
def test_other_files_are_refused(data: bytes) -> None:
    """Whatever they hold."""
    for content in (data, b"PAR1" + data + b"PAR1"):
        with pytest.raises(DataError):
            read(content)


def rewritten(header: Any = None, table: pa.Table | None = None, **options: Any) -> bytes:
    """The example with another header, other columns or another way of storing them."""
    own = pq.read_table(io.BytesIO(example().to_bytes()))
    document = json.loads(own.schema.metadata[b"dpfit"]) if header is None else header
    table = (own if table is None else table).replace_schema_metadata(
        {"dpfit": document if isinstance(document, str) else json.dumps(document)}
    )
    sink = io.BytesIO()
    plainly = {"compression": "none", "use_dictionary": False}
    pq.write_table(table, sink, **{**plainly, **options})
    return sink.getvalue()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items: Any = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    return [p for key, part in items for p in ((*path, key), *places(part, (*path, key)))]


WEIRD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=True),
    st.sampled_from([1e308, "", "factors", [], {}, [[]], [1.0], [5.0, 1.0], 10**400]),
)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_header_is_refused_or_makes_sense(data: st.DataObject) -> None:
    """A member replaced or removed ends with a message about the document, never a crash."""
    header = json.loads(pq.read_metadata(io.BytesIO(example().to_bytes())).metadata[b"dpfit"])
    changed = copy.deepcopy(header)
    path = data.draw(st.sampled_from(places(changed)))
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    if data.draw(st.booleans()):
        inner[path[-1]] = data.draw(WEIRD)
    else:
        del inner[path[-1]]
    try:
        back = read(rewritten(changed))
    except DataError:
        return
    assert np.isfinite(back.item_means).all()
    assert all(map(np.isfinite, back.constants.values()))


def test_no_bit_of_the_footer_ends_the_process() -> None:
    """Each flipped in turn, the codecs among them: refused, or a model of finite numbers."""
    raw = example().to_bytes()
    start = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    header = raw.index(b'{"schema"', start)  # its JSON is the matter of other tests
    for at in (*range(start, header), *range(raw.rindex(b"}"), len(raw))):
        for bit in range(8):
            flipped = bytearray(raw)
            flipped[at] ^= 1 << bit
            with contextlib.suppress(DataError):
                assert np.isfinite(read(bytes(flipped)).factors).all()


def column(name: str, values: Any) -> pa.Table:
    own = pq.read_table(io.BytesIO(example().to_bytes()))
    return own.set_column(own.column_names.index(name), name, [values])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda: rewritten("{"), "its header is not JSON"),
        (lambda: rewritten("[" * 9999), "its header is not JSON"),
        (lambda: rewritten([1]), "the header is no object"),
        (lambda: rewritten({"schema": "dpfit-factors/2"}), "its schema or kind is another"),
        (lambda: rewritten({"kind": "factors"}), "schema is missing"),
        (lambda: rewritten(table=column("bias", pa.array([1, 2, 3]))), "'bias' has another type"),
        (lambda: rewritten(table=column("bias", pa.array([1.0, None, 3.0]))), "value is missing"),
        (lambda: rewritten(table=column("count", pa.array([1.0, np.nan, 3.0]))), "not finite"),
        (lambda: rewritten(table=column("factor_0", pa.array([1.0, 1e200, 3.0]))), "too large"),
        (lambda: rewritten(table=column("item", pa.array(["a", "b", "a"]))), "distinct names"),
        (lambda: rewritten(table=column("item", pa.array(["a", "b", ""]))), "distinct names"),
        (lambda: rewritten(compression="zstd"), "not stored plainly"),
        (lambda: rewritten(use_dictionary=True), "not stored plainly"),
        (lambda: rewritten(table=example_rows(0)), "it holds no items"),
        (lambda: rewritten(table=example_rows(3).drop(["count"])), "its columns are others"),
    ],
)
def test_what_is_refused(content: Any, message: str) -> None:
    """Each by its cause."""
    with pytest.raises(DataError, match=message):
        read(content())


def example_rows(n: int) -> pa.Table:
    return pq.read_table(io.BytesIO(example().to_bytes())).slice(0, n)


def test_a_small_file_of_many_rows_is_refused() -> None:
    """A dictionary of one entry would make a million rows of a few bytes."""
    n = 1_000_000
    columns = {"item": ["a"] * n, **{name: np.zeros(n) for name in ("bias", "count")}}
    table = pa.table({**columns, "factor_0": np.zeros(n), "factor_1": np.zeros(n)})
    content = rewritten(table=table, use_dictionary=True)
    assert len(content) < 30_000
    with pytest.raises(DataError, match="more rows than it has room for"):
        read(content)


def test_other_parquet_and_no_file() -> None:
    """A Parquet file of something else, and a file that is not there."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1]}), sink)
    with pytest.raises(DataError, match="a Parquet file of something else"):
        read(sink.getvalue())
    with pytest.raises(StorageError):
        read_factor_model("none.parquet")
