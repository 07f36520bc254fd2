"""The recipes of dpfit-recipes(7) and of README.md: their own lines, run by real shells."""

from __future__ import annotations

import contextlib
import grp
import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "man" / "sections" / "dpfit-recipes.7.roff").read_text(encoding="ascii")
README = (ROOT / "README.md").read_text(encoding="utf-8")

EPSILONS = ["0.5", "1", "2", "4"]
BASH = ("bash", "-euo", "pipefail", "-c")
ESCAPES = {r"\-": "-", r"\(aq": "'", r"\(ha": "^", r"\e": "\\"}

with_duckdb = pytest.mark.skipif(
    importlib.util.find_spec("duckdb") is None and shutil.which("duckdb") is None,
    reason="DuckDB is not installed",
)


def recipes() -> dict[str, list[str]]:
    """The examples of each section of the page, as its reader would copy them."""
    found = {}
    for part in PAGE.split("\n.SH ")[1:]:
        heading, _, text = part.partition("\n")
        blocks = re.findall(r"^\.EX\n(.*?)^\.EE$", text, re.MULTILINE | re.DOTALL)
        if blocks:
            found[heading.strip('"')] = [copied(block) for block in blocks]
    return found


def copied(block: str) -> str:
    """A block without the escapes of man(7)."""
    for escape, text in ESCAPES.items():
        block = block.replace(escape, text)
    return block


def here(lines: str, folder: Path) -> str:
    """The lines with their two folders and their group replaced by ones that are there."""
    group = grp.getgrgid(os.getgid()).gr_name
    lines = lines.replace("/srv/budget", f"{folder}/budget")
    return re.sub("/srv/(people|income)", str(folder), lines).replace("-g analysts", f"-g {group}")


class Cook:
    """Runs recipes in one folder, which has people.csv and its schema."""

    def __init__(self, dpfit: Any, shell: Any) -> None:
        self.dpfit = dpfit
        self._shell = shell
        (table,) = recipes()["DESCRIPTION"]
        self(table)
        schema, _, _ = recipes()["A TABLE WITH CATEGORIES"][0].partition("dpfit ")
        self(schema)

    def run(self, block: str, *prefix: str) -> subprocess.CompletedProcess[str]:
        """How bash ends that runs a block."""
        ended = self._shell(here(block, self.dpfit.folder), program=(*prefix, *BASH))
        assert isinstance(ended, subprocess.CompletedProcess)
        return ended

    def __call__(self, block: str) -> str:
        """What a block prints; it must succeed."""
        ended = self.run(block)
        assert ended.returncode == 0, (block, ended.stderr)
        return str(ended.stdout)

    def as_cron(self, crontab: str) -> subprocess.CompletedProcess[str]:
        """Run the one job of a crontab as cron does: sh, and no environment but the table's."""
        lines = here(crontab, self.dpfit.folder).splitlines()
        settings = dict(line.split("=", 1) for line in lines if re.match(r"\w+=", line))
        (job,) = [line for line in lines if re.match(r"\d", line)]
        command = job.split(" ", 5)[5]
        assert "%" not in command  # cron would end the line there
        ended = self._shell(command, **settings)
        assert isinstance(ended, subprocess.CompletedProcess)
        return ended


@pytest.fixture
def cook(dpfit: Any, shell: Any) -> Cook:
    return Cook(dpfit, shell)


def test_no_recipe_goes_untested() -> None:
    """Each section with lines to copy has its test below."""
    assert [*recipes()] == [
        "DESCRIPTION",
        "A TABLE WITH CATEGORIES",
        "CHOOSING EPSILON",
        "A CRON JOB WITH A CAP FOR THE YEAR",
        "A PIPELINE FROM DUCKDB",
        "TWO TEAMS, ONE LEDGER",
    ]


def test_the_table_that_they_share(cook: Cook) -> None:
    """The rows and columns that the page says, every level, and both classes often."""
    head, *rows = cook.dpfit.read("people.csv").decode().splitlines()
    assert head == "name,age,hours,job,region,income"
    columns = list(zip(*(row.split(",") for row in rows), strict=True))
    assert len(rows) == len(set(columns[0])) == 1000
    assert {*columns[3]} == {"clerk", "farmer", "nurse", "teacher", "pilot"}
    assert {*columns[4]} == {"east", "north", "south", "west"}
    assert 300 < columns[5].count("over50k") < 700


def test_a_table_with_categories(cook: Cook) -> None:
    """A strict fit by the schema; unlisted jobs pass where `other` says so, others do not."""
    (block,) = recipes()["A TABLE WITH CATEGORIES"]
    cook(block)
    dpfit = cook.dpfit
    assert len(dpfit.read("answers.txt").splitlines()) == 1000
    assert dpfit.json("people.model.json")["features"]["count"] == 10
    text = dpfit.read("people.csv").decode()
    Path("people.csv").write_text(text.replace(",east,", ",moon,", 1), encoding="utf-8")
    args = ("--schema", "people.toml", "--eps", "1", "--delta", "1e-6", "--force", "people.csv")
    assert "has a level" in dpfit.here("fit", *args).err


def test_choosing_epsilon(cook: Cook) -> None:
    """Four charges and noises that fall; a page; nothing spent, and no ledger begun."""
    (block,) = recipes()["CHOOSING EPSILON"]
    printed = cook(block)
    assert re.findall(r"epsilon ([\d.]+)", printed) == EPSILONS
    noise = [float(text) for text in re.findall(r"noise +column means ([\d.]+)", printed)]
    assert len(noise) == 4
    assert noise == sorted(noise, reverse=True)
    assert cook.dpfit.names() == {".venv", "people.csv", "people.toml", "plan.html"}


def test_a_cron_job_with_a_cap_for_the_year(cook: Cook) -> None:
    """Twelve silent runs, a logged line each; the thirteenth is refused and the model stays."""
    start, crontab, two_years = recipes()["A CRON JOB WITH A CAP FOR THE YEAR"]
    cook(start)
    dpfit = cook.dpfit
    for _ in range(12):
        ended = cook.as_cron(crontab)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    model, ledger = dpfit.read("people.model.json"), dpfit.read("people-2027.ledger.json")
    refused = cook.as_cron(crontab)
    assert (refused.returncode, refused.stdout) == (4, "")
    assert json.loads(refused.stderr)["exit_status"] == 4
    assert refused.stderr.count("\n") == 1
    assert dpfit.read("people.model.json") == model
    assert dpfit.read("people-2027.ledger.json") == ledger
    logged = [json.loads(line) for line in dpfit.read("fits.log").splitlines()]
    assert [line["ledger"] for line in logged] == ["people-2027.ledger.json"] * 12
    cap = json.loads(dpfit.here("budget", "--eps", "4", "--delta", "1e-6", "--json").out)
    assert f"instead of {cap['mu']:.3f} each" in PAGE
    assert f"{cap['mu'] * 2**0.5:.3f}" in two_years
    assert re.search(r"epsilon at delta 1e-06 +5\.9", cook(two_years))


@with_duckdb
def test_a_pipeline_from_duckdb(cook: Cook) -> None:
    """Parquet and pipe are charged to one ledger; a query that drops rows, as add-remove."""
    for block in recipes()["A PIPELINE FROM DUCKDB"]:
        cook(block)
    dpfit = cook.dpfit
    assert dpfit.kinds("people.ledger.json") == ["reserved", "released"] * 2
    stored, piped = (dpfit.json(f"{name}.model.json") for name in ("stored", "piped"))
    assert stored["features"] == piped["features"]
    assert '"add-remove"' in dpfit.read("older.model.json").decode()


def test_a_query_that_dies_half_way(cook: Cook) -> None:
    """Too few rows end a pipe's fit with status 3, before anything is charged."""
    program = cook.dpfit.folder / ".venv" / "bin" / "duckdb"
    program.write_text("#!/bin/sh\nhead -n 500 people.csv\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    _, pipe = recipes()["A PIPELINE FROM DUCKDB"][0].split("\n\n")
    ended = cook.run(pipe)
    assert ended.returncode == 3
    assert "does not hold the declared number of records" in ended.stderr
    assert cook.dpfit.names() == {".venv", "people.csv", "people.toml"}


def test_two_teams_one_ledger(cook: Cook) -> None:
    """3 of 4 is taken, 3 more are refused and not charged, 2 more fit; files are the group's."""
    folder, first, second = recipes()["TWO TEAMS, ONE LEDGER"]
    cook(folder)
    cook(first)
    assert "status 4\n" in cook(second)
    dpfit = cook.dpfit
    assert dpfit.kinds("budget/people.ledger.json") == ["reserved", "released"] * 2
    assert Path("budget").stat().st_mode & 0o7777 == 0o2770
    for path in Path("budget").iterdir():
        assert path.stat().st_mode & 0o777 == 0o660
    assert {"north.model.json", "south.model.json"} <= dpfit.names()


def test_two_teams_at_once(cook: Cook) -> None:
    """Of two runs at the same moment, of which one fits under the cap, exactly one is let."""
    folder, first, _ = recipes()["TWO TEAMS, ONE LEDGER"]
    cook(folder)
    statuses = []
    barrier = threading.Barrier(2)

    def run(team: str) -> None:
        barrier.wait()
        statuses.append(cook.run(first.replace("north", team)).returncode)

    threads = [threading.Thread(target=run, args=(team,)) for team in ("north", "south")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [0, 4]
    assert cook.dpfit.kinds("budget/people.ledger.json") == ["reserved", "released"]


# --- two users of the system ---------------------------------------------------------------------

NORTH, SOUTH, STRANGER, GROUP, OTHERS = 61001, 61002, 61003, 61000, 61009


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter, as that of a test is not."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder


@pytest.mark.skipif(os.getuid() != 0 or shutil.which("setpriv") is None, reason="takes root")
def test_two_users_one_ledger(cook: Cook) -> None:
    """Each user of the group charges the ledger that the other wrote; a stranger is refused."""
    folder, first, second = recipes()["TWO TEAMS, ONE LEDGER"]
    with open_folder() as place:
        for name in (".venv", "people.csv", "people.toml"):
            (shutil.copytree if name == ".venv" else shutil.copy)(name, place / name)

        def run(block: str, user: int, group: int) -> subprocess.CompletedProcess[str]:
            # They may read all, since the interpreter may stand in root's home, but write no more.
            caps = "-all,+dac_read_search"
            drop = (f"--reuid={user}", f"--regid={group}", "--clear-groups")
            keep = (f"--inh-caps={caps}", f"--ambient-caps={caps}")
            lines = f'cd "{place}"; PATH="{place}/.venv/bin:$PATH"; {here(block, place)}'
            return cook.run(lines, "setpriv", *drop, *keep)

        if run("dpfit --version", NORTH, GROUP).returncode != 0:
            pytest.skip("other users cannot run this interpreter")
        made = run(folder.replace("-g analysts", f"-g {GROUP}"), NORTH, GROUP)
        assert made.returncode == 0, made.stderr
        assert run(first, NORTH, GROUP).returncode == 0
        ended = run(second, SOUTH, GROUP)
        assert ended.returncode == 0, ended.stderr
        assert "status 4\n" in ended.stdout
        stranger = run(first.replace("north", "own"), STRANGER, OTHERS)
        assert stranger.returncode == 5
        assert "permission denied" in stranger.stderr
        ledger = (place / "budget" / "people.ledger.json").stat()
        assert (ledger.st_uid, ledger.st_gid) == (SOUTH, GROUP)


# --- README --------------------------------------------------------------------------------------


@with_duckdb
def test_readme_recipes(cook: Cook) -> None:
    """Each runs in one folder, one after the other; the second team's run is the one refused."""
    shutil.copytree(ROOT / "sample_data", "sample_data")
    _, _, text = README.partition("\n## Recipes\n")
    blocks = re.findall(r"^```sh\n(.*?)^```", text.partition("\n## ")[0], re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4  # the crontab is run by test_readme
    printed = [cook(block) for block in blocks]
    assert printed[0] == ""
    assert re.findall(r"^  charge .* epsilon ([\d.]+)", printed[1], re.MULTILINE) == EPSILONS
    assert len(re.findall(r"^  noise ", printed[1], re.MULTILINE)) == 4
    assert len(printed[1].splitlines()) == 8  # and no settings among them
    assert "status 4\n" in printed[3]
    assert {"plan.html", "piped.model.json", "north.model.json"} <= cook.dpfit.names()
    assert "south.model.json" not in cook.dpfit.names()
