"""Completions from Python are those of the command line, and each user's part stays local."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import coo_array, csr_array

from dpfit import AssumedFactWarning, MatrixCompleter, PrivacyWarning, load_model

N_USERS, N_ITEMS = 60, 8


def rated() -> csr_array:
    """Ratings from 1 to 5, about half of them; every user and item has some."""
    generator = np.random.Generator(np.random.PCG64(1))
    values = generator.integers(1, 6, (N_USERS, N_ITEMS)).astype(float)
    values[generator.random(values.shape) < 0.5] = 0.0
    np.fill_diagonal(values, 3.0)
    values[:, 0] = 4.0
    return csr_array(values)


X = rated()
TABLE = np.where(X.toarray() > 0.0, X.toarray(), np.nan)
SAID: dict[str, Any] = {"eps": 8.0, "delta": 1e-3, "rating_range": (1.0, 5.0), "rank": 2}
FACTS: dict[str, Any] = {"n_users": N_USERS, "n_items": N_ITEMS}


@pytest.mark.filterwarnings("ignore::dpfit.PrivacyWarning")
def test_a_seeded_completion_is_the_same_to_the_bit(dpfit: Any) -> None:
    """From a Matrix Market file, a sparse matrix and a table; so are its predictions."""
    mmwrite("r.mtx", X)
    Path("items.txt").write_text("\n".join(map(str, range(1, N_ITEMS + 1))))
    dpfit(
        *("complete-matrix", "r.mtx", "--eps", "8", "--delta", "1e-3", "--range", "1", "5"),
        *("--rank", "2", "--seed", "3", "--n-users", str(N_USERS), "--items", "items.txt"),
    )
    wanted = load_model("r.factors.parquet")
    assert isinstance(wanted, MatrixCompleter)
    completer = MatrixCompleter(seed=3, ledger=False, dataset="r", **SAID, **FACTS)
    for rows in (X, TABLE):
        found = completer.fit(rows).model_
        assert found.to_bytes() == Path("r.factors.parquet").read_bytes()
    pairs = [(user, item) for user in range(N_USERS) for item in range(N_ITEMS)]
    users, items = np.array(pairs).T
    with open("pairs.csv", "w", encoding="utf-8") as stream:
        stream.write("user,item\n")
        stream.writelines(f"{user + 1},{item + 1}\n" for user, item in pairs)
    with open("own.csv", "w", encoding="utf-8") as stream:
        stream.write("user,item,value\n")
        rows = np.repeat(np.arange(N_USERS), np.diff(X.indptr))
        entries = zip(rows, X.indices, X.data, strict=True)
        stream.writelines(f"{user + 1},{item + 1},{value!r}\n" for user, item, value in
                          ((int(u), int(i), float(v)) for u, i, v in entries))  # fmt: skip
    names = ("--user", "user", "--item", "item")
    lines = dpfit(
        *("predict", "r.factors.parquet", "--pairs", "pairs.csv", *names, "--value", "value"),
        "own.csv",
    ).splitlines()
    said = np.array([float(line.split("\t")[2]) for line in lines])
    np.testing.assert_array_equal(wanted.predict_pairs(X, users, items), said)


@pytest.fixture(scope="module")
def fitted() -> MatrixCompleter:
    return MatrixCompleter(ledger=False, **SAID, **FACTS).fit(X)


def test_a_table_is_filled(fitted: MatrixCompleter) -> None:
    """Ratings stay as they are, the others are the predictions of pairs, within the range."""
    whole = fitted.transform(X)
    np.testing.assert_array_equal(whole[~np.isnan(TABLE)], TABLE[~np.isnan(TABLE)])
    users, items = np.nonzero(np.isnan(TABLE))
    predicted = fitted.predict_pairs(TABLE, users, items)
    np.testing.assert_allclose(whole[users, items], predicted, rtol=1e-12)
    assert whole.min() >= 1.0
    assert whole.max() <= 5.0
    np.testing.assert_array_equal(fitted.transform(TABLE), whole)


def test_who_has_no_ratings_gets_the_means(fitted: MatrixCompleter) -> None:
    """A row without entries, of a user who was not there at the fit."""
    nobody = csr_array((1, N_ITEMS))
    np.testing.assert_allclose(fitted.transform(nobody)[0], fitted.item_means_, rtol=1e-12)
    assert fitted.components_.shape == (fitted.model_.rank, N_ITEMS)


def test_the_best_new_items(fitted: MatrixCompleter) -> None:
    """None that the user has rated, the best first; a place is -1 when none is left."""
    items, values = fitted.recommend(X, N_ITEMS)
    whole = fitted.transform(X)
    for user in range(N_USERS):
        new = np.flatnonzero(np.isnan(TABLE[user]))
        found = items[user][items[user] >= 0]
        assert sorted(found) == sorted(new)
        assert np.all(np.diff(values[user][: len(new)]) <= 0.0)
        np.testing.assert_allclose(values[user][: len(new)], whole[user, found], rtol=1e-12)
        assert np.isnan(values[user][len(new) :]).all()
    with pytest.raises(ValueError, match="n must be 1 or more"):
        fitted.recommend(X, 0)


@pytest.mark.parametrize(
    ("users", "items"),
    [
        ([-1], [0]),
        ([0], [-1]),
        ([10**6], [0]),
        ([0], [N_ITEMS]),
        ([0.7], [0]),
        ([0, 1], [0]),
        ([[0]], [[0]]),
        (["a"], [0]),
        ([True], [0]),
        ([2**70], [0]),
    ],
)
def test_pairs_are_of_users_and_items(fitted: MatrixCompleter, users: Any, items: Any) -> None:
    """The last user's rating is no answer for user -1."""
    with pytest.raises(ValueError, match=r"users|items"):
        fitted.predict_pairs(X, users, items)
    assert fitted.predict_pairs(X, [], []).shape == (0,)


def test_a_rating_twice_is_refused() -> None:
    """Where sparse matrices would add the two up."""
    twice = coo_array(([1.0, 4.0], ([0, 0], [1, 1])), shape=(2, N_ITEMS))
    with pytest.raises(ValueError, match="twice"):
        MatrixCompleter(ledger=False, **SAID).fit(twice)


def test_a_file_of_python_loads(fitted: MatrixCompleter, tmp_path: Path) -> None:
    """With the same predictions and promises."""
    fitted.save(tmp_path / "a.factors.parquet")
    again = load_model(tmp_path / "a.factors.parquet")
    assert isinstance(again, MatrixCompleter)
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    assert again.privacy_ == replace(fitted.privacy_, ledger=None)
    assert again.ledger_entry_ is None
    assert again.privacy_.record == "user"
    assert again.privacy_.adjacency == "add-remove"


def test_names_of_columns_are_items(tmp_path: Path) -> None:
    """Of a data frame, in which NaN is no rating."""
    pandas = pytest.importorskip("pandas")
    names = [f"film{j}" for j in range(N_ITEMS)]
    frame = pandas.DataFrame(TABLE, columns=names)
    found = MatrixCompleter(ledger=False, **SAID, n_users=N_USERS).fit(frame)
    assert found.model_.items == tuple(names)
    assert found.privacy_.assumed == {}
    found.save(tmp_path / "a.factors.parquet")
    assert load_model(tmp_path / "a.factors.parquet").feature_names_in_.tolist() == names


def test_a_list_of_ratings_is_no_matrix(tmp_path: Path) -> None:
    """Three columns are taken for three items with a warning, whatever the cells hold."""
    ledger = tmp_path / "a.ledger.json"
    users, items = X.nonzero()
    listed = np.stack([users, items, X.data], axis=1)
    for rows in (listed, TABLE[:, :3]):
        with pytest.warns(PrivacyWarning, match=r"make coo_array\(\(ratings, \(users, items\)\)\)"):
            MatrixCompleter(ledger=False, **SAID, n_users=len(rows)).fit(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PrivacyWarning):
            MatrixCompleter(ledger=ledger, **SAID, n_users=len(listed)).fit(listed)
        MatrixCompleter(ledger=False, **SAID, n_users=N_USERS, n_items=3).fit(TABLE[:, :3])
        MatrixCompleter(ledger=False, **SAID, n_users=N_USERS, n_items=3).fit(X[:, :3])
        found = MatrixCompleter(ledger=False, **SAID, **FACTS)
        found.fit(coo_array((listed[:, 2], (users, items)), shape=X.shape))
    assert not ledger.exists()


def test_what_is_assumed_of_a_matrix_is_told() -> None:
    """By the parameters that declare it."""
    with pytest.warns(AssumedFactWarning, match="n_users=60, n_items=8; declare them"):
        MatrixCompleter(ledger=False, **SAID).fit(X)


def test_numbers_of_columns_are_items(tmp_path: Path) -> None:
    """Of a data frame of films by number: not their places."""
    pandas = pytest.importorskip("pandas")
    films = [10 * j for j in range(N_ITEMS)]
    found = MatrixCompleter(ledger=False, **SAID, n_users=N_USERS)
    found.fit(pandas.DataFrame(TABLE, columns=films))
    assert found.model_.items == tuple(map(str, films))
    found.save(tmp_path / "a.factors.parquet")
    again = load_model(tmp_path / "a.factors.parquet")
    frame = pandas.DataFrame(TABLE, columns=films)
    np.testing.assert_array_equal(again.transform(frame), found.transform(frame))
