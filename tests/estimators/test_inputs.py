"""Every form of the same rows gives the same model, to the bit."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix, dok_array

from dpfit import MatrixCompleter, SparseClassifier, SparseRegressor
from dpfit.data.rows import RowBlock
from dpfit.estimators.attributes import Attributes
from dpfit.estimators.row_blocks import row_blocks
from labelled_rows import BUDGET, FACTS, labelled_rows

X, Y = labelled_rows().X, labelled_rows().y


def with_wide_indices(X: csr_array) -> csr_array:
    found = X.copy()
    found.indices, found.indptr = found.indices.astype(np.int64), found.indptr.astype(np.int64)
    return found


def split_entries(X: csr_array) -> coo_array:
    """Every entry as two halves at one place."""
    one = X.tocoo()
    row, col = (np.concatenate([part, part]) for part in one.coords)
    return coo_array((np.concatenate([one.data, one.data]) / 2.0, (row, col)), shape=X.shape)


def unsorted(X: csr_array) -> csr_array:
    found = X.copy()
    for row in range(X.shape[0]):
        part = slice(X.indptr[row], X.indptr[row + 1])
        found.indices[part] = found.indices[part][::-1]
        found.data[part] = found.data[part][::-1]
    found.has_sorted_indices = False
    found.has_canonical_format = False
    return found


def read_only(X: csr_array) -> csr_array:
    found = X.copy()
    for array in (found.data, found.indices, found.indptr):
        array.flags.writeable = False
    return found


FORMS = {
    "csc": csc_array,
    "coo": coo_array,
    "dok": dok_array,
    "matrix": csr_matrix,
    "int64 indices": with_wide_indices,
    "halves of entries": split_entries,
    "unsorted": unsorted,
    "read-only": read_only,
    "table": csr_array.toarray,
    "columns first": lambda X: np.asfortranarray(X.toarray()),
    "lists": lambda X: X.toarray().tolist(),
}


@pytest.mark.filterwarnings("ignore::dpfit.PrivacyWarning")
@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_model(form: str) -> None:
    """And is left as it was."""
    estimator = SparseClassifier(sparsity=4, seed=5, ledger=False, **BUDGET, **FACTS)
    wanted = estimator.fit(X, Y)
    coefficients, chances = wanted.coef_, wanted.predict_proba(X)
    rows = FORMS[form](X)
    found = estimator.fit(rows, Y)
    np.testing.assert_array_equal(found.coef_, coefficients)
    np.testing.assert_array_equal(found.predict_proba(rows), chances)
    if form == "unsorted":
        assert not rows.has_sorted_indices
        np.testing.assert_array_equal(rows.indices, unsorted(X).indices)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.filterwarnings("ignore::dpfit.PrivacyWarning")
def test_data_frames(library: str) -> None:
    """Their names are kept and held to; texts are labels."""
    frames = pytest.importorskip(library)
    names = [f"x{j}" for j in range(12)]
    columns = dict(zip(names, X.toarray().T, strict=True))
    frame, words = frames.DataFrame(columns), np.where(Y > 0, "yes", "no")
    target = frames.Series(words.tolist())
    estimator = SparseClassifier(seed=5, ledger=False, **BUDGET, n_rows=80, labels=["no", "yes"])
    fitted = estimator.fit(frame, target)
    said = np.where(fitted.decision_function(frame) > 0, "yes", "no")
    assert fitted.predict(frame).tolist() == said.tolist()
    if library == "polars" and not hasattr(fitted, "feature_names_in_"):
        pytest.skip("this scikit-learn reads no names off this polars")
    np.testing.assert_array_equal(fitted.feature_names_in_, names)
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame[names[::-1]])


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 1]),
        np.array([False, True]),
        np.array([2.0, 7.0]),
        np.array([3, 200], np.uint8),
        np.array(["a", "bcd"]),
        np.array(["a", "bcd"], object),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_keep_their_type(labels: np.ndarray) -> None:
    """Answers are of the target's type, and score counts them."""
    target = labels[(Y > 0).astype(int)]
    facts = {**FACTS, "labels": labels.tolist()}
    fitted = SparseClassifier(ledger=False, eps=1000.0, delta=1e-3, **facts).fit(X, target)
    assert fitted.classes_.dtype == labels.dtype
    np.testing.assert_array_equal(fitted.classes_, labels)
    assert fitted.predict(X).dtype == labels.dtype
    assert fitted.score(X, target) > 0.9


def test_labels_that_no_float_holds() -> None:
    """Are refused instead of taken together."""
    target = np.where(Y > 0, 2**60, 2**60 + 1)
    with pytest.raises(ValueError, match="labels are neither"):
        SparseClassifier(ledger=False, **BUDGET).fit(X, target)


def test_weights_count_up_to_their_bound() -> None:
    """Rows of weight zero have no say; without noise that can be seen."""
    target = np.where(np.arange(80) < 40, 0.0, 1.0)
    weights = np.where(target > 0.0, 1.0, 0.0)
    estimator = SparseRegressor(non_private=True, ledger=False, target_range=(0.0, 1.0))
    with pytest.warns(UserWarning, match="not private"):
        fitted = estimator.set_params(max_weight=1.0).fit(X, target, sample_weight=weights)
    assert fitted.predict(X).mean() > 0.8
    with pytest.raises(ValueError, match="negative weight"):
        estimator.fit(X, target, sample_weight=-weights)
    with pytest.raises(ValueError, match="max_weight needs sample_weight"):
        estimator.fit(X, target)


def test_blocks_are_all_rows_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small they are; long rows and empty ones are blocks too."""
    rows = csr_array(np.vstack([X.toarray(), np.zeros((3, 12)), np.ones((2, 12))]))
    unit = np.array([f"{row % 9}" for row in range(85)])
    beside = Attributes.of({"weight": np.ones(85), "unit": unit, "offset": np.arange(85.0)}, rows)
    for cells in (1, 7, 30, 10_000):
        monkeypatch.setattr(sys.modules[row_blocks.__module__], "_CELLS", cells)
        for form in (rows, rows.toarray()):
            blocks = list(row_blocks(form, 1, np.arange(85.0), beside))
            again = np.concatenate([dense(block, 12) for block in blocks])
            np.testing.assert_array_equal(again, rows.toarray())
            targets: list[Any] = [block.target for block in blocks]
            np.testing.assert_array_equal(np.concatenate(targets), np.arange(85.0))
            offsets: list[Any] = [block.offset for block in blocks]
            np.testing.assert_array_equal(np.concatenate(offsets), np.arange(85.0))
            owners: list[Any] = [block.owner for block in blocks]
            said = [owner.texts[code] for owner in owners for code in owner.codes]
            assert said == unit.tolist()
            assert all(len(owner.texts) == len(set(owner.codes)) for owner in owners)


def dense(block: RowBlock, n_features: int) -> np.ndarray:
    whole = csr_array((block.values, block.indices, block.indptr), (block.n_rows, n_features + 1))
    return whole.toarray()[:, 1:]


SECRET = 48151623.42
QUOTING: dict[str, Any] = {
    "texts": (np.full((80, 2), f"{SECRET}x"), Y, None),
    "objects": (np.full((80, 2), f"{SECRET}x", object), Y, None),
    "a vector": (np.full(80, SECRET), Y, None),
    "a number": (np.array(SECRET), Y, None),
    "complex rows": (np.full((80, 2), SECRET + 0j), Y, None),
    "a complex target": (X, np.full(80, SECRET + 0j), None),
    "a target of texts": (X, np.full(80, f"{SECRET}x"), None),
    "weights of texts": (X, Y, [f"{SECRET}x"] * 80),
    "a weight": (X, Y, np.array(SECRET)),
    "complex weights": (X, Y, np.full(80, SECRET + 0j)),
}


@pytest.mark.filterwarnings("ignore::dpfit.AssumedFactWarning")
@pytest.mark.parametrize("what", QUOTING)
def test_no_error_quotes_the_data(what: str) -> None:
    """Errors of scikit-learn do; they end in logs."""
    rows, target, weights = QUOTING[what]
    one = SparseRegressor(ledger=False, **BUDGET)
    with pytest.raises((TypeError, ValueError)) as caught:
        one.fit(rows, target, sample_weight=weights)
    assert "48151623" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    if weights is None and target is Y:
        fitted = one.fit(np.ones((80, 2)), Y)
        with pytest.raises((TypeError, ValueError)) as caught:
            fitted.predict(rows)
        assert "48151623" not in str(caught.value)


def broken(kind: Any, name: str, value: int) -> Any:
    """A matrix whose arrays were changed once it was made."""
    found = kind(X.copy())
    (found.coords[1] if name == "col" else getattr(found, name))[3] = value
    return found


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (csr_array, "indices"),
        (csr_array, "indptr"),
        (csc_array, "indices"),
        (csc_array, "indptr"),
        (coo_array, "col"),
    ],
)
@pytest.mark.parametrize("value", [-1, 10**6])
def test_places_outside_a_matrix_are_refused(kind: Any, name: str, value: int) -> None:
    """Compiled loops would read and write there."""
    for one in (
        SparseClassifier(ledger=False, **BUDGET),
        MatrixCompleter(ledger=False, rating_range=(-9, 9), **BUDGET),
    ):
        with pytest.raises(ValueError, match=r"ind|row|column"):
            one.fit(broken(kind, name, value), Y)


def test_parts_of_an_entry_that_add_up_to_infinity_are_refused() -> None:
    """As an infinite entry is; each of them is finite."""
    twice = csr_array(
        (np.full(160, 1e308), np.zeros(160, int), np.arange(0, 161, 2)), shape=(80, 12)
    )
    with pytest.raises(ValueError, match="infinity"):
        SparseClassifier(ledger=False, **BUDGET).fit(twice, Y)
