"""Model files: every model comes back as it was, and no damaged one gets through."""

from __future__ import annotations

import copy
import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfit.data.rows import RowBlock
from dpfit.errors import DataError
from dpfit.files.linear_model import LINKS, WITH_OFFSET, LinearModel, read_linear_model
from dpfit.fitting.prediction import LinearPredictor

NUMBERS = st.floats(-1e6, 1e6)


@st.composite
def models(draw: st.DrawFn, loss: str | None = None) -> LinearModel:
    """A model of any loss, centred or not, with any number of coefficients."""
    loss = loss or draw(st.sampled_from(sorted(LINKS)))
    k = draw(st.integers(2, 4)) if loss == "multinomial" else None
    kept = sorted(draw(st.sets(st.integers(0, 9), max_size=4)))

    def scores() -> Any:
        return draw(NUMBERS) if k is None else np.array([draw(NUMBERS) for _ in range(k)])

    values = np.array([scores() for _ in kept], np.float64)
    textual, classes = draw(st.booleans()), None
    if loss in ("logistic", "multinomial"):
        classes = tuple(f"c{i}" if textual else float(i) for i in range(k or 2))
    low = 0.0 if loss == "poisson" else draw(NUMBERS)
    centring = None
    if draw(st.booleans()):
        centring = (np.array([draw(NUMBERS) for _ in kept]), draw(st.floats(0.01, 1.0)))
    names = st.one_of(st.none(), st.text(max_size=5))
    return LinearModel(
        provenance={"dataset": "toy"},
        private=draw(st.booleans()),
        loss=loss,
        classes=classes,
        target_range=None if classes else (low, low + draw(st.floats(1.0, 100.0))),
        n_features=10,
        index_base=draw(st.integers(0, 1)),
        feature_map=None,
        label_column=draw(names),
        weight_column=draw(names),
        offset_column=draw(names) if loss in WITH_OFFSET else None,
        exposure_column=draw(names) if loss in WITH_OFFSET else None,
        hash_bits=None,
        row_map=(draw(st.sampled_from(["normalize", "clip"])), draw(st.floats(0.1, 10.0))),
        entry_clip=draw(st.sampled_from([0.2, 1.0])),
        intercept=scores(),
        offset=scores(),
        centring=centring,
        indices=np.array(kept, np.int64),
        values=values.reshape(len(kept), k) if k else values,
    )


def read(document: bytes) -> LinearModel:
    """By way of a file, as there is no other."""
    path = Path(f"hypothesis.{os.getpid()}.json")
    path.write_bytes(document)
    return read_linear_model(str(path))


@pytest.fixture(autouse=True, scope="module")
def _in_a_folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("models"))
    yield
    os.chdir(before)


def some_rows(model: LinearModel) -> RowBlock:
    """Three rows, one without an entry; with offsets of any size where the loss has them."""
    return RowBlock(
        np.array([0, 3, 3, 4]),
        np.array([0, 4, 9, 2], np.int32) + np.int32(model.index_base),
        np.array([1.0, -2.0, 1e300, 5.0]),
        None,
        np.array([0.0, -1e308, 1e308]) if model.loss in WITH_OFFSET else None,
    )


@pytest.mark.parametrize("loss", sorted(LINKS))
@settings(max_examples=60)
@given(st.data())
def test_a_model_comes_back_as_it_was(loss: str, data: st.DataObject) -> None:
    """Every member, bit by bit; and what comes back is written to the same bytes."""
    model = data.draw(models(loss))
    back = read(model.to_bytes())
    for field in fields(LinearModel):
        assert np.array_equal(getattr(back, field.name), getattr(model, field.name)) or (
            field.name == "centring" and same_centring(back, model)
        )
    assert back.values.shape == model.values.shape
    assert back.to_bytes() == model.to_bytes()


def same_centring(left: LinearModel, right: LinearModel) -> bool:
    assert left.centring is not None
    assert right.centring is not None
    return np.array_equal(left.centring[0], right.centring[0]) and (
        left.centring[1] == right.centring[1]
    )


@settings(max_examples=200)
@given(models())
def test_predictions_are_finite(model: LinearModel) -> None:
    """For rows and offsets of any size; probabilities sum to one, values keep their range."""
    predictor = LinearPredictor(model)
    margins = predictor.margins(some_rows(model))
    means = predictor.means(margins)
    assert np.all(np.isfinite(margins))
    assert np.all(np.isfinite(means))
    if model.loss == "multinomial":
        assert means.shape == margins.shape == (3, len(model.classes or ()))
        assert means.sum(axis=1) == pytest.approx(np.ones(3))
    if model.classes is not None:
        assert set(predictor.answers(margins).tolist()) <= set(model.classes)
    if model.loss in ("squared", "huber"):
        low, high = model.target_range or (0.0, 0.0)
        rounding = 1e-15 * max(abs(low), abs(high))
        assert np.all((means >= low) & (means <= high + rounding))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of everything in a document that decides a prediction."""
    items: Any = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    inside = []
    for key, part in items:
        if key != "provenance":
            inside += [(*path, key), *places(part, (*path, key))]
    return inside


WEIRD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([1e308, -1e308, "", "logistic", "poisson", "multinomial", [], {}, [[]], [1.0]]),
    st.text(max_size=3),
    st.lists(st.one_of(st.floats(-5, 5), st.none()), max_size=4),
)


@settings(max_examples=300)
@given(models(), st.data())
def test_a_damaged_model_is_refused_or_predicts(model: LinearModel, data: st.DataObject) -> None:
    """A member replaced or removed ends with a message about the document, never a crash."""
    document = json.loads(model.to_bytes())
    changed = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(places(changed)))
        inner = changed
        for key in path[:-1]:
            inner = inner[key]
        if data.draw(st.booleans()):
            inner[path[-1]] = data.draw(WEIRD)
        else:
            del inner[path[-1]]
        if not places(changed):
            return
    try:
        back = read(json.dumps(changed).encode())
    except DataError:
        return
    predictor = LinearPredictor(back)
    margins = predictor.margins(some_rows(back))
    assert np.all(np.isfinite(predictor.means(margins)))
    predictor.answers(margins)


@pytest.mark.parametrize(
    ("loss", "change"),
    [
        ("multinomial", {"intercept": 1.0}),
        ("multinomial", {"offset": [1.0]}),
        ("multinomial", {"classes": ["a"]}),
        ("multinomial", {"classes": ["a", "a"]}),
        ("multinomial", {"loss": "logistic"}),
        ("logistic", {"classes": ["a", "b", "c"]}),
        ("logistic", {"intercept": [1.0, 2.0]}),
        ("poisson", {"target_range": [1.0, 2.0]}),
        ("poisson", {"target_range": None}),
        ("huber", {"target_range": [2.0, 1.0]}),
        ("squared", {"loss": "hinge"}),
        ("squared", {"features": {"exposure": "e"}}),
        ("squared", {"offset": 1e308, "intercept": 1e308}),
    ],
    ids=str,
)
@settings(max_examples=5)
@given(st.data())
def test_contradictions_are_refused(loss: str, change: dict[str, Any], data: st.DataObject) -> None:
    """A loss, its classes, its range and the shapes of its scores must belong together."""
    document = json.loads(data.draw(models(loss)).to_bytes())
    if "classes" in change or change.get("loss") == "logistic":
        document["intercept"] = document["intercept"] if loss == "logistic" else [0.0] * 3
    features = {**document["features"], **change.get("features", {})}
    with pytest.raises(DataError):
        read(json.dumps({**document, **change, "features": features}).encode())


@settings(max_examples=20)
@given(st.data())
def test_a_centring_that_overflows_is_refused(data: st.DataObject) -> None:
    """Its constant divides every score: one of 1e-300 needs scores below 1e8."""
    model = data.draw(models().filter(lambda model: model.centring is not None))
    document = json.loads(model.to_bytes())
    document["centring"]["constant"] = 1e-300
    document["intercept"] = (1e10 + 0.0 * np.asarray(model.intercept)).tolist()
    with pytest.raises(DataError, match="too large"):
        read(json.dumps(document).encode())
