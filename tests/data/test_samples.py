"""The sample files are what their script writes, and are fit to be fitted."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpfit.data.id_table import IdTable, read_ids
from dpfit.data.pairs import read_pairs
from dpfit.data.ratings import RatingOptions, RatingReader
from dpfit.data.ratings_by_user import collect_ratings
from dpfit.data.reader import Reader, ReadOptions
from dpfit.data.schema import Schema

SAMPLES = Path(__file__).parents[2] / "sample_data"


@pytest.fixture(scope="module")
def remade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = importlib.util.spec_from_file_location("make_samples", SAMPLES / "make_samples.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("samples")
    module.write_all(folder)
    return folder


TEXTS = [
    *("text.svm", "text.test.svm", "income.csv", "income.toml"),
    *("ratings.csv", "ratings.test.csv", "films.txt", "stars.toml"),
]


@pytest.mark.parametrize("name", TEXTS)
def test_text_files_are_reproduced(remade: Path, name: str) -> None:
    """Byte for byte."""
    assert (remade / name).read_bytes() == (SAMPLES / name).read_bytes()


def test_the_parquet_file_is_reproduced(remade: Path) -> None:
    """The same table; its bytes depend on pyarrow's version."""
    assert pq.read_table(remade / "sensors.parquet").equals(
        pq.read_table(SAMPLES / "sensors.parquet")
    )


def test_text_rows_are_unit_rows_of_both_classes() -> None:
    """Norms are at most 1, as the declared bound wants; labels are balanced."""
    (block,) = Reader([str(SAMPLES / "text.svm")], ReadOptions(index_base=1, n_features=1000))
    squares = np.add.reduceat(block.values**2, block.indptr[:-1])
    assert squares.max() <= 1
    assert squares.min() > 0.99
    assert block.target is not None
    assert abs(np.mean(block.target == 1) - 0.5) < 0.05
    assert (SAMPLES / "text.svm").stat().st_size < 300_000


def test_income_reads_by_its_schema() -> None:
    """Declared facts hold: rows, labels, levels and the bound on the norm."""
    schema = Schema.from_file(str(SAMPLES / "income.toml"))
    options = ReadOptions(label=schema.label, columns=schema.columns, textual_labels=True)
    (block,) = Reader([str(SAMPLES / "income.csv")], options)
    assert block.n_rows == schema.rows
    assert schema.labels is not None
    assert block.target is not None
    assert set(block.target) == set(schema.labels)
    assert schema.row_norm is not None
    assert np.add.reduceat(block.values**2, block.indptr[:-1]).max() <= schema.row_norm**2


def test_sensors_are_a_regression_in_the_unit_interval() -> None:
    """A wide numeric table with its target in [0, 1]."""
    blocks = list(Reader([str(SAMPLES / "sensors.parquet")], ReadOptions(label="yield")))
    target = np.concatenate([block.target for block in blocks])
    assert len(target) == 1000
    assert 0 <= target.min() < target.max() <= 1


def test_ratings_are_of_the_declared_films() -> None:
    """Halves from 1 to 5; every film is rated, and no pair is both given and held out."""
    films = IdTable(read_ids(str(SAMPLES / "films.txt")), fixed=True)
    options = RatingOptions(user="user", item="film", value="stars")
    given = collect_ratings(RatingReader([str(SAMPLES / "ratings.csv")], options, items=films))
    held = read_pairs(
        RatingReader([str(SAMPLES / "ratings.test.csv")], options, items=films, users=given.users)
    )
    assert (given.ratings.n_users, len(films)) == (400, 60)
    assert len(given.users) == 400  # the held-out ones are of the same users
    values = np.concatenate([given.ratings.values, held.value])
    assert np.unique(values).tolist() == [half / 2 for half in range(2, 11)]
    assert np.bincount(given.ratings.items).min() > 0
    pairs = given.ratings.rows * len(films) + given.ratings.items
    assert not np.isin(held.user * len(films) + held.item, pairs).any()
