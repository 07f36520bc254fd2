"""Rows on the workers of a cluster: the same bits, and one line when a worker is lost."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pickle
import signal
import socket
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from distributed import Client

from cluster_processes import Cluster
from dpfit.algorithms.outcome import Outcome
from dpfit.cli.cluster import connected
from dpfit.data.reader import Reader, ReadOptions
from dpfit.design.storage import IN_MEMORY
from dpfit.errors import StorageError, UsageError
from dpfit.fitting.algorithm_traits import ALGORITHMS
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.plan import finest_grid
from dpfit.fitting.request import FitRequest
from dpfit.privacy.calibration import Budget
from dpfit.privacy.cluster_records import ClusterCollected, ClusterRecords
from dpfit.privacy.collected_records import CollectedRecords, RecordMap
from dpfit.privacy.declared_facts import Layout
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.workers import Workers

FILES = 4
BUDGET = ("--eps", "2", "--delta", "1e-5", "--seed", "1", "--force", "--index-base", "1")


@pytest.fixture
def parts(dpfit: Any) -> list[str]:
    """Files with different numbers of rows and columns, one of them with rows of no entry."""
    rng = np.random.default_rng(5)
    names = []
    for number in range(FILES):
        lines = []
        for _ in range(20 + 10 * number):
            columns = np.flatnonzero(rng.random(30 + number) < 0.2)
            text = " ".join(f"{j + 1}:{rng.standard_normal():.3f}" for j in columns)
            lines.append(f"{rng.integers(0, 4)} {text}".rstrip() + "\n")
        names.append(f"part-{number}.svm")
        (dpfit.folder / names[-1]).write_text("".join(lines))
    return names


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path)
    yield started
    started.close()


BUDGET_OF_TWO = Budget.from_request(2.0, 1e-5, None, None)
REQUEST = FitRequest(
    sparsity=None, budget=BUDGET_OF_TWO, dataset="parts", algorithm="dp-gd", seed=1, iterations=3
)
CONFIGURATIONS = [
    replace(REQUEST, algorithm="dp-ight", sparsity=5, loss="squared"),
    replace(REQUEST, loss="multinomial"),
    replace(REQUEST, loss="poisson"),
    replace(REQUEST, algorithm="dp-iht", sparsity=4, loss="huber"),
    replace(REQUEST, algorithm="dp-screen", sparsity=4, loss="multinomial"),
    replace(REQUEST, algorithm="dp-fw", loss="squared"),
    replace(REQUEST, algorithm="median-cd", loss="absolute"),
    replace(REQUEST, algorithm="median-cd", loss="absolute", batches="disjoint"),
]


def test_any_number_of_workers_gives_the_same_bits(
    dpfit: Any, parts: list[str], cluster: Cluster
) -> None:
    """1, 2, 3 and 5 workers, more than there are files, fit the model of one process."""

    def ignore(_: object) -> None: ...

    def same(one: Outcome, other: Outcome) -> bool:
        return pickle.dumps(one) == pickle.dumps(other)

    options = ReadOptions(format="libsvm")
    paths = [str(dpfit.folder / name) for name in parts]
    wanted = [
        LinearFit.of(request, Reader(paths, options), layout=Layout, source="parts")
        for request in CONFIGURATIONS
    ]
    outcomes = [fit.run(ignore, ignore) for fit in wanted]
    with Client(cluster.address) as client:
        for n_workers in range(1, 6):
            cluster.worker()
            if n_workers == 4:
                continue
            workers = Workers(client)
            assert len(workers) == n_workers
            for request, outcome in zip(CONFIGURATIONS, outcomes, strict=True):
                collected = ClusterCollected.read(
                    workers, paths, options, finest_grid(request), "parts", storage=IN_MEMORY
                )
                fit = LinearFit(request, collected, layout=Layout, source="parts")
                assert same(fit.run(ignore, ignore), outcome), (n_workers, request)


@pytest.mark.parametrize("event", ["a worker joins", "a worker dies", "the scheduler dies"])
def test_workers_come_and_go(dpfit: Any, parts: list[str], cluster: Cluster, event: str) -> None:
    """A worker that joins late changes nothing; one that is lost ends the run with one line, the
    charge stays, and no model is written."""
    workers = [cluster.worker(), cluster.worker()]
    run = ("--algo", "dp-gd", "--loss", "squared", *BUDGET, "--iterations")
    if event == "a worker joins":
        run = (*run, "150")
        assert dpfit.here("fit", *parts, *run, "-o", "wanted.json").status == 0
    else:  # it must not end before the one that it loses
        run = (*run, "1000000")
    where = ("--cluster", cluster.address, "--insecure-cluster")
    process = dpfit.start("fit", *parts, *run, *where, "-o", "c.json", "--ledger", "c.ledger.json")
    ledger = dpfit.folder / "c.ledger.json"
    dpfit.until(ledger.exists, process)
    if event == "a worker joins":
        cluster.worker()
    else:
        lost = workers[1] if event == "a worker dies" else cluster.scheduler
        os.kill(lost.pid, signal.SIGKILL)
    _, err = process.communicate(timeout=300)
    kinds = [entry["kind"] for entry in json.loads(ledger.read_text())["entries"]]
    if event == "a worker joins":
        assert process.returncode == 0, err
        assert (dpfit.folder / "c.json").read_bytes() == (dpfit.folder / "wanted.json").read_bytes()
        assert kinds == ["reserved", "released"]
        return
    assert process.returncode == 5, err
    told = [line for line in err.decode().splitlines() if "error" in line]
    assert told == ["dpfit: error: the cluster lost a worker, and its rows with it"], err
    assert kinds == ["reserved", "aborted"]
    assert not (dpfit.folder / "c.json").exists()


def test_columns_are_matched_by_name_on_every_worker(dpfit: Any, cluster: Cluster) -> None:
    """Those of the first file hold for all: in another order they are found, others are refused."""
    rows = [(i % 2, i % 2 + i % 3, i % 5) for i in range(60)]
    (dpfit.folder / "1.csv").write_text("y,a,b\n" + "".join(f"{y},{a},{b}\n" for y, a, b in rows))
    (dpfit.folder / "2.csv").write_text("b,y,a\n" + "".join(f"{b},{y},{a}\n" for y, a, b in rows))
    (dpfit.folder / "3.csv").write_text("y,a,c\n" + "".join(f"{y},{a},{b}\n" for y, a, b in rows))
    cluster.worker()
    cluster.worker()
    run = ("--label", "y", "--algo", "dp-gd", *BUDGET[:-2])
    where = ("--cluster", cluster.address, "--insecure-cluster")
    assert dpfit.here("fit", "1.csv", "2.csv", *run, "-o", "wanted.json").status == 0
    ended = dpfit("fit", "1.csv", "2.csv", *run, *where, "-o", "c.json")
    assert ended.status == 0, ended.err
    assert (dpfit.folder / "c.json").read_bytes() == (dpfit.folder / "wanted.json").read_bytes()
    ended = dpfit("fit", "1.csv", "3.csv", *run, *where)
    assert (ended.status, "3.csv" in ended.err) == (3, True), ended.err


def test_labels_are_of_one_kind_on_every_worker(dpfit: Any, cluster: Cluster) -> None:
    """Texts where the first records have texts; where they have numbers the first text is told,
    with its file and line."""
    (dpfit.folder / "no.csv").write_text("y,a\n")
    (dpfit.folder / "0.csv").write_text("y,a\n" + "0,1\n1,2\n" * 30)
    (dpfit.folder / "a.csv").write_text("y,a\n" + "a,1\nb,2\n" * 30)
    cluster.worker()
    cluster.worker()
    where = ("--cluster", cluster.address, "--insecure-cluster")
    run = ("--label", "y", "--algo", "dp-gd", *BUDGET[:-2])
    texts = ("fit", "no.csv", "a.csv", "0.csv", *run)
    assert dpfit.here(*texts, "-o", "wanted.json").status == 0
    ended = dpfit(*texts, *where, "-o", "c.json")
    assert ended.status == 0, ended.err
    assert (dpfit.folder / "c.json").read_bytes() == (dpfit.folder / "wanted.json").read_bytes()
    ended = dpfit("fit", "0.csv", "a.csv", *run, *where)
    assert ended.status == 3
    assert "a.csv:2: the label is not a number" in ended.err


def test_a_fault_in_the_data_is_told_as_in_one_process(
    dpfit: Any, parts: list[str], cluster: Cluster
) -> None:
    """The worker's error comes back with its file and line; nothing is charged."""
    (dpfit.folder / parts[3]).write_text("1 1:1\n1 1:x\n")
    cluster.worker()
    where = ("--cluster", cluster.address, "--insecure-cluster")
    ended = dpfit("fit", *parts, *BUDGET, "--algo", "dp-gd", *where)
    assert ended.status == 3
    assert f"{parts[3]}:2: " in ended.err
    assert not list(dpfit.folder.glob("*.ledger.json"))


def test_records_cannot_be_sent(dpfit: Any, parts: list[str]) -> None:
    """Neither as read nor as private records: Dask may try when a worker retires."""
    reader = Reader([str(dpfit.folder / parts[0])], ReadOptions(format="libsvm"))
    grid = finest_grid(REQUEST)
    collected = CollectedRecords(grid, "parts", threads=1, storage=IN_MEMORY)
    collected.collect(reader)
    record_map = RecordMap(grid, 50, 1, None, (0.0, 3.0), None, None)
    for private in (collected, collected.records(record_map)):
        with pytest.raises(TypeError, match="pickled"):
            pickle.dumps(private)


def test_a_worker_that_fails_logs_no_record(cluster: Cluster) -> None:
    """A fault that is no error of ours comes back by its name; the worker writes no argument of
    the task, which Dask would log."""

    def failing(records: list[float]) -> None:
        raise ArithmeticError(f"{records}")

    worker = cluster.worker()
    with Client(cluster.address) as client:
        workers = Workers(client)
        with pytest.raises(StorageError, match=r"failed \(ArithmeticError\)$"):
            workers.results(workers.each(failing, [[271828182845.0]]))
    worker.kill()  # a failure is logged before it is told
    assert worker.stderr is not None
    logged = worker.stderr.read()
    assert b"271828182845" not in logged


def test_workers_without_a_file_are_told(dpfit: Any) -> None:
    """A file is read by one worker, so that the others idle."""
    dpfit.svm()
    args = ("fit", "tiny.svm", *dpfit.budget, *dpfit.facts, "-o", "c.json")
    ended = dpfit(*args, "--cluster", "local:2")
    assert ended.status == 0, ended.err
    told = "2 workers share 1 file: the others have nothing to do, unless the input is split"
    assert ended.err == f"dpfit: {told}\n"


def test_workers_of_its_own_talk_encrypted(dpfit: Any, parts: list[str]) -> None:
    """local:N starts workers with certificates made for the run, and ends them with it; also where
    another run's scheduler has the port of Dask's pages."""
    run = ("--algo", "dp-gd", "--loss", "squared", *BUDGET)
    assert dpfit.here("fit", *parts, *run, "-o", "wanted.json").status == 0
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):  # another has it: as well
            taken.bind(("127.0.0.1", 8787))
            taken.listen()
        ended = dpfit("fit", *parts, *run, "--cluster", "local:2", "-o", "c.json")
    assert ended.status == 0, ended.err
    assert "nothing to do" not in ended.err
    assert (dpfit.folder / "c.json").read_bytes() == (dpfit.folder / "wanted.json").read_bytes()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--cluster", "tcp://127.0.0.1:1"), "in the open"),
        (("--cluster", "local:0"), "number of workers"),
        (("--cluster", "local:" + "9" * 5000), "number of workers"),
        (("--cluster", "example"), "tls://HOST:PORT"),
        (("--cluster", "tls://127.0.0.1"), "tls://HOST:PORT"),
        (("--cluster", "tls://127.0.0.1:99999"), "tls://HOST:PORT"),
        (("--cluster", "tls://127.0.0.1:0"), "tls://HOST:PORT"),
        (("--cluster", "tcp://127.0.0.1:abc", "--insecure-cluster"), "tls://HOST:PORT"),
        (("--insecure-cluster",), "belongs to --cluster"),
    ],
)
def test_refused(dpfit: Any, parts: list[str], options: tuple[str, ...], told: str) -> None:
    """What cannot be, or would send private sums in the open, ends before anything is charged."""
    ended = dpfit("fit", *parts, *BUDGET, *options)
    assert ended.status == 2, ended.err
    assert told in ended.err
    assert not list(dpfit.folder.glob("*.ledger.json"))


@pytest.mark.parametrize("algorithm", ["median-objective", "median-irls", "two-stage"])
def test_what_needs_all_rows_is_refused_before_they_are_read(
    dpfit: Any, parts: list[str], algorithm: str
) -> None:
    """No worker is started: the cluster named here does not exist."""
    where = ("--cluster", "tls://127.0.0.1:1")
    loss = ("--sparsity", "3") if algorithm == "two-stage" else ("--loss", "absolute")
    ended = dpfit.here("fit", *parts, *BUDGET, "--algo", algorithm, *loss, *where)
    assert (ended.status, "one process" in ended.err) == (2, True), ended.err


@pytest.mark.parametrize("quantity", [Quantity.MINIMISER, Quantity.VOTES])
def test_the_records_themselves_refuse_what_needs_all_rows(quantity: Quantity) -> None:
    """Whatever asks them, before the charge."""
    records = ClusterRecords(None, [], 100, 5, False)  # type: ignore[arg-type]
    release = SimpleNamespace(quantity=quantity)
    with pytest.raises(UsageError, match="one process"):
        records.check([release], 1, finest_grid(REQUEST), "parts")  # type: ignore[list-item]


def test_only_algorithms_of_sums_go_to_a_cluster() -> None:
    """The trait says of each what it plans."""
    named = {name for name, traits in ALGORITHMS.items() if traits.in_one_place}
    assert named == {"median-objective", "median-irls", "two-stage"}


def test_a_cluster_that_is_not_there(dpfit: Any, parts: list[str]) -> None:
    """Is one line; of certificates only what has them is told."""
    where = ("--cluster", "tcp://127.0.0.1:1", "--insecure-cluster")
    ended = dpfit("fit", *parts, *BUDGET, "--algo", "dp-gd", *where)
    assert ended.status == 5, ended.err
    assert "tcp://127.0.0.1:1: the cluster cannot be reached\nhint: is a Dask" in ended.err
    assert "certificates" not in ended.err


@pytest.mark.parametrize("installed", ["another", "none"])
def test_workers_of_another_version_are_refused(
    dpfit: Any, parts: list[str], tmp_path_factory: pytest.TempPathFactory, installed: str
) -> None:
    """Their sums may be others, and so their sensitivity: nothing is read or charged."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "dpfit").mkdir()
    text = '__version__ = "0.0.1"\n' if installed == "another" else "raise ImportError\n"
    (folder / "dpfit" / "__init__.py").write_text(text)
    started = Cluster(folder)
    try:
        started.worker()
        where = ("--cluster", started.address, "--insecure-cluster")
        ended = dpfit("fit", *parts, *BUDGET, "--algo", "dp-gd", *where)
    finally:
        started.close()
    assert ended.status == 2, ended.err
    told = [line for line in ended.err.splitlines() if "error" in line]
    assert told == ["dpfit: error: a worker of the cluster has another version of dpfit, or none"]
    assert not list(dpfit.folder.glob("*.ledger.json"))


@pytest.mark.parametrize("cache", [(), ("--cache", ".")])
def test_a_part_without_rows(dpfit: Any, cluster: Cluster, cache: tuple[str, ...]) -> None:
    """No bytes, a header alone, comments alone: the model of one process; where no file holds
    a record, its one line."""
    table = "y,a,b\n" + "".join(f"{i % 2},{i % 2 + i % 3},{i % 5}\n" for i in range(60))
    rows = "".join(f"{i % 2} {1 + i % 3}:1\n" for i in range(60))
    contents = {
        "full.csv": table,
        "head.csv": "y,a,b\n",
        "void.csv": "",
        "full.svm": rows,
        "said.svm": "# nothing\n",
        "void.svm": "",
    }
    for name, content in contents.items():
        (dpfit.folder / name).write_text(content)
    cluster.worker()
    cluster.worker()
    where = ("--cluster", cluster.address, "--insecure-cluster", *cache)
    for names, options in (
        (("full.csv", "head.csv"), ("--label", "y")),
        (("full.csv", "void.csv"), ("--label", "y")),
        (("full.svm", "said.svm"), ("--index-base", "1")),
        (("void.svm", "full.svm"), ("--index-base", "1")),
    ):
        run = (*names, *BUDGET[:-2], "--algo", "dp-gd", *options)
        assert dpfit.here("fit", *run, "-o", "wanted").status == 0
        ended = dpfit("fit", *run, *where, "-o", "found")
        assert ended.status == 0, (names, ended.err)
        assert (dpfit.folder / "found").read_bytes() == (dpfit.folder / "wanted").read_bytes()
    ended = dpfit("fit", "said.svm", "void.svm", *BUDGET, "--algo", "dp-gd", *where)
    assert (ended.status, "holds no records" in ended.err) == (3, True), ended.err


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # Dask's own sockets
def test_a_wide_model_gives_no_warning() -> None:
    """Dask warns of what is sent at each step, about which nobody can do anything."""
    wide = np.zeros(2_000_000)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="Sending large graph")
            with connected("local:1") as workers:
                assert workers.results(workers.each(np.size, [wide])) == [wide.size]
    finally:
        logging.disable(logging.NOTSET)
