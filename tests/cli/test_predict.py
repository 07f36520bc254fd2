"""``dpfit predict``: every output says the same, and what the model file says by hand."""

from __future__ import annotations

import csv
import io
import json
import math
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dpfit.cli import prediction_run
from dpfit.data.reader import Reader, ReadOptions

TABLE = ("--label", "y", "--labels", "no,yes", "--n-rows", "60")


def margins_by_hand(model: dict[str, Any], rows: list[dict[int, float]]) -> list[float]:
    """Scores from the model's JSON alone, as its documentation says."""
    parts = model["coefficients"]
    weights = dict(zip(parts["indices"], parts["values"], strict=True))
    norm = model["row_map"]["norm"]
    scores = []
    for row in rows:
        length = math.hypot(*row.values()) or 1.0
        factor = norm / length
        if model["row_map"]["kind"] == "clip":
            factor = min(1.0, factor)
        score = sum(weights.get(j, 0.0) * value * factor for j, value in row.items())
        scores.append(model["intercept"] + score)
    return scores


def svm_rows(text: str) -> list[dict[int, float]]:
    """Rows of a simple LIBSVM text."""
    pairs = ([cell.split(":") for cell in line.split()[1:]] for line in text.splitlines())
    return [{int(j): float(value) for j, value in row} for row in pairs]


def csv_table(order: list[str], *, rows: int = 60, extra: str = "") -> str:
    """A table of numbers, levels and a textual label, its columns in the order asked for."""
    chance = random.Random(3)
    lines = [",".join(order)]
    for row in range(rows):
        cells = {
            "a": f"{chance.random():.3f}",
            "b": f"{row % 5}",
            "colour": chance.choice(["red", "green"]),
            "y": "yes" if row % 2 else "no",
            "new": extra,
        }
        lines.append(",".join(cells[name] for name in order))
    return "\n".join(lines) + "\n"


def fit_table(dpfit: Any) -> None:
    """``table.model.json`` from ``table.csv``."""
    Path("table.csv").write_text(csv_table(["a", "b", "colour", "y"]), encoding="utf-8")
    Path("s.toml").write_text('[columns.colour]\nlevels = ["red", "green"]\n', encoding="utf-8")
    outcome = dpfit.here("fit", "table.csv", *dpfit.budget, *TABLE, "--schema", "s.toml")
    assert outcome.status == 0, outcome.err


# --- outputs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mapping", [[], ["--row-norm", "0.8"], ["--no-intercept"]])
def test_outputs_agree_with_the_model_file(dpfit: Any, mapping: list[str]) -> None:
    """Labels, probabilities, margins and JSON all follow from the model file by hand."""
    model = dpfit.fit(*mapping)
    args = ("predict", model, "tiny.svm")
    expected = margins_by_hand(dpfit.json(model), svm_rows(dpfit.read("tiny.svm").decode()))
    margins = [float(line) for line in dpfit.here(*args, "--margin").out.splitlines()]
    assert margins == pytest.approx(expected, rel=1e-12, abs=1e-12)
    labels = dpfit.here(*args).out.splitlines()
    assert labels == ["1" if margin > 0 else "-1" for margin in margins]
    chances = [float(line) for line in dpfit.here(*args, "--proba").out.splitlines()]
    assert chances == pytest.approx([1 / (1 + math.exp(-margin)) for margin in margins])
    objects = [json.loads(line) for line in dpfit.here(*args, "--json").out.splitlines()]
    assert [row["prediction"] for row in objects] == [int(label) for label in labels]
    assert [row["probability"] for row in objects] == chances


def test_files_agree_with_lines(dpfit: Any) -> None:
    """CSV, Parquet and text files hold the very numbers of the lines on stdout."""
    args = ("predict", dpfit.fit(), "tiny.svm")
    for kind in ([], ["--proba"], ["--margin"]):
        lines = dpfit.here(*args, *kind).out
        numbers = [float(line) for line in lines.splitlines()]
        for name in ("p.csv", "p.parquet", "p.txt"):
            outcome = dpfit.here(*args, *kind, "-o", name, "--force")
            assert (outcome.status, outcome.out, outcome.err) == (0, "", "")
        assert dpfit.read("p.txt").decode() == lines
        table = list(csv.reader(io.StringIO(dpfit.read("p.csv").decode())))
        column = pq.read_table("p.parquet")
        assert table[0] == column.column_names
        assert [float(row[0]) for row in table[1:]] == numbers
        assert column.column(0).to_pylist() == numbers


def test_real_target_stays_in_its_range(dpfit: Any) -> None:
    """A squared-loss margin counts from the middle of the target's range and ends at its edges."""
    chance = random.Random(1)
    text = "".join(f"{10 * chance.random():.2f} {1 + i % 4}:1\n" for i in range(50))
    Path("real.svm").write_text(text, encoding="utf-8")
    args = ("--target-range", "2", "8", "--n-features", "4", "--index-base", "1", "--n-rows", "50")
    assert dpfit.here("fit", "real.svm", *dpfit.budget, *args).status == 0
    predict = ("predict", "real.model.json", "real.svm")
    margins = [float(line) for line in dpfit.here(*predict, "--margin").out.splitlines()]
    values = [float(line) for line in dpfit.here(*predict).out.splitlines()]
    assert values == pytest.approx([2 + 6 * min(1.0, max(0.0, m + 0.5)) for m in margins])
    assert dpfit.here(*predict, "--proba").status == 2
    evaluated = dpfit.here(*predict, "--evaluate", "-o", "p")
    assert "RMSE" in evaluated.err
    assert "not private" in evaluated.err


def test_r2_does_not_cancel(dpfit: Any) -> None:
    """R2 is that of the definition for targets far from 0 against their spread."""
    chance = random.Random(1)
    middle = 1e9
    text = "".join(f"{middle - 1 + 2 * chance.random():.6f} {1 + i % 4}:1\n" for i in range(50))
    Path("real.svm").write_text(text, encoding="utf-8")
    ends = ("--target-range", "999999999", "1000000001")
    args = (*ends, "--n-features", "4", "--index-base", "1", "--n-rows", "50")
    assert dpfit.here("fit", "real.svm", *dpfit.budget, *args).status == 0
    told = dpfit.here("predict", "real.model.json", "real.svm", "--evaluate", "--json")
    targets = [float(line.split()[0]) - middle for line in text.splitlines()]
    predicted = [json.loads(line)["prediction"] - middle for line in told.out.splitlines()]
    mean = math.fsum(targets) / 50
    errors = math.fsum((y - p) ** 2 for y, p in zip(targets, predicted, strict=True))
    expected = 1.0 - errors / math.fsum((y - mean) ** 2 for y in targets)
    evaluation = json.loads(told.err)["evaluation"]
    assert evaluation["R2"] == pytest.approx(expected, rel=1e-9)


def test_output_is_whole_or_absent(dpfit: Any) -> None:
    """A bad row far down leaves no output file; an existing one is refused, or kept whole."""
    args = ("predict", dpfit.fit())
    Path("bad.svm").write_bytes(dpfit.read("tiny.svm") * 400 + b"oops\n")
    for name in ("p.csv", "p.parquet", "p.txt"):
        assert dpfit.here(*args, "bad.svm", "-o", name).status == 3
        assert not Path(name).exists()
        Path(name).write_text("mine", encoding="utf-8")
        assert dpfit.here(*args, "tiny.svm", "-o", name).status == 5
        assert dpfit.here(*args, "bad.svm", "-o", name, "--force").status == 3
        assert Path(name).read_text(encoding="utf-8") == "mine"


# --- inputs --------------------------------------------------------------------------------------


def test_narrower_and_wider_files(dpfit: Any) -> None:
    """Fewer columns are fine; new ones are refused with 3 unless told to be ignored."""
    args = ("predict", dpfit.fit())
    Path("narrow.svm").write_text("1 1:1\n-1 2:1\n", encoding="utf-8")
    Path("wide.svm").write_text("1 1:1\n-1 2:1 11:5\n", encoding="utf-8")
    assert dpfit.here(*args, "narrow.svm").status == 0
    wide = dpfit.here(*args, "wide.svm")
    assert (wide.status, wide.out) == (3, "")
    assert "wide.svm:2" in wide.err
    assert "--ignore-new-features" in wide.err
    ignored = dpfit.here(*args, "wide.svm", "--ignore-new-features", "--margin")
    assert ignored.out == dpfit.here(*args, "narrow.svm", "--margin").out


def test_unlabelled_file(dpfit: Any) -> None:
    """Labels are not needed, except to evaluate."""
    args = ("predict", dpfit.fit())
    lines = dpfit.read("tiny.svm").decode().splitlines()
    bare = "".join(line.split(" ", 1)[1] + "\n" for line in lines)
    Path("bare.svm").write_text(bare, encoding="utf-8")
    assert dpfit.here(*args, "bare.svm").out == dpfit.here(*args, "tiny.svm").out
    assert dpfit.here(*args, "bare.svm", "--evaluate").status == 3


def test_evaluation(dpfit: Any) -> None:
    """--evaluate counts right and says in its line that it is not private."""
    args = ("predict", dpfit.fit(), "tiny.svm")
    outcome = dpfit.here(*args, "--evaluate")
    labels = [line.split()[0] for line in dpfit.read("tiny.svm").decode().splitlines()]
    wrong = sum(int(a) != int(b) for a, b in zip(labels, outcome.out.split(), strict=True))
    assert outcome.err.startswith("dpfit: evaluation (from the file's labels, not private")
    assert f"error rate {wrong / 60:.6g}" in outcome.err
    assert outcome.err.count("\n") == 1


def test_columns_are_matched_by_name(dpfit: Any) -> None:
    """The order of a table's columns does not matter, nor whether it has the label."""
    fit_table(dpfit)
    args = ("predict", "table.model.json")
    expected = dpfit.here(*args, "table.csv", "--margin").out
    assert expected.count("\n") == 60
    for order in (["y", "colour", "b", "a"], ["colour", "a", "b"]):
        Path("other.csv").write_text(csv_table(order), encoding="utf-8")
        assert dpfit.here(*args, "other.csv", "--margin").out == expected
    assert set(dpfit.here(*args, "table.csv").out.split()) <= {"yes", "no"}


def test_missing_and_new_columns_are_named(dpfit: Any) -> None:
    """Every missing column is named, with 3; a new one is refused unless told to be ignored."""
    fit_table(dpfit)
    args = ("predict", "table.model.json")
    Path("less.csv").write_text(csv_table(["b", "y"]), encoding="utf-8")
    less = dpfit.here(*args, "less.csv")
    assert less.status == 3
    assert "a" in less.err
    assert "colour" in less.err
    Path("more.csv").write_text(csv_table(["new", "a", "b", "colour"], extra="x"), encoding="utf-8")
    more = dpfit.here(*args, "more.csv")
    assert more.status == 3
    assert "new" in more.err
    ignored = dpfit.here(*args, "more.csv", "--ignore-new-features")
    assert ignored.out == dpfit.here(*args, "table.csv").out


# The peak of getrusage would include that of the test process, which the child began as.
RSS = r"""
import re, sys
from dpfit.cli.app import run
status = run(sys.argv[1:])
peak = re.search(r"VmHWM:\s+(\d+) kB", open("/proc/self/status").read())[1]
print(status, peak, file=sys.stderr)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_memory_does_not_grow_with_the_file(dpfit: Any) -> None:
    """A file ten times as long needs at most a fraction of its own length more memory."""
    model = dpfit.fit()
    line = b"1 " + b" ".join(b"%d:0.5" % j for j in range(1, 11)) + b"\n"
    line += b"1 " + b"#" * 600 + b"\n"
    peaks = []
    for rows in (6_000, 60_000):
        Path("long.svm").write_bytes(line * rows)
        ended = subprocess.run(
            [sys.executable, "-c", RSS, "predict", model, "long.svm", "--threads", "2"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=300,
            check=True,
        )
        status, peak = ended.stderr.split()
        assert status == b"0"
        peaks.append(int(peak) * 1024)
    growth = len(line) * 54_000
    assert peaks[1] - peaks[0] < growth / 3


# --- model files ---------------------------------------------------------------------------------


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of everything in a document, containers included."""
    inside: list[tuple[Any, ...]] = []
    if isinstance(value, dict):
        items: Any = value.items()
    else:
        items = enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        inside += [(*path, key), *leaves(part, (*path, key))]
    return inside


WEIRD = [None, True, -1, 10**400, 1e308, 2**63, "x", [], {}]


@pytest.mark.parametrize("kind", ["libsvm", "table"])
def test_changed_model_files(dpfit: Any, kind: str) -> None:
    """A model with any value replaced or removed is refused with 3 or works; it never crashes."""
    if kind == "libsvm":
        name, data = dpfit.fit("--sparsity", "2"), "tiny.svm"
    else:
        fit_table(dpfit)
        name, data = "table.model.json", "table.csv"
    document = dpfit.json(name)
    places = [path for path in leaves(document) if path[0] != "provenance"]
    if kind == "table":  # the rest is in the other model too
        places = [path for path in places if path[:2] == ("features", "columns")]
    refused = 0
    for path in places:
        for weird in [*WEIRD, KeyError]:
            changed = json.loads(dpfit.read(name))
            inner = changed
            for key in path[:-1]:
                inner = inner[key]
            if weird is KeyError:
                del inner[path[-1]]
            else:
                inner[path[-1]] = weird
            Path("changed.json").write_text(json.dumps(changed), encoding="utf-8")
            outcome = dpfit.here("predict", "changed.json", data, "--json", "--ignore-new-features")
            assert outcome.status in (0, 2, 3), (path, weird, outcome.err)
            assert "NaN" not in outcome.out
            assert "Infinity" not in outcome.out
            refused += outcome.status != 0
    assert refused > len(places) * len(WEIRD) / 2


def test_truncated_model_files(dpfit: Any) -> None:
    """A model cut at any byte but the last is refused with 3, as is one that is not text."""
    name = dpfit.fit("--sparsity", "2")
    whole = dpfit.read(name)
    for at in [*range(0, len(whole) - 2, 37), len(whole) - 2]:
        Path("cut.json").write_bytes(whole[:at])
        outcome = dpfit.here("predict", "cut.json", "tiny.svm")
        assert (outcome.status, outcome.out) == (3, "")
        assert "cut.json: is not a model file" in outcome.err
    for content in (b"\xff\xfe\x00", b"[" * 100_000, b'{"a": ' * 100_000, b"nan", b"7" * 5000):
        Path("cut.json").write_bytes(content)
        assert dpfit.here("predict", "cut.json", "tiny.svm").status == 3
    assert dpfit.here("predict", ".", "tiny.svm").status == 5


def test_random_bytes_in_model_files(dpfit: Any) -> None:
    """Any byte of a model changed: refused, or a model; never a crash."""
    whole = dpfit.read(dpfit.fit("--sparsity", "2"))
    chance = random.Random(5)
    for _ in range(150):
        changed = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            changed[chance.randrange(len(whole))] = chance.choice(b'0123456789-eE.,:[]{}" \n\xff')
        Path("changed.json").write_bytes(changed)
        outcome = dpfit.here("predict", "changed.json", "tiny.svm", "--ignore-new-features")
        assert outcome.status in (0, 3), (outcome.err, changed.decode("latin-1"))


def test_operands_are_expanded_by_the_reader(dpfit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder reaches the reader as it was named, and the reader's own list guards the output."""
    model = dpfit.fit()
    Path("parts").mkdir()
    for name in ("a.svm", "b.svm"):
        dpfit.svm(f"parts/{name}")
    given: list[list[str]] = []

    def reader(paths: list[str], options: ReadOptions) -> Reader:
        given.append(paths)
        return Reader(paths, options)

    monkeypatch.setattr(prediction_run, "Reader", reader)
    assert dpfit.here("predict", model, "parts", "-o", "p.txt").status == 0
    assert given == [["parts"]]
    assert dpfit.read("p.txt").count(b"\n") == 120
    before = dpfit.read("parts/b.svm")
    assert dpfit.here("predict", model, "parts", "-o", "parts/b.svm", "--force").status != 0
    assert dpfit.read("parts/b.svm") == before
