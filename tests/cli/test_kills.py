"""Kill -9 at every boundary of writing: nothing uncharged, nothing overspent, no half file.

A run is repeated in forked children. In the k-th, the k-th call that opens, locks, writes, flushes,
renames or removes kills the process before it is done, and a write also when it is half done; dying
after a call is dying before the next. ``pytest -s`` prints boundary x outcome.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dpfit.files.factor_model import read_factor_model
from dpfit.files.linear_model import read_linear_model
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.ledger import Ledger
from dpfit.privacy.ledger_document import LedgerDocument
from dpfit.privacy.ledger_frame import Cap

KILLER = r'''
"""argv: folder, arguments. For k = 0, 1, ...: a copy of `start`, a run killed at its k-th step."""
import builtins, fcntl, os, shutil, signal, sys

from dpfit.cli import app
from dpfit.privacy import random_bits

folder, arguments = sys.argv[1], sys.argv[2:]
CALLS = [(os, n) for n in ("open", "link", "replace", "unlink", "fsync", "fchmod", "dup", "fdopen",
                           "close", "ftruncate", "pwrite")] + [(fcntl, "flock")]


class Torn:
    """A file each of whose writes is also killed when half of it is done."""

    def __init__(self, stream, step):
        self.stream, self.step = stream, step

    def __getattr__(self, name):
        return getattr(self.stream, name)

    def __enter__(self):
        return self

    def __exit__(self, *ended):
        self.step("flush")
        self.stream.close()

    def write(self, data):
        data = bytes(data)
        self.step("write")
        self.stream.write(data[: len(data) // 2])
        self.stream.flush()
        self.step("half a write")
        self.stream.write(data[len(data) // 2 :])
        return len(data)


def run(k):
    """In a child: die at step k; None: do not."""
    count = 0

    def step(name):
        nonlocal count
        if count == k:
            with builtins.open("killed-at", "w") as note:
                note.write(name)
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1

    def counted(name, real):
        def call(*args, **options):
            step(name)
            result = real(*args, **options)
            return Torn(result, step) if name == "fdopen" and "wb" in args else result
        return call

    real_key = random_bits.RunKey.from_system

    def key():
        builtins.open("key-made", "w").close()
        return real_key()

    if k is not None:
        random_bits.RunKey.from_system = key
        for module, name in CALLS:
            setattr(module, name, counted(name, getattr(module, name)))
    return app.run(arguments)


def child(where, k):
    pid = os.fork()
    if pid == 0:
        os.chdir(where)
        os._exit(run(k))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def copy(name, source="start"):
    return shutil.copytree(os.path.join(folder, source), os.path.join(folder, name))


os.chdir(copy("warm"))
assert app.run(arguments) == 0  # what is imported late is then there for every child
os.chdir(folder)
k, ended = 0, -9
while ended == -9:
    ended = child(copy(f"{k}"), k)
    if k % 3 == 0:
        with builtins.open(os.path.join(copy(f"{k}-again", f"{k}"), "status"), "w") as note:
            note.write(str(child(f"{k}-again", None)))
    k += 1
assert ended == 0, ended
print(k - 1)
'''


@dataclass(frozen=True)
class Scene:
    """One command in one situation, and what is to be found of it afterwards."""

    prepare: Callable[[Any], None]
    args: tuple[str, ...]
    wrote: str
    read: Callable[[str], object] = read_linear_model

    @property
    def is_charged(self) -> bool:
        return self.args[0] in ("fit", "complete-matrix")


FIT = ("--eps", "4", "--delta", "0.001", "--sparsity", "3", "--algo", "dp-ight", "--threads", "1")
FIT = ("fit", "a.svm", *FIT, "--n-rows", "60", "--n-features", "10", "--index-base", "1")
FIT += ("--labels=-1,1", "--ledger", "l.json", "-o", "m", "--force")
MATRIX = ("complete-matrix", "r.csv", "--user", "u", "--item", "i", "--value", "v", "--range", "1")
MATRIX += ("5", "--eps", "4", "--delta", "0.001", "--n-users", "20", "--items", "items", "-o", "m")
MATRIX += ("--ledger", "l.json", "--threads", "1", "--force")
CAP = ("budget", "l.json", "--cap-eps", "9", "--cap-delta", "0.001", "--adjacency")


def rows(dpfit: Any) -> None:
    dpfit.svm("start/a.svm")


def ratings(dpfit: Any) -> None:
    lines = (f"{user},{item},{(user * item) % 5 + 1}" for user in range(20) for item in range(4))
    Path("start/r.csv").write_text("u,i,v\n" + "\n".join(lines) + "\n", encoding="utf-8")
    Path("start/items").write_text("0\n1\n2\n3\n", encoding="utf-8")


def after(prepare: Callable[[Any], None], *runs: tuple[str, ...]) -> Callable[[Any], None]:
    """What stands when these ran before."""

    def prepared(dpfit: Any) -> None:
        prepare(dpfit)
        for args in runs:
            assert dpfit(*args, cwd=dpfit.folder / "start").status == 0

    return prepared


def ledger_about_to_part(dpfit: Any) -> None:
    """The next charge goes into a second part."""
    rows(dpfit)
    run = {"kind": "reserved", "run": "a", "note": "x" * (1 << 20)}
    run["events"] = [{"mechanism": "pure", "label": "a", "count": 1, "epsilon": dict(ONE)}]
    document = LedgerDocument.start(Cap(9.0, 1e-3, Adjacency.REPLACE_ONE))
    Path("start/l.json").write_bytes(document.append(run).data)


ONE = (("replace-one", "1/1"), ("add-remove", "1/1"))
CAPPED = (*CAP, "replace-one"), (*CAP, "add-remove")
SCENES = {
    "fit, new ledger": Scene(rows, FIT, "m"),
    "fit, capped ledger": Scene(after(rows, CAPPED[0]), FIT, "m"),
    "fit, ledger in parts": Scene(ledger_about_to_part, FIT, "m"),
    "fit, over an older model": Scene(after(rows, CAPPED[0], FIT), FIT, "m"),
    "complete-matrix, new ledger": Scene(ratings, MATRIX, "m", read=read_factor_model),
    "complete-matrix, over an older model": Scene(
        after(ratings, CAPPED[1], MATRIX), MATRIX, "m", read=read_factor_model
    ),
    "predict, lines": Scene(after(rows, FIT), ("predict", "m", "a.svm", "-o", "p.txt"), "p.txt"),
    "predict, Parquet": Scene(
        after(rows, FIT), ("predict", "m", "a.svm", "-o", "p.parquet"), "p.parquet"
    ),
    "budget, a cap": Scene(lambda dpfit: None, CAPPED[0], "l.json"),
}
LONG = (
    "fit, capped ledger",
    "fit, over an older model",
    "complete-matrix, new ledger",
    "predict, lines",
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in SCENES]
)
def test_kill_at_every_boundary(dpfit: Any, name: str) -> None:
    """What is written is whole, what was released is charged, and the next run works."""
    scene = SCENES[name]
    (dpfit.folder / "start").mkdir()
    scene.prepare(dpfit)
    ended = subprocess.run(
        [sys.executable, "-c", KILLER, str(dpfit.folder), *scene.args],
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    steps = int(ended.stdout.splitlines()[-1])
    assert steps > (30 if scene.is_charged else 8)
    before = released(dpfit, "start"), written_by(dpfit, "start", scene)
    table = Counter[tuple[str, str]]()
    for k in range(steps):
        boundary = (dpfit.folder / f"{k}/killed-at").read_text()
        table[boundary, outcome_of(dpfit, scene, k, *before)] += 1
    print(f"\n{name}: {steps} kills")
    for (boundary, outcome), count in sorted(table.items()):
        print(f"  {count:3} x before {boundary:<14} {outcome}")


def outcome_of(dpfit: Any, scene: Scene, k: int, earlier: list[str], old: bytes | None) -> str:
    """Check the laws of one killed run; what became of it."""
    found = released(dpfit, str(k))
    assert found[: len(earlier)] == earlier, k
    assert len(found) <= len(earlier) + 1, k
    written = written_by(dpfit, str(k), scene)
    is_new = written is not None and written != old
    folder = dpfit.folder / str(k)
    known = {path.name for path in (dpfit.folder / "warm").iterdir()} | {"key-made", "killed-at"}
    assert {path.name for path in folder.iterdir() if path.name[0] != "."} <= known, k
    if scene.is_charged and (is_new or (folder / "key-made").exists()):
        assert len(found) == len(earlier) + 1, k
    if found[len(earlier) :] == ["released"]:
        assert is_new, k
    if k % 3 == 0:
        check_next_run(dpfit, scene, k, found)
    file = f"{'new' if is_new else 'no' if written is None else 'old'} {scene.wrote}"
    if not scene.is_charged:
        return file
    return f"{found[len(earlier)] if len(found) > len(earlier) else 'uncharged'}, {file}"


def check_next_run(dpfit: Any, scene: Scene, k: int, found: list[str]) -> None:
    """It works, unless the cap bears no more or the name is taken, and overspends nothing."""
    status = int((dpfit.folder / f"{k}-again/status").read_text())
    again = released(dpfit, f"{k}-again")
    if not scene.is_charged:
        taken = written_by(dpfit, str(k), scene) is not None
        assert status == (5 if taken else 0), k
        assert written_by(dpfit, f"{k}-again", scene) is not None, k
    elif status == 4:  # 9 is the cap, 4 a run
        assert again == found, k
        assert len(found) >= 2, k
    else:
        assert (status, again) == (0, [*found, "released"]), k
    if (dpfit.folder / f"{k}-again/l.json").exists():
        report = json.loads(dpfit.here("budget", f"{k}-again/l.json", "--json").out)
        assert not report["cap"] or report["left"]["epsilon"] >= 0.0, k


def released(dpfit: Any, folder: str) -> list[str]:
    """How the runs of a ledger ended; a ledger that stands is valid."""
    path = str(dpfit.folder / folder / "l.json")
    return list(Ledger(path, lock_timeout=0).read().outcomes().values())


def written_by(dpfit: Any, folder: str, scene: Scene) -> bytes | None:
    """The file that the command is for, which is whole or absent."""
    path = dpfit.folder / folder / scene.wrote
    if not path.exists():
        return None
    if scene.is_charged:
        scene.read(str(path))
    elif folder not in ("start", "warm"):
        assert path.read_bytes() == (dpfit.folder / "warm" / scene.wrote).read_bytes()
    return path.read_bytes()
