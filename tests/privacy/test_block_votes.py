"""Votes of row blocks: the kernel against a dense reference, and what one record changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpfit.data.rows import RowBlock
from dpfit.design.builder import DesignBuilder
from dpfit.design.grid import Grid, RowMap
from dpfit.design.local import LocalDesign
from dpfit.design.row_blocks import interleaved
from dpfit.losses.base import Loss
from dpfit.losses.logistic import Logistic
from dpfit.losses.squared import Squared
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.block_votes import block_votes, voted
from dpfit.privacy.curator import Curator
from dpfit.privacy.mechanisms.noise import NoNoise
from dpfit.privacy.private_records import PrivateRecords
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.selection_release import SelectionRelease, score_sensitivity

GRID = Grid(1.0, RowMap.NORMALIZE, 20, True)
Floats = NDArray[np.float64]


def design_of(X: Floats) -> LocalDesign:
    mask = X != 0.0
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(mask.sum(axis=1))])
    builder = DesignBuilder(GRID)
    builder.collect([RowBlock(ends, np.nonzero(mask)[1].astype(np.int32), X[mask], None)])
    return builder.build(X.shape[1], grid=GRID, index_base=0)


def reference_vote(X: Floats, y: Floats, loss: Loss, s: int) -> list[int]:
    """The same steps on a dense matrix of all columns."""
    theta, constant = np.zeros(X.shape[1]), 0.0
    X = X - X.mean(axis=0)
    for _ in range(8):
        residual = np.clip(loss.residual(X @ theta + constant, y), -1, 1)
        constant -= residual.mean()
        gradient = X.T @ (residual - residual.mean()) / len(y)
        top = np.argsort(-np.abs(gradient))[:s]
        support = np.flatnonzero(theta) if theta.any() else top
        along = np.zeros_like(theta)
        along[support] = gradient[support]
        theta = theta - along @ along / np.mean((X @ along) ** 2) * gradient
        theta[np.argsort(-np.abs(theta))[s:]] = 0.0
    return np.flatnonzero(theta).tolist()


@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=["logistic", "squared"])
def test_the_kernel_is_the_dense_one(loss: Loss) -> None:
    """Sparse blocks vote as a dense computation of the same steps does."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 40)) * (rng.random((300, 40)) < 0.3)
    y = (X[:, 3] - X[:, 17] + 0.3 * rng.standard_normal(300) > 0).astype(np.float64)
    design = design_of(X)
    exact = design.by_row().toarray() / GRID.integer_norm
    votes = np.zeros(40, np.int64)
    for block in range(7):
        votes[reference_vote(exact[block::7], y[block::7], loss, 4)] += 1
    counts = block_votes(design, y, loss, sparsity=4, n_blocks=7, integer_norm=GRID.integer_norm)
    assert counts.tolist() == votes.tolist()
    assert counts.sum() == 28
    assert set(np.argsort(-counts)[:2].tolist()) == {3, 17}


VALUES = st.one_of(
    st.floats(-10, 10), st.sampled_from([0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, 1e-200])
)
D, N, UNIT, CHOSEN = 5, 25, 1 << 12, 2
RECORDS = st.tuples(st.lists(VALUES, min_size=D, max_size=D), st.floats(0.0, 1.0))


class _Seen(NoNoise):
    scores: list[int]

    def choose(
        self, scores: NDArray[np.int64], k: int, scale_bits: int, step: int
    ) -> NDArray[np.int64]:
        self.scores = scores.tolist()
        return super().choose(scores, k, scale_bits, step)


def release() -> SelectionRelease:
    sensitivity = score_sensitivity(Quantity.VOTES, GRID)
    return SelectionRelease("votes", Quantity.VOTES, sensitivity, UNIT, 20, CHOSEN, 1)


def scores_of(X: Floats, y: Floats, loss: Loss) -> list[int]:
    noise = _Seen()
    Curator(
        records=PrivateRecords(design_of(X), y),
        loss=loss,
        grid=GRID,
        n_rows=N,
        releases=[release()],
        noise=noise,
    ).columns_by_vote("votes")
    return noise.scores


def data(seed: int) -> tuple[Floats, Floats]:
    """Records whose votes hang by a thread: few values, few rows in a block."""
    rng = np.random.default_rng(seed)
    X = rng.choice([0.0, 0.0, 1.0, -1.0, 2.0], (N, D))
    return X, (rng.random(N) < 0.5).astype(np.float64)


@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=["logistic", "squared"])
@settings(max_examples=100)
@given(st.integers(0, 2**32), st.integers(0, N - 1), RECORDS)
def test_a_record_moves_every_score_within_the_charge(
    loss: Loss, seed: int, place: int, other: tuple[list[float], float]
) -> None:
    """No count moves by more than D_inf = eta 2^b / 2, whatever replaces a record or leaves it."""
    X, y = data(seed)
    before = scores_of(X, y, loss)
    replaced, labels = X.copy(), y.copy()
    replaced[place], labels[place] = other
    after = {Adjacency.REPLACE_ONE: scores_of(replaced, labels, loss)}
    after[Adjacency.ADD_REMOVE] = scores_of(X[:-1], y[:-1], loss)  # all others keep their place
    for adjacency, scores in after.items():
        bound = release().event().eta.under(adjacency) * 2**20 / 2
        assert all(abs(a - b) <= bound for a, b in zip(before, scores, strict=True))


def test_the_charge_of_the_votes_is_attained() -> None:
    """Some record moves a count by exactly the charge."""
    X, y = data(0)
    bound = release().event().eta.replace_one * 2**20 / 2
    before, moves = scores_of(X, y, Logistic()), set()
    for place in range(N):
        flipped = y.copy()
        flipped[place] = 1.0 - flipped[place]
        after = scores_of(X, flipped, Logistic())
        moves |= {abs(a - b) for a, b in zip(before, after, strict=True)}
    assert max(moves) == bound


@given(st.integers(0, 2**32), st.integers(0, N - 1), RECORDS)
def test_a_record_changes_the_vote_of_its_block_alone(
    seed: int, place: int, other: tuple[list[float], float]
) -> None:
    """Every other block votes exactly as before."""
    X, y = data(seed)
    replaced, labels = X.copy(), y.copy()
    replaced[place], labels[place] = other

    def votes(X: Floats, y: Floats) -> list[list[int]]:
        blocks = interleaved(design_of(X), 5, GRID.integer_norm)
        return [voted(one, y[one.positions], Squared(), CHOSEN).tolist() for one in blocks]

    changed = [a != b for a, b in zip(votes(X, y), votes(replaced, labels), strict=True)]
    assert not any(changed[: place % 5] + changed[place % 5 + 1 :])


def test_empty_blocks_do_not_vote() -> None:
    """Rows without entries, and fewer rows than blocks, are no error."""
    design = design_of(np.zeros((3, D)))
    counts = block_votes(
        design, np.zeros(3), Logistic(), sparsity=2, n_blocks=9, integer_norm=GRID.integer_norm
    )
    assert counts.tolist() == [0] * D


def test_votes_cannot_be_paid_by_another_selection() -> None:
    """A selection charged for votes answers no other question, and the reverse."""
    X, y = data(0)
    gradient = SelectionRelease(
        "votes", Quantity.SELECTION, score_sensitivity(Quantity.SELECTION, GRID), UNIT, 20, 2, 1
    )
    door = Curator(
        records=PrivateRecords(design_of(X), y),
        loss=Logistic(),
        grid=GRID,
        n_rows=N,
        releases=[gradient],
        noise=NoNoise(),
    )
    with pytest.raises(RuntimeError, match="charged"):
        door.columns_by_vote("votes")


def test_a_residual_next_to_nothing_ends_no_vote() -> None:
    """Squares of 1e-162 vanish, one sooner than the other: no record can end a charged run."""
    design = design_of(np.array([[1.0], [0.0]]))
    votes = block_votes(
        design,
        np.array([1.2e-161, 1.0]),
        Squared(),
        sparsity=1,
        n_blocks=1,
        integer_norm=GRID.integer_norm,
    )
    assert votes.tolist() == [1]
