"""No word of any command carries a value from the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SECRET = "4815162342"
FACTS = ("--n-features", "10", "--index-base", "1", "--labels=-1,1", "-vv")
GOOD = "1 1:1\n-1 2:1\n"

LIBSVM = {
    "label is text": f"x{SECRET} 1:1\n",
    "label is another": f"{SECRET} 1:1\n",
    "label is not finite": f"{SECRET}e999 1:1\n",
    "several labels": f"1,{SECRET} 1:1\n",
    "no label": f"{SECRET}:1\n",
    "index is text": f"1 x{SECRET}:1\n",
    "index too large": f"1 {SECRET}:1\n",
    "index enormous": f"1 {SECRET * 5}:1\n",
    "index is a fraction": f"1 1.{SECRET}:1\n",
    "index is negative": f"1 -{SECRET}:1\n",
    "value is text": f"1 1:x{SECRET}\n",
    "value is not finite": f"1 1:{SECRET}e999\n",
    "value missing": f"1 1: {SECRET}\n",
    "no pair": f"1 {SECRET}\n",
    "index repeated": f"1 7:1 7:{SECRET}\n",
    "qid is text": f"1 qid:x{SECRET} 1:1\n",
    "zero byte": f"1 1:{SECRET}\0\n",
    "not utf-8": f"1 1:{SECRET}\xff\n",
}

CSV = {
    "cell is text": f"a,c,y\n1,red,no\nx{SECRET},red,yes\n",
    "cell is empty": f"a,c,y\n{SECRET},red,no\n,{SECRET},yes\n",
    "cell is not finite": f"a,c,y\n{SECRET}e999,red,no\n",
    "level unknown": f"a,c,y\n1,{SECRET},no\n",
    "label unknown": f"a,c,y\n1,red,{SECRET}\n",
    "row too short": f"a,c,y\n{SECRET},red\n",
    "row too long": f"a,c,y\n1,red,no,{SECRET}\n",
    "quote open": f'a,c,y\n1,"{SECRET},no\n',
    "text after quote": f'a,c,y\n1,"red"{SECRET},no\n',
    "zero byte": f"a,c,y\n1,{SECRET}\0,no\n",
    "not utf-8": f"a,c,y\n1,{SECRET}\xff,no\n",
    "no header, label not found": f"{SECRET},red,no\n",
    "no header, names repeat": f"{SECRET},{SECRET},y\n",
    "pairs": f"no 1:{SECRET}\n",
}


@pytest.fixture
def models(dpfit: Any) -> None:
    """A model of each kind of input, with a seed: digits of chance may spell the secret."""
    dpfit.fit("--seed", "1", "-q")
    colours, answers = ("green", "red", "red"), ("no", "yes")
    rows = "".join(f"{i % 9},{colours[i % 3]},{answers[i % 2]}\n" for i in range(60))
    Path("t.csv").write_text("a,c,y\n" + rows, encoding="utf-8")
    Path("s.toml").write_text(
        'label = "y"\nlabels = ["no", "yes"]\n[columns.c]\nlevels = ["red", "green"]\n',
        encoding="utf-8",
    )
    args = (*dpfit.budget, "--seed", "1", "-q", "--schema", "s.toml")
    assert dpfit.here("fit", "t.csv", *args).status == 0


def check(outcome: Any, where: str) -> None:
    """One line of error or none, without the secret."""
    assert outcome.status in (0, 3), (where, outcome.err)
    assert SECRET not in outcome.err, where
    assert SECRET not in outcome.out, where
    assert "Traceback" not in outcome.err, where


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize("words", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("case", LIBSVM)
def test_libsvm(dpfit: Any, case: str, words: list[str]) -> None:
    """A bad LIBSVM record, early or late, shows no value in fit, predict or evaluate."""
    for first in ("", GOOD):
        Path("bad.svm").write_bytes((first + LIBSVM[case]).encode("latin-1"))
        fit = dpfit.here("fit", "bad.svm", *dpfit.budget, *FACTS, *words)
        check(fit, case)
        assert fit.status == 3
        assert "bad.svm" in fit.err
        for more in ([], ["--evaluate"]):
            check(dpfit.here("predict", "tiny.model.json", "bad.svm", *more, *words), case)
    assert not Path("bad.ledger.json").exists()


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize("words", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("case", CSV)
def test_csv(dpfit: Any, case: str, words: list[str]) -> None:
    """A bad table, or one whose header is missing, shows no cell in fit, predict or evaluate."""
    Path("bad.csv").write_bytes(CSV[case].encode("latin-1"))
    fit = dpfit.here("fit", "bad.csv", *dpfit.budget, "--schema", "s.toml", *words)
    check(fit, case)
    assert fit.status == 3
    for more in ([], ["--evaluate"], ["--ignore-new-features"]):
        check(dpfit.here("predict", "t.model.json", "bad.csv", *more, *words), case)
    assert not Path("bad.ledger.json").exists()
