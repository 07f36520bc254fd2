"""What a careless or hostile hand may do to files and options around a run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dpfit.errors import StorageError
from dpfit.files.lock import locked


@pytest.mark.parametrize("extra", [["--hash-bits", "4"], ["--n-features", "9"]], ids=str)
def test_a_base_that_contradicts_the_columns_is_refused(dpfit: Any, extra: list[str]) -> None:
    """Base 1 over columns from 0, or over hashed ones, ends with a message and no charge."""
    Path("zero.svm").write_text("1 0:1 3:1\n-1 1:1\n" * 9, encoding="utf-8")
    run = dpfit.here("fit", *dpfit.budget, "--index-base", "1", *extra, "zero.svm")
    assert run.status in (2, 3)
    assert not Path("zero.ledger.json").exists()


def test_a_table_has_no_base_one(dpfit: Any) -> None:
    """Columns of a table count from 0; another base is a usage error."""
    Path("t.csv").write_text("y,a,b\n" + "0,1,2\n1,2,1\n" * 9, encoding="utf-8")
    run = dpfit.here("fit", *dpfit.budget, "--label", "y", "--index-base", "1", "t.csv")
    assert run.status == 2
    assert "--index-base" in run.err


def test_verbose_tells_no_count_of_the_data(dpfit: Any) -> None:
    """-v says the same for neighbours: the number of entries is not public."""
    dpfit.svm("one.svm", rows=60)
    text = Path("one.svm").read_text(encoding="utf-8")
    Path("two.svm").write_text("-1 1:1 10:1\n" + text.split("\n", 1)[1], encoding="utf-8")
    said = []
    for name in ("one.svm", "two.svm"):
        args = (*dpfit.budget, *dpfit.facts, "-v", "--force", "-o", "m.json", "--ledger", "l.json")
        said.append(dpfit.here("fit", *args, name).err.replace("a new ledger, without a cap", ""))
    assert said[0].replace("dpfit: l.json: \n", "") == said[1]


def test_a_ledger_with_two_names_is_refused(dpfit: Any) -> None:
    """A hard link would carry the whole cap a second time."""
    dpfit.svm("a.svm")
    dpfit.here("budget", "cap.json", "--cap-eps", "4.1", "--cap-delta", "0.001")
    os.link("cap.json", "again.json")
    run = dpfit.here("fit", *dpfit.budget, "--ledger", "again.json", "a.svm")
    assert run.status == 4
    assert "hard link" in run.err


@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_a_ledger_is_a_regular_file(dpfit: Any, kind: str) -> None:
    """A pipe or an endless device as ledger is refused at once."""
    dpfit.svm("a.svm")
    if kind == "fifo":
        os.mkfifo("ledger")
    path = {"fifo": "ledger", "device": "/dev/zero"}[kind]
    run = dpfit.here("fit", *dpfit.budget, "--ledger", path, "a.svm")
    assert run.status == 5


def test_a_pipe_as_output_is_refused_before_the_charge(dpfit: Any) -> None:
    """Opening it would wait for a reader, for ever."""
    dpfit.svm("a.svm")
    os.mkfifo("pipe")
    run = dpfit.here("fit", *dpfit.budget, "--force", "-o", "pipe", "a.svm")
    assert run.status == 5
    assert not Path("a.ledger.json").exists()


def test_a_removed_lock_file_stops_the_writer() -> None:
    """A lock that no longer has its name guards nothing: the last look raises."""
    with locked("l.json", timeout=0) as last_look:
        last_look()
        os.unlink("l.json.lock")
        with locked("l.json", timeout=0):
            pass
        with pytest.raises(StorageError, match="removed"):
            last_look()


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", ["link", "file"])
def test_the_lock_never_overwrites_what_stands_in_its_place(dpfit: Any, kind: str) -> None:
    """A link or a foreign file named like the lock keeps its content."""
    dpfit.svm("a.svm")
    Path("precious").write_text("precious\n", encoding="utf-8")
    if kind == "link":
        Path("l.json.lock").symlink_to("precious")
    else:
        Path("l.json.lock").write_text("precious\n", encoding="utf-8")
    run = dpfit.here("fit", *dpfit.budget, "--ledger", "l.json", "a.svm")
    assert run.status == 5
    assert Path("precious").read_text(encoding="utf-8") == "precious\n"
    assert Path("l.json.lock").read_text(encoding="utf-8") == "precious\n"


@pytest.mark.parametrize("option", ["--ledger", "--schema", "--output", "--dataset", "--label"])
def test_an_empty_option_is_refused(dpfit: Any, option: str) -> None:
    """An unset shell variable must not drop a wish about privacy without a word."""
    dpfit.svm("a.svm")
    run = dpfit.here("fit", *dpfit.budget, option, "", "a.svm")
    assert run.status == 2
    assert f"{option} is empty" in run.err


def test_control_characters_never_reach_the_terminal(dpfit: Any) -> None:
    """File names, labels and ledger fields are shown without escapes and in one line."""
    os.mkdir("parts")
    Path("parts/\x1b]0;PWN\x07a.svm").write_text("garbage\n", encoding="utf-8")
    run = dpfit.here("fit", *dpfit.budget, "parts")
    assert run.status == 3
    assert "\x1b" not in run.err
    assert run.err.count("\n") <= 2
    records = '"p\x1b[2J\ndpfit: all is well",1\nq,2\n' * 9
    Path("t.csv").write_text("y,a\n" + records, encoding="utf-8")
    run = dpfit.here("fit", *dpfit.budget, "--label", "y", "t.csv")
    assert "\x1b" not in run.err
    assert "\ndpfit: all is well" not in run.err
    dpfit.svm("a.svm")
    dpfit.here("fit", *dpfit.budget, "--dataset", "ok\n left 99\x1b[2J", "a.svm")
    run = dpfit.here("budget", "a.ledger.json")
    assert "\x1b" not in run.out
    assert "\n left 99" not in run.out


def test_a_diverging_step_is_a_poor_model_not_a_crash(dpfit: Any) -> None:
    """Any finite step size ends with a model: the charge was made."""
    dpfit.svm("a.svm")
    run = dpfit.here(
        "fit", *dpfit.budget, *dpfit.facts, "--step-size", "1e300", "--row-norm", "1e90", "a.svm"
    )
    assert (run.status, run.err) == (0, "")


@pytest.mark.parametrize("number", [1e308, -1e200])
def test_a_model_too_large_to_compute_with_is_refused(dpfit: Any, number: float) -> None:
    """A centre whose square overflows is invalid data, not an overflow at prediction."""
    dpfit.svm("a.svm")
    assert dpfit.here("fit", *dpfit.budget[:-1], "dp-screen", "a.svm").status == 0
    model = json.loads(Path("a.model.json").read_text(encoding="utf-8"))
    model["centring"]["centre"][0] = number
    Path("a.model.json").write_text(json.dumps(model), encoding="utf-8")
    assert dpfit.here("predict", "a.model.json", "a.svm").status == 3


def test_without_a_name_the_algorithm_is_chosen_and_recorded(dpfit: Any) -> None:
    """auto, the default, chooses from the request alone and the ledger says what it chose."""
    dpfit.svm("a.svm")
    dpfit.here("fit", *dpfit.budget[:-2], "a.svm")
    dpfit.here("fit", *dpfit.budget[:-2], "--no-intercept", "--force", "a.svm")
    entries = dpfit.json("a.ledger.json")["entries"]
    chosen = [entry["algorithm"] for entry in entries if entry["kind"] == "reserved"]
    assert chosen == ["dp-screen", "dp-gd"]


def test_memory_of_a_closed_process_is_not_needed() -> None:
    """A lock dies with its process."""
    code = (
        "import os\nfrom dpfit.files.lock import locked\n"
        "with locked('x', timeout=0):\n    os._exit(0)\n"
    )
    subprocess.run([os.sys.executable, "-c", code], check=True)
    with locked("x", timeout=0):
        pass


def test_a_device_is_no_model(dpfit: Any) -> None:
    """Reading a model ends: one without an end is invalid data."""
    dpfit.svm("a.svm")
    run = dpfit.here("predict", "/dev/zero", "a.svm")
    assert run.status == 3
    assert "larger than a model" in run.err
