"""Units whose rows lie in several files, on several workers: the same bits as in one process."""

from __future__ import annotations

import os
import pickle
import random
import signal
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

from cluster_processes import Cluster
from dpfit.data.reader import Reader, ReadOptions
from dpfit.data.schema import ColumnRole
from dpfit.design.storage import Storage
from dpfit.errors import StorageError
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.plan import finest_grid
from dpfit.fitting.request import FitRequest
from dpfit.privacy.calibration import Budget
from dpfit.privacy.cluster_records import ClusterCollected
from dpfit.privacy.declared_facts import Layout
from dpfit.privacy.workers import Workers

PEOPLE = 40
REQUEST = FitRequest(
    sparsity=None,
    budget=Budget.from_request(2.0, 1e-3, None, None),
    dataset="parts",
    algorithm="dp-gd",
    seed=1,
    iterations=3,
    unit="who",
    max_rows_per_unit=4,
)
TABLE = ReadOptions(format="csv", unit="who", columns={"kind": ColumnRole("ignore")})
CONFIGURATIONS = [
    (REQUEST, replace(TABLE, label="many")),
    (
        replace(REQUEST, algorithm="dp-ight", sparsity=2, loss="squared", max_rows_per_unit=9),
        replace(TABLE, label="y", weight="b"),
    ),
    (
        replace(REQUEST, loss="multinomial", unit_clip=4.0),
        replace(TABLE, label="kind", columns={}),
    ),
    (
        replace(REQUEST, loss="poisson", exposed=True),
        replace(TABLE, label="y", offset="b"),
    ),
]
RUN = ("--eps", "4", "--delta", "0.001", "--seed", "1", "--dataset", "d", "-q", "--force")
SCHEMA = '[columns]\nkind = { role = "ignore" }\n'
RUN = (*RUN, "--max-rows-per-unit", "4", "--unit")


@pytest.fixture
def parts(dpfit: Any) -> list[str]:
    """Three files, of 40, 90 and 140 rows; everybody has rows in each of them."""
    chance = random.Random(3)
    for number in range(3):
        table, lines = ["who,a,b,y,many,kind"], []
        for i in range(PEOPLE + 50 * number):
            who = i if i < PEOPLE else chance.randrange(PEOPLE)
            a, b, y = chance.random(), chance.random(), chance.randrange(4)
            table.append(f"p{who},{a:.2f},{b:.2f},{y},{int(a > b)},{'xyz'[y % 3]}")
            lines.append(f"{int(a > b)} qid:{who} 1:{a:.2f} 2:{b:.2f}")
        (dpfit.folder / f"{number}.csv").write_text("\n".join(table) + "\n")
        (dpfit.folder / f"{number}.svm").write_text("\n".join(lines) + "\n")
    return [str(dpfit.folder / f"{number}.csv") for number in range(3)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path)
    yield started
    started.close()


def test_any_number_of_workers_gives_the_same_bits(parts: list[str], cluster: Cluster) -> None:
    """1, 2, 3 and 5 workers, more than there are files, in one round and in many, in memory and on
    disk, fit the model of one process."""

    class InPieces(Storage):
        chunk_entries = 30  # type: ignore[assignment]

    def outcome(fit: LinearFit) -> bytes:
        return pickle.dumps(fit.run(lambda _: None, lambda _: None))

    def on_workers(workers: Workers, asked: int, storage: Storage) -> bytes:
        request, options = CONFIGURATIONS[asked]
        found = Reader(parts, options).feature_map
        options, grid = replace(options, feature_map=found), finest_grid(request)
        read = ClusterCollected.read(workers, parts, options, grid, "parts", storage=storage)
        assert read.summary().n_owners == PEOPLE
        return outcome(LinearFit(request, read, layout=Layout, source="parts"))

    wanted = [
        outcome(LinearFit.of(request, Reader(parts, options), layout=Layout, source="parts"))
        for request, options in CONFIGURATIONS
    ]
    storages = [Storage(), InPieces(), InPieces(folder=str(Path.cwd())), InPieces()]
    with Client(cluster.address) as client:
        for n_workers in range(1, 6):
            cluster.worker()
            if n_workers == 4:
                continue
            workers = Workers(client)
            assert len(workers) == n_workers
            for asked, storage in enumerate(storages):
                found = on_workers(workers, asked, storage)
                assert found == wanted[asked], (n_workers, asked)


@pytest.mark.parametrize("kind", ["csv", "svm"])
def test_from_the_shell(dpfit: Any, parts: list[str], cluster: Cluster, kind: str) -> None:
    """Tables and LIBSVM files; the number of units is counted over all workers."""
    names = [f"{number}.{kind}" for number in range(len(parts))]
    unit = ("qid", "--index-base", "1") if kind == "svm" else ("who", "--label", "many")
    run = ("fit", *names, *RUN, *unit)
    if kind == "csv":
        (dpfit.folder / "s.toml").write_text(SCHEMA)
        run = (*run, "--schema", "s.toml")
    assert dpfit.here(*run, "-o", "wanted.json").status == 0
    cluster.worker()
    cluster.worker()
    where = ("--cluster", cluster.address, "--insecure-cluster", "-o", "found.json")
    ended = dpfit(*run, *where)
    assert ended.status == 0, ended.err
    assert dpfit.read("found.json") == dpfit.read("wanted.json")
    ended = dpfit(*run, *where, "--n-units", str(PEOPLE + 1))
    assert "does not hold the declared number of units" in ended.err


def test_a_worker_is_lost_while_rows_travel(dpfit: Any, cluster: Cluster) -> None:
    """One line, no charge and no model; the other worker has a file that goes on for ever."""
    workers = [cluster.worker(), cluster.worker()]
    for name in ("1.svm", "2.svm"):
        os.mkfifo(dpfit.folder / name)
    where = ("--cluster", cluster.address, "--insecure-cluster")
    process = dpfit.start("fit", "1.svm", "2.svm", *RUN, "qid", *where)
    pipes = [dpfit.open_pipe(name, process) for name in ("1.svm", "2.svm")]
    os.kill(workers[1].pid, signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    for pipe in pipes:
        os.close(pipe)
    assert process.returncode == 5, err
    told = [line for line in err.decode().splitlines() if "error" in line]
    assert told == ["dpfit: error: the cluster lost a worker, and its rows with it"], err
    assert not list(dpfit.folder.glob("*.json"))


def test_a_fault_in_the_data_is_told_as_in_one_process(
    dpfit: Any, parts: list[str], cluster: Cluster
) -> None:
    """Its file and line, whichever worker read it; nothing is charged."""
    with open(parts[2], "a", encoding="utf-8") as stream:
        stream.write(",0.5,0.5,1,1,x\n")
    (dpfit.folder / "s.toml").write_text(SCHEMA)
    cluster.worker()
    cluster.worker()
    where = ("--cluster", cluster.address, "--insecure-cluster")
    ended = dpfit("fit", *parts, *RUN, "who", "--label", "y", "--schema", "s.toml", *where)
    assert ended.status == 3
    assert f"{parts[2]}:142: column 'who' (field 1) is empty" in ended.err
    assert not list(dpfit.folder.glob("*.ledger.json"))


def test_a_worker_that_is_started_again_has_no_rows(parts: list[str], cluster: Cluster) -> None:
    """Dask runs its tasks there again, at the same address: the run ends instead of going on with
    the rows of the others."""
    cluster.worker()
    request, options = CONFIGURATIONS[0]
    with Client(cluster.address) as client, socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{found.getsockname()[1]}"
        found.close()
        lost = cluster.worker(address)
        workers = Workers(client)
        options = replace(options, feature_map=Reader(parts, options).feature_map)
        read = ClusterCollected.read(
            workers, parts, options, finest_grid(request), "parts", storage=Storage()
        )
        fit = LinearFit(request, read, layout=Layout, source="parts")
        lost.kill()
        lost.wait()
        cluster.worker(address)
        with pytest.raises(StorageError, match="started again"):
            fit.run(lambda _: None, lambda _: None)
