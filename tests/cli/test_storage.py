"""Rows on disk and memory within bounds: the same model, and nothing left behind."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from measured import measured

FITTED = ("--algo", "dp-gd", "--eps", "4", "--delta", "0.001", "--seed", "1")
FITTED += ("--iterations", "3", "--labels=-1,1", "-q")
FACTS = ("--n-features", "2000", "--index-base", "1")
RUN = ("fit", "wide.svm", *FITTED, *FACTS)

BOUND = 340  # MiB; the files are longer, and their rows take more if memory holds them
LENGTH = 360 << 20
WIDTH = 1500


@pytest.fixture
def wide(dpfit: Any) -> str:
    """A file of 3 million entries: 36 MB as integers."""
    rng = np.random.default_rng(0)
    line = "{} " + " ".join(f"{j}:{rng.integers(1, 9)}" for j in range(1, 1501)) + "\n"
    (dpfit.folder / "wide.svm").write_text("".join(line.format(y) for y in (-1, 1)) * 1000)
    return "wide.svm"


def rows(count: int = 250) -> list[list[float]]:
    """Rows without zeros."""
    return np.random.default_rng(0).uniform(0.1, 1.0, (count, WIDTH)).tolist()


def long_svm(path: Path) -> None:
    lines = (
        f"{(-1) ** i} " + " ".join(f"{j}:{value:.9f}" for j, value in enumerate(row, 1)) + "\n"
        for i, row in enumerate(rows())
    )
    repeat("", "".join(lines), path)


def long_csv(path: Path) -> None:
    head = ",".join(["label", *(f"x{j}" for j in range(WIDTH))]) + "\n"
    lines = (
        f"{(-1) ** i}," + ",".join(f"{value:.12f}" for value in row) + "\n"
        for i, row in enumerate(rows())
    )
    repeat(head, "".join(lines), path)


def repeat(head: str, text: str, path: Path) -> None:
    """Write a text as often as makes the file long."""
    with path.open("w") as stream:
        stream.write(head)
        while stream.tell() < LENGTH:
            stream.write(text)


def long_parquet(path: Path) -> None:
    """One group of rows, as some writers leave it."""
    columns = [list(range(WIDTH))] * 250
    labels, values = [-1, 1] * 125, rows()
    part = pa.table({"label": labels, "indices": columns, "values": values})
    parts = pa.concat_tables([part] * (LENGTH // part.nbytes + 1))
    whole = {"row_group_size": len(parts), "use_dictionary": ["indices"], "compression": "none"}
    pq.write_table(parts, path, **whole)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("write", [long_svm, long_csv, long_parquet])
def test_files_larger_than_memory_give_the_same_model(
    tmp_path: Path, write: Callable[[Path], None]
) -> None:
    """To the bit, and within a bound that the file and the rows held in memory exceed."""
    name = "long." + write.__name__.removeprefix("long_")
    write(tmp_path / name)
    assert (tmp_path / name).stat().st_size > BOUND << 20
    (tmp_path / "scratch").mkdir()
    command = ["fit", name, *FITTED, "-o", "m.json", "--force"]
    command += FACTS if name == "long.svm" else ("--label", "label")
    models, peaks = [], []
    for storage in ((), ("--cache", "scratch", "--memory", f"{BOUND}MiB")):
        run = measured(*command, *storage, folder=tmp_path)
        assert run.status == 0, run.told
        models.append((tmp_path / "m.json").read_bytes())
        peaks.append(run.peak)
    assert models[0] == models[1]
    assert peaks[1] <= BOUND < peaks[0]
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_ratings_on_disk_give_the_same_factors(tmp_path: Path) -> None:
    """To the bit, in whatever order they come, within a bound that held ratings exceed."""
    rng = np.random.default_rng(0)
    users, passes = 20_000, 150
    with (tmp_path / "r.csv").open("wb") as stream:
        schema = pa.schema([("u", pa.int64()), ("i", pa.int64()), ("v", pa.int64())])
        with pacsv.CSVWriter(stream, schema) as writer:
            for k in range(passes):
                user = rng.permutation(users)
                columns = user, (31 * user + k) % 1000, rng.integers(1, 6, users)
                writer.write_table(pa.table(list(columns), schema=schema))
    (tmp_path / "scratch").mkdir()
    command = ["complete-matrix", "r.csv", "--user", "u", "--item", "i", "--value", "v", "-q"]
    command += ["--range", "1", "5", "--eps", "5", "--delta", "1e-6", "--seed", "1", "--force"]
    command += ["--rank", "1", "--sweeps", "1", "--passes", "1", "-o", "m.parquet"]
    models, peaks = [], []
    for storage in ((), ("--cache", "scratch", "--memory", f"{BOUND}MiB")):
        run = measured(*command, *storage, folder=tmp_path)
        assert run.status == 0, run.told
        models.append((tmp_path / "m.parquet").read_bytes())
        peaks.append(run.peak)
    assert models[0] == models[1]
    assert peaks[1] <= BOUND < peaks[0]
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.parametrize(
    ("options", "status", "told"),
    [
        (("--memory", "321MiB"), 2, "needs more than it allows\nhint: allow more, or let --cache"),
        (
            ("--memory", "320MiB", "--cache", "."),
            2,
            "hint: allow more\n",
        ),
        (("--memory", "319MiB"), 2, "--memory must be at least 320MiB\n"),
        (("--memory", "1MiB", "--cache", "."), 2, "--memory must be at least 320MiB\n"),
        (("--memory", "some"), 2, "is not a size"),
        (("--memory", "9" * 400), 2, "is not a size"),
        (("--memory", "9" * 300 + "TiB"), 2, "is not a size"),
        (("--cache", "nowhere"), 5, "nowhere: cannot hold the rows: no such file"),
        (("--cache", "wide.svm"), 5, "wide.svm: cannot hold the rows: not a directory"),
    ],
)
@pytest.mark.usefixtures("wide")
def test_what_does_not_fit_is_refused_before_the_charge(
    dpfit: Any, options: tuple[str, ...], status: int, told: str
) -> None:
    outcome = dpfit.here(*RUN, *options)
    assert outcome.status == status
    assert told in outcome.err
    assert not Path("wide.ledger.json").exists()


@pytest.mark.parametrize("algorithm", ["dp-screen", "two-stage", "dp-ight"])
@pytest.mark.parametrize("storage", [(), ("--cache", ".")])
@pytest.mark.parametrize("width", [100_000_000, 2_000_000_000])
def test_columns_that_do_not_fit_are_refused_before_the_charge(
    dpfit: Any, algorithm: str, storage: tuple[str, ...], width: int
) -> None:
    """Whatever an algorithm holds of all columns counts; rows on disk would not help."""
    Path("far.svm").write_text(f"1 1:1\n-1 {width}:1\n")
    command = ("fit", "far.svm", "--algo", algorithm, "--sparsity", "1", "--eps", "1")
    outcome = dpfit.here(*command, "--delta", "1e-6", "--memory", "1GiB", "-q", *storage)
    assert outcome.status == 2
    assert "--memory: the fit needs more than it allows" in outcome.err
    assert "hint: allow more, or declare fewer columns\n" in outcome.err
    assert not Path("far.ledger.json").exists()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize(
    ("options", "classes", "width"),
    [
        (("--algo", "dp-screen"), 2, 8_000_000),
        (("--algo", "dp-screen", "--loss", "multinomial", "--iterations", "3"), 100, 2_000_000),
        (("--algo", "two-stage", "--sparsity", "1"), 2, 8_000_000),
    ],
)
def test_a_screen_takes_no_more_than_is_counted(
    tmp_path: Path, options: tuple[str, ...], classes: int, width: int
) -> None:
    """40 bytes a column, and 2 for each of more than two classes."""
    peaks = []
    rows = "".join(f"{y} 1:1\n" for y in range(classes))
    for last in (10, width):
        (tmp_path / "far.svm").write_text(f"{rows}0 {last}:1\n")
        command = ("fit", "far.svm", *options, "--eps", "1", "--delta", "1e-6")
        run = measured(*command, "-q", "--force", folder=tmp_path)
        assert run.status == 0, run.told
        peaks.append(run.peak)
    counted = (40 + (2 * classes if classes > 2 else 0)) * width >> 20
    assert peaks[1] - peaks[0] <= counted


def test_ratings_that_do_not_fit_are_not_told_to_have_fewer_columns(dpfit: Any) -> None:
    """What is too long there are users, items and factors."""
    Path("r.csv").write_text("u,i,v\n1,1,1\n")
    command = ["complete-matrix", "r.csv", "--user", "u", "--item", "i", "--value", "v", "-q"]
    command += ["--range", "1", "5", "--eps", "5", "--delta", "1e-6", "--n-users", "10000000"]
    outcome = dpfit.here(*command, "--memory", "400MiB", "--cache", ".")
    assert outcome.status == 2, outcome.err
    assert outcome.err.endswith("needs more than it allows\nhint: allow more\n")
    assert not Path("r.ledger.json").exists()


@pytest.mark.usefixtures("wide")
def test_a_folder_that_cannot_be_written_costs_nothing(dpfit: Any, as_user: list[str]) -> None:
    """5, one line, no charge."""
    (dpfit.folder / "closed").mkdir(mode=0o500)
    outcome = dpfit(*RUN, "--cache", "closed", prefix=as_user)
    assert outcome.status == 5, outcome.err
    assert "closed: cannot hold the rows: permission denied" in outcome.err
    assert not Path("wide.ledger.json").exists()


@pytest.mark.usefixtures("wide")
def test_a_full_disk_costs_nothing(dpfit: Any) -> None:
    """No room for the rows: 5, one line, no charge, no file."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    before = dpfit.names()
    outcome = dpfit(*RUN, "--cache", ".", preexec_fn=limit)
    assert outcome.status == 5, outcome.err
    assert "cannot hold the rows" in outcome.err
    assert dpfit.names() == before


@pytest.mark.usefixtures("wide")
def test_nothing_is_left_of_a_killed_run(dpfit: Any) -> None:
    """The file of the rows has no name, so none stays when the process is killed."""
    (dpfit.folder / "scratch").mkdir()
    long = ("--iterations", "100000", "--cache", "scratch")
    process = dpfit.start(*RUN, *long)
    dpfit.until(Path("wide.ledger.json").exists, process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not list((dpfit.folder / "scratch").iterdir())
