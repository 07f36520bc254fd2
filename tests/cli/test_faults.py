"""What machines do to a run: power cuts, wrong clocks, no descriptors, and long use.

Kills at every step of writing are in ``test_kills.py``, want of memory in ``test_memory.py``, full
disks and closed folders in ``test_ledger.py``.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

from dpfit.errors import DataError, DpfitError, PrivacyError
from dpfit.files.factor_model import FactorModel, parse_factor_model
from dpfit.files.linear_model import read_linear_model
from dpfit.privacy import ledger as ledger_module
from dpfit.privacy import ledger_document
from dpfit.privacy.accountant import NOTHING, compose
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.charged_releases import ChargedReleases
from dpfit.privacy.events import GaussianEvent
from dpfit.privacy.ledger import Ledger
from dpfit.privacy.ledger_checkpoint import events_of
from dpfit.privacy.ledger_document import LedgerDocument, parse_ledger, resume
from dpfit.privacy.random_bits import BitSource

DOCUMENTED = {0, 1, 2, 3, 4, 5, 6, 7}
LONG_SOAK = int(os.environ.get("DPFIT_SOAK", "1000"))

# --- power cuts ----------------------------------------------------------------------------------


def test_ledger_cut_at_any_length(dpfit: Any) -> None:
    """A ledger that lost its end, or has zeros there, is refused at every length."""
    dpfit.fit()
    dpfit.fit("--force")
    whole = dpfit.read("tiny.ledger.json")
    for length in range(len(whole) - 1):  # the last byte is a line feed, which means nothing
        with pytest.raises(PrivacyError):
            parse_ledger(whole[:length], "l")
    for length in range(0, len(whole) - 1, 7):
        with pytest.raises(PrivacyError):
            parse_ledger(whole[:length].ljust(len(whole), b"\0"), "l")


def test_model_cut_at_any_length(dpfit: Any) -> None:
    """A model that lost its end is refused with a documented error, never read as another."""
    whole = dpfit.read(dpfit.fit())
    for length in range(len(whole) - 1):
        Path("cut").write_bytes(whole[:length])
        with pytest.raises(DpfitError):
            read_linear_model("cut")


def test_factor_model_cut_at_any_length() -> None:
    """A model of items that lost its end, or has zeros there, is refused and ends no process."""
    whole = factor_model(items=3, rank=1).to_bytes()
    for length in range(len(whole)):
        for cut in (whole[:length], whole[:length].ljust(len(whole), b"\0")):
            with pytest.raises(DataError):
                parse_factor_model(cut, "cut")


def test_cut_models_are_one_line_of_predict(dpfit: Any) -> None:
    """Of either kind, at lengths all over the file: status 3, one line, no predictions."""
    whole = {dpfit.fit(): dpfit.read("tiny.model.json")}
    whole["m.factors.parquet"] = factor_model(items=3, rank=1).to_bytes()
    Path("r.csv").write_text("u,i,v\n1,a,2\n", encoding="utf-8")
    for name, content in whole.items():
        source = ("tiny.svm",) if name == "tiny.model.json" else ("r.csv", "--pairs", "r.csv")
        for length in (*range(4, len(content) - 1, len(content) // 9), len(content) - 8):
            Path(name).write_bytes(content[:length])
            outcome = dpfit.here("predict", name, *source)
            assert (outcome.status, outcome.out) == (3, ""), length
            assert outcome.err.startswith(f"dpfit: error: {name}: ")


def factor_model(*, items: int, rank: int) -> FactorModel:
    return FactorModel(
        provenance={"version": "x", "events": []},
        private=True,
        value_range=(1.0, 5.0),
        global_mean=3.0,
        constants={"ridge": 1.0},
        columns={"user": "u", "item": "i", "value": "v"},
        items=tuple("abcdefgh"[:items]),
        bias=np.arange(items) / 8,
        count=np.full(items, 9.0),
        factors=np.ones((items, rank)),
    )


# --- clocks and copies ---------------------------------------------------------------------------


def test_clock_that_goes_backwards(dpfit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of entries is that of their chain; a clock set back changes no charge."""
    years = iter(range(2099, 1980, -1))
    monkeypatch.setattr(ledger_module, "_now", lambda: f"{next(years)}-01-01T00:00:00Z")
    for _ in range(3):
        dpfit.fit("--force")
    assert dpfit.outcomes() == ["released"] * 3
    report = json.loads(dpfit.here("budget", "tiny.ledger.json", "--json").out)
    mu = [entry["mu"] ** 2 for entry in report["entries"]]
    assert report["total"]["mu"] ** 2 == pytest.approx(sum(mu), rel=1e-12)


@pytest.mark.parametrize("replaced", ["by an old copy", "by nothing"])
def test_ledger_replaced_during_a_run(
    dpfit: Any, replaced: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that finds its reservation gone writes the charge again and exits 4."""
    dpfit.fit()
    old = dpfit.read("tiny.ledger.json")
    close = Ledger.close

    def replacing(self: Ledger, *args: Any, **detail: Any) -> None:
        Path("tiny.ledger.json").unlink()
        if replaced == "by an old copy":
            Path("tiny.ledger.json").write_bytes(old)
        close(self, *args, **detail)

    monkeypatch.setattr(Ledger, "close", replacing)
    outcome = dpfit.here("fit", "tiny.svm", *dpfit.budget, *dpfit.facts, "--force")
    assert outcome.status == 4
    assert "was replaced while the run went on" in outcome.err
    earlier = ["released"] if replaced == "by an old copy" else []
    assert dpfit.outcomes() == [*earlier, "released"]


# --- few descriptors -----------------------------------------------------------------------------

LIMITED = r'''
"""argv: folder, limits, then arguments: a child for each limit on descriptors."""
import json, os, resource, shutil, sys

import dpfit.cli.fit, dpfit.cli.fit_inputs, dpfit.data.libsvm, scipy.sparse, uuid
from dpfit.cli import app

folder, values, arguments = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:]
app.run(["fit", "x.svm", "--print-config"])
for value in values:
    where = os.path.join(folder, str(value))
    shutil.copytree(os.path.join(folder, "start"), where)
    pid = os.fork()
    if pid == 0:
        os.chdir(where)
        sys.stderr = open("err", "w")
        limit = resource.RLIMIT_NOFILE
        resource.setrlimit(limit, (value, resource.getrlimit(limit)[1]))
        os._exit(app.run(arguments))
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with open(os.path.join(where, "status"), "w") as note:
        note.write(str(status))
'''


def test_few_descriptors(dpfit: Any) -> None:
    """Wherever descriptors run out: a documented status, a whole account, no half file."""
    values = [*range(3, 16), 64]
    (dpfit.folder / "start").mkdir()
    dpfit.svm("start/tiny.svm")
    args = ["fit", "tiny.svm", *dpfit.budget, *dpfit.facts, "--threads", "1"]
    subprocess.run(
        [sys.executable, "-c", LIMITED, str(dpfit.folder), json.dumps(values), *args],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=300,
    )
    statuses = Counter[int]()
    for value in values:
        folder = dpfit.folder / str(value)
        status = int((folder / "status").read_text())
        statuses[status] += 1
        names = {path.name for path in folder.iterdir()} - {"tiny.svm", "err", "status"}
        assert status in DOCUMENTED, (value, status)
        err = (folder / "err").read_text()
        assert "Traceback" not in err, (value, err)
        known = {"tiny.model.json", "tiny.ledger.json", "tiny.ledger.json.lock"}
        assert {name for name in names if not name.startswith(".")} <= known, value
        charged = "tiny.ledger.json" in names
        outcomes = dpfit.outcomes(f"{value}/tiny.ledger.json") if charged else []
        if "tiny.model.json" in names:
            read_linear_model(str(folder / "tiny.model.json"))
            assert len(outcomes) == 1, value
        if status == 0:
            assert outcomes == ["released"], value
        assert not any(name.startswith(".") for name in names), value
    assert statuses[0] >= 1
    assert len(statuses) >= 2, statuses


# --- forks and threads ---------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_during_a_run_draws_nothing(dpfit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that appears once the key exists cannot go on with the run; the parent can."""
    steps, statuses = [], []
    real = ChargedReleases._next_step

    def forking(self: ChargedReleases) -> int:
        step = real(self)
        steps.append(step)
        if step == 1:
            child = os.fork()
            if not child:
                try:
                    self._noise.integers(20, 3, step)
                except RuntimeError:
                    os._exit(9)
                os._exit(0)
            statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        return step

    monkeypatch.setattr(ChargedReleases, "_next_step", forking)
    dpfit.fit("--threads", "1")
    assert statuses == [9]
    assert steps == list(range(len(steps)))
    assert len(steps) > 2


@pytest.mark.parametrize("command", ["fit", "complete-matrix"])
@pytest.mark.usefixtures("inputs")
def test_helper_threads_draw_nothing(
    dpfit: Any, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random words are asked for by the main thread alone, however many threads compute."""
    drew = set()

    def watched(name: str) -> None:
        real = getattr(BitSource, name)

        def call(self: BitSource, *args: Any) -> Any:
            drew.add(threading.current_thread())
            return real(self, *args)

        monkeypatch.setattr(BitSource, name, call)

    for name in ("main", "continue_main", "aux", "deep"):
        watched(name)
    args = ("fit", "tiny.svm", *dpfit.budget, "--force") if command == "fit" else MATRIX
    assert dpfit.here(*args, "--threads", "3").status == 0
    assert drew == {threading.main_thread()}


# --- every command: no streams, no room, no permission --------------------------------------------

RATINGS = "".join(
    f"{user},{item},{(user * item) % 5 + 1}\n" for user in range(20) for item in range(4)
)
MATRIX = ("complete-matrix", "r.csv", "--user", "u", "--item", "i", "--value", "v")
MATRIX += ("--range", "1", "5", "--eps", "4", "--delta", "0.001", "--n-users", "20")
MATRIX += ("--items", "items", "--force", "-q")
COMMANDS = {
    "complete-matrix": (MATRIX, "r.factors.parquet"),
    "predict": (("predict", "tiny.model.json", "tiny.svm", "-o", "p.parquet"), "p.parquet"),
    "predict ratings": (
        ("predict", "m.factors.parquet", "r.csv", "--pairs", "r.csv", "-o", "p.csv"),
        "p.csv",
    ),
    "budget": (("budget", "c.json", "--cap-eps", "9", "--cap-delta", "0.001"), "c.json"),
    "audit": (
        ("audit", "--eps=4", "--delta=0.001", "--trials=20", "--algo=dp-gd", "-q", "--seed=1"),
        "",
    ),
}


@pytest.fixture
def inputs(dpfit: Any) -> None:
    """What each command reads."""
    dpfit.fit()
    Path("r.csv").write_text("u,i,v\n" + RATINGS, encoding="utf-8")
    Path("items").write_text("0\n1\n2\n3\n", encoding="utf-8")
    assert dpfit.here(*MATRIX, "-o", "m.factors.parquet").status == 0


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("inputs")
def test_closed_streams_of_every_command(dpfit: Any, command: str) -> None:
    """Without standard streams a run works, and its files hold what they should."""
    args, name = COMMANDS[command]
    args = (*args, "--seed", "1") if command == "complete-matrix" else args
    outcome = dpfit(*args, prefix=["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"])
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")
    if name:
        closed = dpfit.read(name)
        Path(name).unlink()
        assert dpfit.here(*args).status == 0
        assert dpfit.read(name) == closed


@pytest.mark.parametrize("command", ["fit", "complete-matrix"])
@pytest.mark.usefixtures("inputs")
def test_a_model_for_a_closed_standard_output(dpfit: Any, command: str) -> None:
    """What nobody would have is refused before it is paid for."""
    args, _ = COMMANDS["complete-matrix"]
    if command == "fit":
        args = ("fit", dpfit.svm(), *dpfit.budget, *dpfit.facts)
    args = (*args, "-o", "-", "--ledger", "closed.json")
    outcome = dpfit(*args, prefix=["sh", "-c", 'exec "$@" >&-', "sh"])
    assert outcome.status == 2
    assert "standard output is closed" in outcome.err
    assert "closed.json" not in dpfit.names()


@pytest.mark.parametrize("where", [(), ("-o", "-")])
@pytest.mark.parametrize("command", ["predict", "predict ratings"])
@pytest.mark.usefixtures("inputs")
def test_predictions_for_a_closed_standard_output(
    dpfit: Any, command: str, where: tuple[str, ...]
) -> None:
    """They are not made for nobody."""
    args, _ = COMMANDS[command]
    args = (*args[: args.index("-o")], *where)
    outcome = dpfit(*args, prefix=["sh", "-c", 'exec "$@" >&-', "sh"])
    assert outcome.status == 2
    assert "standard output is closed\nhint: give -o FILE" in outcome.err


@pytest.mark.parametrize("command", [name for name, (_, wrote) in COMMANDS.items() if wrote])
@pytest.mark.usefixtures("inputs")
def test_no_room_for_any_file(dpfit: Any, command: str) -> None:
    """A limit within the file that a command writes: 5, one line, no half file, a whole account."""
    args, name = COMMANDS[command]
    assert dpfit.here(*args).status == 0
    size = len(dpfit.read(name)) * 9 // 10
    Path(name).unlink()
    before = dpfit.names()
    args = (*args, "--ledger", "small.json") if command == "complete-matrix" else args

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    outcome = dpfit(*args, preexec_fn=limit)
    assert outcome.status == 5, outcome.err
    assert f"{name}: cannot be written: file too large" in outcome.err
    assert dpfit.names() - before <= {"small.json"}
    if command == "complete-matrix":
        # The limit may cut the ledger's next state as well; the charge stands in either case.
        assert dpfit.outcomes("small.json") in (["aborted"], ["unreleased"])


@pytest.mark.parametrize("command", [name for name, (_, wrote) in COMMANDS.items() if wrote])
@pytest.mark.usefixtures("inputs")
def test_a_folder_that_takes_no_file(dpfit: Any, command: str, as_user: list[str]) -> None:
    """Nothing can be written into a read-only folder: 5, and nothing is charged or left."""
    args = COMMANDS[command][0]
    before = dpfit.names()
    dpfit.folder.chmod(0o555)
    try:
        outcome = dpfit(*args, prefix=as_user)
    finally:
        dpfit.folder.chmod(0o755)
    assert outcome.status == 5, outcome.err
    assert dpfit.names() == before


# --- many processes, many runs -------------------------------------------------------------------

BARRIER = """
import os, sys
from dpfit.privacy.adjacency import PerAdjacency
from dpfit.privacy.events import GaussianEvent
from dpfit.privacy.ledger import Ledger
from dpfit.errors import PrivacyError

both = PerAdjacency(replace_one=4, add_remove=1)
event = GaussianEvent(label="gradient", squared_sensitivity=both, scale=10)
ledger = Ledger("l.json", lock_timeout=300)
ledger.check([event])
print("ready", flush=True)
sys.stdin.read()
try:
    run = ledger.reserve([event], {"dataset": sys.argv[1]})
except PrivacyError:
    sys.exit(4)
ledger.close(run, "released")
"""


@pytest.mark.parametrize(
    ("together", "allowed"), [(8, 5), pytest.param(50, 31, marks=pytest.mark.slow)]
)
def test_processes_released_by_a_barrier(dpfit: Any, together: int, allowed: int) -> None:
    """So many processes reserve at one moment on a ledger that bears fewer: exactly these do."""
    both = PerAdjacency(replace_one=4, add_remove=1)
    event = GaussianEvent(label="gradient", squared_sensitivity=both, scale=10, count=allowed)
    cap = compose([event], Adjacency.REPLACE_ONE).epsilon(1e-6)
    dpfit.here("budget", "l.json", "--cap-eps", repr(cap), "--cap-delta", "1e-6")
    reader, writer = os.pipe()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", BARRIER, str(number)], stdin=reader, stdout=subprocess.PIPE
        )
        for number in range(together)
    ]
    os.close(reader)
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    os.close(writer)
    statuses = Counter(process.wait(timeout=300) for process in processes)
    for process in processes:
        assert process.stdout is not None
        process.stdout.close()
    assert statuses == {0: allowed, 4: together - allowed}
    assert dpfit.outcomes("l.json") == ["released"] * allowed


@pytest.mark.parametrize("runs", [200, pytest.param(LONG_SOAK, marks=pytest.mark.slow)])
def test_soak(dpfit: Any, runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many short runs on one capped ledger: the total is exact, and no run reads an old entry.

    With ``-s`` the median of CPU time, and of time by the clock, is printed for every tenth of the
    runs; DPFIT_SOAK is the number of runs of the slow one.
    """
    dpfit.svm()
    args = ("--eps", "0.01", "--delta", "1e-6", "--algo", "dp-gd", "--no-intercept", "--force")
    args = ("fit", "tiny.svm", *args, *dpfit.facts, "--iterations", "1", "--threads", "1")
    cap = ("--cap-eps", "100", "--cap-delta", "1e-6")
    assert dpfit.here("budget", "tiny.ledger.json", *cap).status == 0

    def never(*_: object) -> None:
        raise AssertionError

    seconds = list[tuple[float, float]]()
    with monkeypatch.context() as patched:
        patched.setattr(ledger_document, "_line", never)
        patched.setattr(LedgerDocument, "entries", never)
        for _ in range(runs):
            start = time.process_time(), time.perf_counter()
            assert dpfit.here(*args).status == 0
            seconds.append((time.process_time() - start[0], time.perf_counter() - start[1]))
    for name, times in zip(("CPU", "clock"), zip(*seconds, strict=True), strict=True):
        tenths = [median(times[i : i + runs // 10]) for i in range(0, runs, runs // 10)]
        print(f"{runs} runs, median ms by tenth, {name}:", *(f"{1000 * t:.1f}" for t in tenths))
    document = Ledger("tiny.ledger.json", lock_timeout=0).read()
    entries = list(document.entries())
    assert Counter(entry["kind"] for entry in entries) == {"reserved": runs, "released": runs}
    assert document.part == 1 + len(list(Path().glob("tiny.ledger.json.*-*")))
    one = events_of(entries[0]["events"])
    resumed = resume(dpfit.read("tiny.ledger.json"))
    assert resumed is not None
    assert resumed.checkpoint == document.checkpoint
    assert resumed.checkpoint.cost == compose(one * runs, Adjacency.REPLACE_ONE)
    assert resumed.checkpoint.open_runs == set()
    for adjacency in Adjacency:
        costs = [cost for _, cost in document.charges(adjacency)]
        assert sum(costs, NOTHING) == document.cost(adjacency) == compose(one * runs, adjacency)


def test_modes_follow_the_umask(dpfit: Any) -> None:
    """With umask 077 ledger, lock and model are for the owner alone; there is no other rule."""
    old = os.umask(0o077)
    try:
        dpfit.fit()
    finally:
        os.umask(old)
    for name in ("tiny.ledger.json", "tiny.model.json"):
        assert Path(name).stat().st_mode & 0o777 == 0o600
    assert Path("tiny.ledger.json.lock").stat().st_mode & 0o077 == 0
