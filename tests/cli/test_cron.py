"""Runs nobody watches, and runs on a terminal."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dpfit as package

COLOUR = re.compile(r"\x1b\[[0-9;]*(3|4|9|10)[0-7][0-9;]*m")


def test_cron(dpfit: Any, as_user: list[str], tmp_path: Path) -> None:
    """No terminal, no home, no locale, no stdin, an install that takes no write: it works."""
    install = tmp_path / "install"
    shutil.copytree(Path(package.__file__).parent, install / "dpfit")
    shutil.rmtree(install / "dpfit" / "__pycache__", ignore_errors=True)
    before = sorted(install.rglob("*"))
    for path in [install, *before]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    dpfit.svm()
    args = ("fit", "tiny.svm", *dpfit.budget, *dpfit.facts)
    shell = ["sh", "-c", 'exec "$@" <&-', "sh"]
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(install)}
    try:
        outcome = dpfit(*args, env=env, prefix=[*as_user, *shell])
        after = sorted(install.rglob("*"))
    finally:
        for path in [install, *before]:
            path.chmod(0o755)
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")
    assert after == before
    assert dpfit.kinds() == ["reserved", "released"]


def test_empty_home(dpfit: Any) -> None:
    """An empty or absent HOME matters to nothing, not even to a failing run."""
    env = {"PATH": "/usr/bin:/bin", "HOME": "", "LANG": "C"}
    outcome = dpfit("fit", "absent.svm", *dpfit.budget, env=env)
    assert outcome.status == 5
    assert [line.partition(":")[0] for line in outcome.err.splitlines()] == ["dpfit", "hint"]


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_locale_without_utf8(dpfit: Any, locale: dict[str, str]) -> None:
    """In a locale that knows ASCII only, text of data and files is still UTF-8."""
    rows = "".join(f"{i % 7},{'öl' if i % 2 else 'gaß'}\n" for i in range(40))
    Path("fälle.csv").write_text(f"größe,art\n{rows}", encoding="utf-8")
    env = {"PATH": "/usr/bin:/bin", "PYTHONCOERCECLOCALE": "0", **locale}
    args = ("--label", "art")
    fitted = dpfit("fit", "fälle.csv", *dpfit.budget, *args, "-o", "m", "--ledger", "l", env=env)
    assert fitted.status == 0, fitted.err
    predicted = dpfit("predict", "m", "fälle.csv", env=env)
    assert predicted.status == 0, predicted.err
    assert set(predicted.out.split()) <= {"gaß", "öl"}
    assert dpfit("budget", "l", env=env).status == 0


def test_file_name_of_any_bytes(dpfit: Any) -> None:
    """A file name that is no text in any encoding works through fit and budget."""
    name = os.fsdecode(b"caf\xe9.svm")
    shutil.copy(dpfit.svm(), name)
    assert dpfit("fit", name, *dpfit.budget, *dpfit.facts).status == 0
    ledger = os.fsdecode(b"caf\xe9.ledger.json")
    report = dpfit("budget", ledger)
    assert report.status == 0
    assert re.search(r"data +caf\S+\n", report.out)
    assert dpfit("budget", ledger, "--json").status == 0
    assert dpfit("fit", name, *dpfit.budget).status == 5  # the model exists, and saying so works


def on_terminal(dpfit: Any, *args: str, **env: str) -> str:
    """What a terminal shows of stdout and stderr."""
    leader, follower = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", **env}
    streams = {"stdout": follower, "stderr": follower, "env": environment}
    process = dpfit.start(*args, **streams)
    os.close(follower)
    shown = b""
    while True:
        try:
            more = os.read(leader, 65536)
        except OSError:  # Linux reports the last writer's end so
            break
        if not more:
            break
        shown += more
    os.close(leader)
    assert process.wait(timeout=300) == 0, shown
    return shown.decode()


def test_summary_on_a_terminal(dpfit: Any) -> None:
    """On a terminal a fit ends with a table of what it did; -q shows none."""
    dpfit.svm()
    shown = on_terminal(dpfit, "fit", "tiny.svm", *dpfit.budget, *dpfit.facts)
    for word in ("dpfit fit", "charge", "epsilon 4", "noise", "tiny.model.json", "─"):
        assert word in shown
    quiet = on_terminal(dpfit, "fit", "tiny.svm", *dpfit.budget, *dpfit.facts, "--force", "-q")
    assert quiet == ""


@pytest.mark.parametrize("without", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour(dpfit: Any, without: dict[str, str]) -> None:
    """NO_COLOR and a dumb terminal get no colour, and a dumb one no escape at all."""
    dpfit.svm()
    shown = on_terminal(dpfit, "fit", "tiny.svm", *dpfit.budget, *dpfit.facts, **without)
    assert "charge" in shown
    assert not COLOUR.search(shown)
    assert "TERM" not in without or "\x1b" not in shown


def test_budget_table_on_a_terminal(dpfit: Any) -> None:
    """A table is drawn on a terminal and plain lines elsewhere, with the same numbers."""
    args = ("budget", "--eps", "4", "--delta", "1e-6")
    drawn, plain = on_terminal(dpfit, *args), dpfit(*args).out
    assert "│" in drawn
    assert "│" not in plain
    numbers = re.findall(r"\d+\.\d{3,}", plain)
    assert numbers
    assert all(number in drawn for number in numbers)


# --- start ---------------------------------------------------------------------------------------

PROBE = """
import sys
from dpfit.cli import app
sys.argv[1:] = {args!r}
try:
    app.main()
except SystemExit as ended:
    print(ended.code, *(name for name in {heavy!r} if name in sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("args", "heavy"),
    [
        (["--help"], "numpy scipy sklearn pyarrow rich cryptography"),
        (["fit", "--help"], "numpy scipy sklearn pyarrow rich cryptography"),
        (["complete-matrix", "--help"], "numpy scipy sklearn pyarrow rich cryptography"),
        (["--version"], "numpy scipy sklearn pyarrow rich cryptography"),
        (["budget", "--eps", "1", "--delta", "1e-6"], "scipy.sparse sklearn pyarrow rich"),
        (["budget", "tiny.ledger.json"], "scipy.sparse sklearn pyarrow rich"),
        (
            ["fit", "tiny.svm", "--mu", "1", "--sparsity", "3", "--force"],
            "scipy sklearn rich pandas",
        ),
        (["predict", "tiny.model.json", "tiny.svm"], "scipy sklearn rich pandas"),
    ],
    ids=[
        "help",
        "fit help",
        "complete-matrix help",
        "version",
        "calculator",
        "ledger",
        "fit",
        "predict",
    ],
)
def test_start_imports_no_more_than_it_needs(dpfit: Any, args: list[str], heavy: str) -> None:
    """A command off a terminal leaves the heavy libraries that it does not use alone.

    Also pandas, which pyarrow would import from wherever it is to be had, such as here.
    """
    dpfit.fit()
    Path("pandas.py").touch()
    code = PROBE.format(args=args, heavy=heavy.split())
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.stderr.splitlines()[-1] == "0"
