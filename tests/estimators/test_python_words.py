"""What the fits can say stands in parameters of Python, not in options, files or their columns."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpfit
from dpfit.estimators.python_words import python_words

ROOT = Path(dpfit.__file__).parent
ROOMS = ("estimators", "fitting", "privacy", "algorithms", "files")
OF_THE_SHELL = {  # what no estimator calls
    *("private_evaluation", "evaluated_target", "metric_choice", "division", "factor_prediction"),
    *("workers", "unit_exchange", "toml_document", "nameless", "parquet_footer"),
}
SHELL = re.compile(r"--|\b(?:COLUMN|FILE|LOW|HIGH)\b|\bthe schema\b|-o -|for instance \w+ \d")


def texts_of(call: ast.Call) -> Iterator[str]:
    """The message and the hint of an error, with a stand-in for each inserted value."""
    for part in (*call.args, *(one.value for one in call.keywords if one.arg == "hint")):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value
        elif isinstance(part, ast.JoinedStr):
            yield "".join(
                str(one.value) if isinstance(one, ast.Constant) else "value" for one in part.values
            )


def said() -> Iterator[tuple[str, str]]:
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            if path.stem in OF_THE_SHELL:
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Error"):
                    yield from ((path.name, text) for text in texts_of(node))


def test_no_message_speaks_of_the_shell() -> None:
    """Every message and hint of every room that a fit goes through, once it is translated."""
    messages = sorted(set(said()))
    assert len(messages) > 200
    assert any("--iterations" in text for _, text in messages)
    assert [one for one in messages if SHELL.search(python_words(one[1]))] == []


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("give --unit COLUMN, or leave --n-units out", "give fit(..., unit=...), or leave n_units"),
        ("for instance --max-rows-per-unit 16", "for instance max_rows_per_unit=16"),
        ("--rank 0 has none", "rank=0 has none"),
        ("use --non-private for a run", "use non_private=True for a run"),
        ("name another --ledger for trials", "name another ledger for trials"),
        ("--algo dp-gd has --loss huber", "algo='dp-gd' has loss='huber'"),
        ("see `dpfit budget`; a well-known -- thing", "see `dpfit budget`; a well-known -- thing"),
    ],
)
def test_words(said: str, wanted: str) -> None:
    """Options with values, without, and in the middle of a name."""
    assert python_words(said).startswith(wanted)
