"""Predictions from own ratings: the solver's, whoever asks and however the file is read."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfit.data.id_table import IdTable
from dpfit.data.pairs import Pairs, read_pairs
from dpfit.data.ratings import RatingOptions, RatingReader
from dpfit.data.ratings_by_user import RatingsByUser, rating_parts
from dpfit.files.factor_model import FactorModel
from dpfit.fitting import factor_prediction
from dpfit.fitting.factor_prediction import FactorPredictor, pair_errors

N_ITEMS = 6
NAMES = {"user": "u", "item": "i", "value": "v"}


def model(bias: np.ndarray | None = None) -> FactorModel:
    bias = np.linspace(-1.0, 1.0, N_ITEMS) if bias is None else bias
    return FactorModel(
        provenance={},
        private=True,
        value_range=(1.0, 5.0),
        global_mean=3.0,
        constants={"offset_ridge": 2.0},
        columns=dict.fromkeys(("user", "item", "value")),
        items=tuple(f"i{j}" for j in range(len(bias))),
        bias=bias,
        count=np.ones(len(bias)),
        factors=np.zeros((len(bias), 0)),
    )


class OffsetSolver:
    """Stands for the real solve: the item mean, and an offset by ridge on the user's residuals."""

    def __init__(self, model: FactorModel) -> None:
        self._means = model.global_mean + model.bias
        self._ridge = model.constants["offset_ridge"]

    def coefficients(self, ratings: RatingsByUser) -> np.ndarray:
        residuals = ratings.values - self._means[ratings.items]
        sums = np.bincount(ratings.rows, weights=residuals, minlength=ratings.n_users)
        return (sums / (np.diff(ratings.indptr) + self._ridge))[:, np.newaxis]

    def predict(self, coefficients, users, items) -> np.ndarray:
        return coefficients[users, 0] + self._means[items]

    def predict_all(self, coefficients) -> np.ndarray:
        return coefficients + self._means


def reader(lines: list[str], *, values: bool = True) -> RatingReader:
    content = "\n".join(["u,i,v" if values else "u,i", *lines]).encode()
    options = RatingOptions(format="csv", **NAMES, values=values, predicting=True)
    items = IdTable(model().items, fixed=True)
    return RatingReader(["-"], options, io.BytesIO(content), items=items)


def predictor() -> FactorPredictor:
    return FactorPredictor(model(), OffsetSolver(model()))


def predict(ratings: list[str], pairs: Pairs, *, grouped: bool) -> np.ndarray:
    own = reader(ratings)
    return predictor().pairs(rating_parts(own, grouped=grouped), own.users, pairs)


RATINGS = st.lists(
    st.lists(
        st.tuples(st.integers(0, N_ITEMS - 1), st.integers(2, 10)),
        min_size=1,
        max_size=N_ITEMS,
        unique_by=lambda pair: pair[0],
    ),
    min_size=1,
    max_size=5,
)


def lines_of(ratings: list[list[tuple[int, int]]]) -> list[str]:
    return [f"n{user},i{j},{v / 2}" for user, own in enumerate(ratings) for j, v in own]


@settings(max_examples=100, deadline=None)
@given(
    RATINGS,
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, N_ITEMS - 1)), min_size=1, max_size=9),
    st.booleans(),
)
def test_pairs_are_predicted_in_their_order(
    ratings: list[list[tuple[int, int]]], asked: list[tuple[int, int]], grouped: bool
) -> None:
    """Each by the formula, from the user's own ratings; strangers get the released item mean."""
    pairs = read_pairs(reader([f"n{user},i{item}" for user, item in asked], values=False))
    found = predict(lines_of(ratings), pairs, grouped=grouped)
    means = 3.0 + np.linspace(-1.0, 1.0, N_ITEMS)
    for (user, item), value in zip(asked, found, strict=True):
        own = ratings[user] if user < len(ratings) else []
        offset = sum(v / 2 - means[j] for j, v in own) / (len(own) + 2.0)
        assert value == pytest.approx(np.clip(means[item] + offset, 1, 5), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(RATINGS, st.integers(0, 4), st.integers(2, 10))
def test_a_user_depends_on_own_ratings_only(
    ratings: list[list[tuple[int, int]]], other: int, value: int
) -> None:
    """Changing what one user rated changes no other user's predictions, to the last bit."""
    users = len(ratings)
    changed = [own if user != other else [(0, value)] for user, own in enumerate(ratings)]
    asked = [f"n{user},i{item}" for user in range(users) for item in range(N_ITEMS)]
    before, after = (
        predict(lines_of(given), read_pairs(reader(asked, values=False)), grouped=False)
        for given in (ratings, changed)
    )
    same = np.repeat(np.arange(users), N_ITEMS) != other
    assert before[same].tobytes() == after[same].tobytes()


@settings(max_examples=100, deadline=None)
@given(RATINGS, st.integers(1, N_ITEMS + 2), st.booleans(), st.integers(1, 30))
def test_top_items_are_the_best_unrated_ones(
    ratings: list[list[tuple[int, int]]], n: int, grouped: bool, cells: int
) -> None:
    """As by sorting all items of each user, at any size of the tables held at a time."""
    own = reader(lines_of(ratings))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(factor_prediction, "_CELLS", cells)
        parts = list(predictor().top(rating_parts(own, grouped=grouped), n))
    found = [
        (own.users.texts[user], item, value)
        for part in parts
        for user, item, value in zip(
            part.user.tolist(), part.item.tolist(), part.value.tolist(), strict=True
        )
    ]
    expected = []
    for user, rated in enumerate(ratings):
        free = sorted(set(range(N_ITEMS)) - {item for item, _ in rated}, reverse=True)
        expected += [(f"n{user}", item) for item in free[:n]]  # the bias grows with the row
    assert [entry[:2] for entry in found] == expected
    assert all(1 <= value <= 5 for _, _, value in found)


@given(
    st.lists(
        st.lists(st.sampled_from([-np.inf, 0.0, 1.0, 2.0]), min_size=4, max_size=4), max_size=4
    ),
    st.integers(1, 4),
)
def test_ties_go_by_row(scores: list[list[float]], k: int) -> None:
    """The order is that of a stable sort, largest first."""
    table = np.array(scores, np.float64).reshape(-1, 4)
    found = factor_prediction._largest(table, k)
    assert found.tolist() == np.argsort(-table, axis=1, kind="stable")[:, :k].tolist()


def test_beyond_the_range_items_still_differ() -> None:
    """Items that all are predicted the upper bound are ranked by what lies beyond it."""
    high = model(np.array([2.0, 4.0, 3.0]))
    part = RatingsByUser(0, np.array([0, 0]), np.array([], np.int64), np.array([]))
    (top,) = FactorPredictor(high, OffsetSolver(high)).top([part], 3)
    assert top.item.tolist() == [1, 2, 0]
    assert top.value.tolist() == [5.0, 5.0, 5.0]


def test_a_libsvm_user_without_ratings_gets_the_item_means() -> None:
    """The second row is empty: its suggestions are the items of the highest mean."""
    items = IdTable(["1", "2", "3"], fixed=True)
    own = RatingReader(
        ["-"], RatingOptions(format="libsvm"), io.BytesIO(b"1 1:5\n1\n1 3:1\n"), items=items
    )
    three = model(np.array([0.5, -0.5, 1.0]))
    found = list(FactorPredictor(three, OffsetSolver(three)).top(rating_parts(own), 2))
    user = np.concatenate([part.user for part in found])
    item = np.concatenate([part.item for part in found])
    value = np.concatenate([part.value for part in found])
    assert item[user == 1].tolist() == [2, 0]
    assert value[user == 1].tolist() == [4.0, 3.5]
    assert own.users.texts == ["1", "2", "3"]


def test_errors_of_pairs() -> None:
    """Root mean square and mean absolute difference; what overflows is infinite, not an error."""
    errors = pair_errors(np.array([1.0, 4.0]), np.array([2.0, 1.0]))
    assert (errors.pairs, errors.rmse, errors.mae) == (2, pytest.approx(5**0.5), 2.0)
    assert pair_errors(np.array([1.0]), np.array([1e300])).rmse == np.inf


def test_pairs_keep_their_values_for_comparison() -> None:
    """In file order, repeated pairs included."""
    pairs = read_pairs(reader(["a,i1,3", "b,i0,4", "a,i1,5"]))
    assert pairs.value is not None
    assert pairs.value.tolist() == [3, 4, 5]
    assert [pairs.users.texts[code] for code in pairs.user] == ["a", "b", "a"]
    assert pairs.item.tolist() == [1, 0, 1]
