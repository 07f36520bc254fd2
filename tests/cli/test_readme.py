"""What README.md shows runs as it stands, and what it lists is complete."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from dpfit.cli.exit_status import ExitStatus
from dpfit.data.schema import parse_schema

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
UNFENCED = re.sub(r"^```.*?^```", "", README, flags=re.MULTILINE | re.DOTALL)
SHOWN = re.findall(r"^    (.*)$", UNFENCED, re.MULTILINE)  # fenced: see test_recipes
COMMANDS = [
    found[1]
    for line in SHOWN
    # The first line of all installs dpfit before it runs it.
    if (found := re.fullmatch(r"(?:python3 .* && \.venv/bin/)?((?:cat \S+ \| )?dpfit .*)", line))
]
(CRON,) = [line for line in SHOWN if line.startswith("15 3 ")]


def test_every_sample_is_shown_in_use() -> None:
    """The commands found are all that README shows; each sample file is used by one."""
    assert len(COMMANDS) == sum("dpfit " in line for line in SHOWN if not line.startswith("#")) - 1
    samples = {path.name for path in (ROOT / "sample_data").iterdir() if path.suffix != ".py"}
    named = {Path(name).name for name in re.findall(r"sample_data/[\w.]+", "\n".join(COMMANDS))}
    assert named == samples - {"__pycache__"}


def test_every_command_runs(shell: Any) -> None:
    """In one folder, one after the other, each ends with status 0."""
    shutil.copytree(ROOT / "sample_data", "sample_data")
    for line in COMMANDS:
        ended = shell(line)
        assert ended.returncode == 0, (line, ended.stderr)


def test_python_runs(dpfit: Any) -> None:
    """Each block as it stands, in a process of its own, without a warning."""
    shutil.copytree(ROOT / "sample_data", "sample_data")
    blocks = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        command = [sys.executable, "-W", "error", "-c", block]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert ended.returncode == 0, ended.stderr


def test_crontab_runs_until_its_cap(dpfit: Any, shell: Any) -> None:
    """Silent while the cap lasts; then one line for the mail, and the model stays."""
    for name in ("income.csv", "income.toml"):
        shutil.copy(ROOT / "sample_data" / name, name)
    (first,) = [line for line in SHOWN if line.startswith("# once")]
    assert shell(first.partition(": ")[2]).returncode == 0
    command = CRON.split(" ", 5)[5].replace("/srv/income", str(dpfit.folder))
    ended = shell(command)
    while ended.returncode == 0:
        assert (ended.stdout, ended.stderr) == ("", "")
        model = dpfit.read("income.model.json")
        ended = shell(command)
    assert ended.returncode == 4
    assert ended.stdout == ""
    assert ended.stderr.startswith("dpfit: error: ")
    assert dpfit.read("income.model.json") == model
    assert dpfit.kinds("income.ledger.json").count("released") > 1


def test_schema_is_one() -> None:
    """The schema shown is read without a complaint."""
    start = SHOWN.index("rows = 32561")
    end = next(i for i, line in enumerate(SHOWN) if line.startswith("name = ")) + 1
    schema = parse_schema(tomllib.loads("\n".join(SHOWN[start:end])), "README.md")
    assert schema.columns["age"].range == (0.0, 100.0)


def test_every_exit_status_is_listed() -> None:
    """The statuses that README lists are those of the program."""
    _, _, text = README.partition("## Exit status\n")
    listed = re.findall(r"(?<![\w.])\d+\b", text.partition("\n## ")[0])
    assert sorted(int(number) for number in listed) == sorted(ExitStatus)
