"""What a newcomer mistypes, and the wrong files: each error says what to do next."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SECRETS = ("7421", "Meier", "yes")  # stand in the files below, and in no message
ROWS = "".join(f"{'+1' if i % 2 else '-1'} 1:0.7421 2:0.{i}\n" for i in range(60))
TABLE = "y,a,job\n" + "".join(f"{'yes' if i % 2 else 'no'},0.7421,Meier\n" for i in range(60))
NUMBERS = "1,0.7421\n0,0.5\n" * 30
HEAD = "y,a\n"
ZIP, OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # workbooks, new and old

FILES: dict[str, str | bytes] = {
    "rows.svm": ROWS,
    "table.csv": TABLE,
    "schema.toml": 'label = "y"\nlabels = ["no", "yes"]\n[columns.job]\nlevels = ["Meier"]\n',
    "numbers.csv": HEAD + NUMBERS,
    "empty.svm": "",
    "table.svm": TABLE,
    "rows.csv": ROWS,
    "one.svm": "1 1:0.7421\n" * 60,
    "one_two.svm": "1 1:0.7421\n2 1:0.5\n" * 30,
    "wide.svm": "1 1:0.7421 5:1\n",
    "comma.svm": "1 1:0,7421\n",
    "text.csv": HEAD + NUMBERS + "1,Meier\n",
    "texts.csv": "y,a,b,c\n" + "1,Meier,0.5,Meier\n0,Meier,0.5,Meier\n" * 30,
    "many.csv": "y," + ",".join(f"t{i}" for i in range(12)) + "\n" + "1" + ",Meier" * 12 + "\n",
    "index.csv": ",y,a\n" + "".join(f"{i},{i % 2},0.7421\n" for i in range(60)),
    "nameless.csv": "y,,a\n" + "1,2,0.7421\n0,3,0.5\n" * 30,
    "missing.csv": HEAD + NUMBERS + "1,\n",
    "nan.csv": HEAD + NUMBERS + "1,NaN\n",
    "unlabelled.csv": HEAD + NUMBERS + ",0.7421\n",
    "ragged.csv": HEAD + NUMBERS + "1,0.7421,1\n",
    "headless.csv": NUMBERS,
    "semicolon.csv": TABLE.replace(",", ";"),
    "latin.csv": "y,größe\n1,0.7421\n".encode("latin-1"),
    "utf16.csv": (HEAD + NUMBERS).encode("utf-16"),
    "cut.svm.gz": gzip.compress(ROWS.encode())[:-50],
    "plain.svm.gz": ROWS,
    "packed.svm": gzip.compress(ROWS.encode()),
    "book.xlsx": ZIP,
    "book.csv": ZIP + b"\0" * 60,
    "old.csv": OLE + b"\0" * 60,
    "records.json": '[{"y": "Meier", "a": 0.7421}]\n',
    "json.csv": '[{"y": "Meier", "a": 0.7421}]\n',
    "rows.txt": ROWS,
    "fake.parquet": TABLE,
    "bad.toml": "label = y\n",
    "typo.toml": 'lable = "y"\n',
}
BUDGET = "--eps 4 --delta 0.001 --sparsity 2"


@dataclass(frozen=True)
class Mistake:
    """A command, how it must end, and what its two lines must say."""

    command: str
    status: int
    said: str
    hint: str

    def __str__(self) -> str:
        return self.command


def fit(arguments: str, status: int, said: str, hint: str, budget: str = BUDGET) -> Mistake:
    """A mistake in a fit that is right but for ``arguments``."""
    return Mistake(f"fit {arguments} {budget}".strip(), status, said, hint)


MISTAKES = [
    # what is typed
    Mistake("fti rows.svm", 2, "Did you mean 'fit'", "the commands are fit, "),
    Mistake("train rows.svm", 2, "No such command 'train'", "the commands are fit, "),
    Mistake("rows.svm --eps 1", 2, "No such command", "dpfit --help"),
    Mistake("fit", 2, "Missing argument 'FILE'", "dpfit fit --help"),
    Mistake("predict model.json", 2, "Missing argument 'FILE'", "dpfit predict --help"),
    fit("rows.svm --epsilon 1", 2, "--eps", "dpfit fit --help"),
    fit("rows.svm --algo dp-igth", 2, "'dp-igth' is not known", "did you mean dp-ight?"),
    fit("rows.svm --algo lasso", 2, "'lasso' is not known", "choose auto or dp-ight"),
    fit("rows.svm --loss logit", 2, "'logit' is not known", "logistic"),
    fit("rows.svm --format svm", 2, "'svm' is not one of 'auto', 'libsvm'", "dpfit fit --help"),
    # budgets and settings
    fit("rows.svm", 2, "no privacy budget was given", "--eps with --delta", ""),
    fit("rows.svm", 2, "finite positive", "a usual compromise", "--eps 0 --delta 1e-6"),
    fit("rows.svm", 2, "finite positive", "a usual compromise", "--eps -1 --delta 1e-6"),
    fit("rows.svm", 2, "--eps': Input should be", "dpfit fit --help", "--eps abc --delta 1e-6"),
    fit("rows.svm", 2, "--eps': Input should be", "dpfit fit --help", "--eps 1,5 --delta 1e-6"),
    fit("rows.svm", 2, "protects nothing", "--non-private", "--eps 1e9 --delta 1e-6"),
    fit("rows.svm", 2, "needs --delta", "well below 1/number of rows", "--eps 1"),
    fit("rows.svm", 2, "between 0 and 1", "well below 1/number of rows", "--eps 1 --delta 2"),
    fit("rows.svm", 2, "no privacy budget", "--eps with --delta", "--delta 1e-6"),
    fit("rows.svm", 2, "at least 1", "a larger one", "--eps 1 --delta 1e-6 --sparsity 0"),
    fit("rows.svm --algo dp-ight", 2, "needs --sparsity", "--sparsity 50", "--eps 1 --delta 1e-6"),
    fit("rows.svm --unit qid", 2, "needs --max-rows-per-unit", "--max-rows-per-unit 16"),
    fit("rows.svm --max-rows-per-unit 4", 2, "needs --unit", "--unit COLUMN"),
    fit("rows.svm --strict", 4, "not declared: --n-rows", "an option or in a --schema file"),
    fit("rows.svm --n-rows 7", 3, "declared number of records", "correct --n-rows"),
    # files that are not there, or not what they should be
    fit("absent.svm", 5, "no such file", "is the name right?"),
    fit("row.svm", 5, "no such file", "did you mean rows.svm?"),
    fit("nested", 3, "the directory holds a directory", "name the directories of part files"),
    fit("hollow", 3, "no part files", "name the files themselves"),
    fit("empty.svm", 3, "holds no records", "is it the right file"),
    fit("rows.svm rows.svm", 2, "named twice", "name each file once"),
    fit("rows.svm table.csv", 2, "this file is csv", "files of one format"),
    fit("rows.svm -", 2, "must be the only input", "leave it out"),
    fit("- --format libsvm", 2, "names for what is written", "give -o MODEL"),
    fit("-", 2, "format of standard input", "give --format"),
    fit("cut.svm.gz", 3, "truncated or damaged", "copy or write the file again"),
    fit("plain.svm.gz", 3, "not gzip data", "rename it"),
    fit("packed.svm", 3, "gzip data, which the name does not say", "rename it to end in .gz"),
    fit("rows.txt", 2, "tells no format", "give --format (libsvm, csv"),
    fit("book.xlsx", 2, "tells no format", "save the sheet as CSV"),
    fit("records.json", 2, "tells no format", "make it CSV or Parquet"),
    fit("book.csv --label y", 3, "NUL byte", "save a workbook as CSV"),
    fit("old.csv --label y", 3, "NUL byte", "save a workbook as CSV"),
    fit("json.csv --label y", 3, "a quote stands inside", "JSON is not read"),
    fit("fake.parquet --label y", 3, "not a readable Parquet file", "see --format"),
    # what stands in them
    fit("table.svm", 3, "several labels", "give --format csv"),
    fit("rows.csv --label y", 3, "INDEX:VALUE pairs", "give --format libsvm"),
    fit("table.csv", 2, "label column is not named", "name it with --label"),
    fit("numbers.csv --label z", 3, "not among the columns", "name it with --label"),
    fit("rows.svm --label y", 2, "names a column of a table", "leave it out"),
    fit("semicolon.csv --label y", 3, "not among the columns", "see --delimiter"),
    fit("headless.csv --label y", 3, "is this a record?", "--no-header"),
    fit("headless.csv --label y --no-header", 3, "not among", "its number, from 1"),
    fit("one.svm", 3, "the same in every record", "is it the right column?"),
    fit("one_two.svm --labels 0,1", 3, "not one of those declared", "correct --labels"),
    fit("text.csv --label y", 3, "is not a number", 'role = "ignore"'),
    fit("text.csv --label y -q", 3, "is not a number", 'role = "hashed" with --hash-bits'),
    fit("texts.csv --label y", 3, "2: columns 'a', 'c' are not numbers", 'role = "hashed" (with'),
    fit("many.csv --label y", 3, "'t9' and 2 more are not numbers", "give each"),
    fit("texts.csv --label 1 --no-header", 3, "1: fields 2, 3, 4 are not numbers", "give each"),
    fit("index.csv --label y", 3, "column 1 has no name", "to_csv(index=False)"),
    fit("nameless.csv --label y", 3, "column 2 has no name", "give it a name"),
    fit("missing.csv --label y", 3, "is empty", "see --missing zero"),
    fit("nan.csv --label y", 3, "is not finite", "see --missing zero"),
    fit("unlabelled.csv --label y", 3, "the label is empty", "is --label the right column?"),
    fit("ragged.csv --label y", 3, "has 3 fields where 2", "see --delimiter"),
    fit("latin.csv --label y", 3, "not UTF-8", "see --encoding"),
    fit("utf16.csv --label y", 3, "NUL byte", "--encoding utf-16"),
    fit("numbers.csv --label y --encoding utf9", 2, "no known text encoding", "latin-1"),
    fit("rows.svm --schema bad.toml", 2, "bad.toml:1: not valid TOML", "texts in quotes"),
    fit("rows.svm --schema typo.toml", 2, "unknown key 'lable'", "the keys are"),
    fit("rows.svm --schema absent.toml", 5, "no such file", "is the name right?"),
    # models, ledgers, outputs
    fit("model.json", 2, "tells no format", "JSON is not read"),
    Mistake("predict rows.svm model.json", 3, "not a model file", "name the model first"),
    Mistake("predict ledger.json rows.svm", 3, "not a dpfit-model", "name the model first"),
    Mistake("predict absent.json rows.svm", 5, "no such file", "is it the model"),
    Mistake("predict model.json wide.svm", 3, "beyond", "--ignore-new-features"),
    Mistake("predict model.json table.csv", 3, "columns have names", "give a LIBSVM file"),
    Mistake("evaluate model.json rows.svm", 2, "no privacy budget", "--public"),
    Mistake("budget model.json", 4, "damaged ledger", "never was a ledger, name another"),
    Mistake("budget absent.json", 5, "no such file", "start a ledger with a cap"),
    Mistake("report ledger.json", 3, "not a dpfit-model", "name the model first"),
    fit("rows.svm --ledger rows.csv", 4, "damaged ledger", "never was a ledger, name another"),
    fit("rows.svm --ledger capped.json", 4, "the cap is 1", "ask for less"),
    fit("rows.svm -o model.json", 5, "exists", "give --force"),
    fit("rows.svm -o rows.svm --force", 2, "a file of this run", "choose another name"),
    fit("rows.svm -o table.csv --force", 5, "is not a model", "choose another name"),
    fit("rows.svm -o nested", 5, "is a folder", "name a file in it"),
    fit("rows.svm -o no/model.json", 5, "cannot be written", "make its folder first"),
    # URLs and clusters
    fit("htps://host/rows.svm", 2, "s3://, gs:// or https://", "did you mean https://?"),
    fit("S3://bucket/rows.svm", 2, "s3://, gs:// or https://", "did you mean s3://?"),
    fit("s3:/bucket/rows.svm", 5, "no such file", "a URL begins with s3://"),
    fit("ftp://host/rows.svm", 2, "s3://, gs:// or https://", "fetch the file first"),
    fit("http://host/rows.svm", 2, "s3://, gs:// or https://", "fetch it first if it may"),
    fit("file:///tmp/rows.svm", 2, "s3://, gs:// or https://", "without file://"),
    fit("rows.svm --cluster local:0", 2, "a number of workers", "--cluster local:2"),
    fit("rows.svm --cluster host:8786", 2, "tls://HOST:PORT", "prints its address"),
    fit("rows.svm --cluster tcp://host:1", 2, "in the open", "--insecure-cluster"),
    fit("rows.svm --memory lots", 2, "is not a size", "2GiB"),
]


@pytest.fixture
def newcomer(dpfit: Any) -> Any:
    """A folder with right and wrong files, a model, its ledger and a ledger with a cap."""
    for name, content in FILES.items():
        data = content if isinstance(content, bytes) else content.encode()
        Path(name).write_bytes(data)
    Path("nested/inner").mkdir(parents=True)
    Path("hollow").mkdir()
    args = ("rows.svm", *BUDGET.split(), "-o", "model.json", "--ledger", "ledger.json", "-q")
    assert dpfit.here("fit", *args).status == 0
    assert dpfit.here("budget", "capped.json", "--cap-eps", "1", "--cap-delta", "0.001").status == 0
    return dpfit


def test_every_mistake(newcomer: Any) -> None:
    """One line that names the fault, one that says what to do; no value, no trace, no file."""
    before = {name: newcomer.folder.joinpath(name).stat().st_mtime_ns for name in newcomer.names()}
    wrong = []
    for mistake in MISTAKES:
        outcome = newcomer.here(*mistake.command.split())
        lines = outcome.err.splitlines()
        kept = {
            name: newcomer.folder.joinpath(name).stat().st_mtime_ns for name in newcomer.names()
        }
        fine = (
            outcome.status == mistake.status
            and outcome.out == ""
            and len(lines) == 2
            and lines[0].startswith("dpfit: error: ")
            and mistake.said in lines[0]
            and lines[1].startswith("hint: ")
            and mistake.hint in lines[1]
            and not any(secret in outcome.err for secret in SECRETS)
            and kept == before
        )
        if not fine:
            wrong.append(f"{mistake.command}\n{outcome.status}\n{outcome.err}")
    assert not wrong, "\n".join(wrong)


TYPES: dict[str, tuple[list[object], str, str, str]] = {
    "when": ([date(2020, 1, 1), date(2020, 1, 2)] * 30, "--label y", "not numeric", "levels"),
    "who": ([1.0, None] * 30, "--label y --unit who", "neither text nor whole", ".astype(str)"),
    "day": ([date(2020, 1, 1)] * 60, "--label y --unit day", "neither text nor", ".astype(str)"),
    "heavy": (["Meier"] * 60, "--label y --weight heavy", "not numeric", "write the column as"),
    "sick": ([True, False] * 30, "--label sick --labels no,yes", "numeric where", "--labels 0,1"),
    "kind": (
        ["a", "b"] * 30,
        "--label kind --labels 0,1",
        "text where numbers",
        "the column's texts",
    ),
    "born": ([date(2020, 1, 1)] * 60, "--label born", "neither text nor numeric", "see --label"),
}


@pytest.mark.parametrize("column", TYPES)
def test_types_of_parquet(dpfit: Any, column: str) -> None:
    """What a typed column cannot be, and how to write it instead."""
    values, options, said, hint = TYPES[column]
    table = pa.table({"y": [0, 1] * 30, "a": [0.7421] * 60, column: values})
    pq.write_table(table, "t.parquet")
    units = ("--max-rows-per-unit", "2") if "--unit" in options else ()
    budget = ("--eps", "4", "--delta", "0.001")
    ended = dpfit.here("fit", "t.parquet", *options.split(), *units, *budget)
    assert ended.status == 3
    first, second = ended.err.splitlines()
    assert said in first
    assert second.startswith("hint: ")
    assert hint in second
    assert not any(secret in ended.err for secret in SECRETS)


def test_all_texts_of_parquet_at_once(dpfit: Any) -> None:
    """Not one a run."""
    texts = {name: ["Meier"] * 60 for name in ("job", "town")}
    pq.write_table(pa.table({"y": [0, 1] * 30, "a": [0.5] * 60, **texts}), "t.parquet")
    ended = dpfit.here("fit", "t.parquet", "--label", "y", "--eps", "4", "--delta", "0.001")
    assert "columns 'job', 'town' are not numeric" in ended.err


def test_the_table_is_long_enough() -> None:
    """No mistake stands in it twice."""
    assert len({str(mistake) for mistake in MISTAKES}) == len(MISTAKES) >= 90


@pytest.mark.parametrize("name", ["one_two.svm", "dos.csv"])
def test_what_looks_wrong_and_is_not(newcomer: Any, name: str) -> None:
    """Labels 1 and 2; a table with a byte-order mark and the line ends of Windows."""
    text = b"\xef\xbb\xbf" + (HEAD + NUMBERS).replace("\n", "\r\n").encode()
    Path("dos.csv").write_bytes(text)
    label = ("--label", "y") if name.endswith("csv") else ()
    outcome = newcomer.here("fit", name, *label, *BUDGET.split())
    assert outcome.status == 0, outcome.err


def test_more_coefficients_than_columns(newcomer: Any) -> None:
    """Not wrong, but not what was meant: one warning, in a search too."""
    warning = "warning: --sparsity 9 is above the 2 features: all are kept\n"
    searched = ("--eps", "8", "--delta", "1e-3", "--algo", "dp-ight", "--tune", "sparsity=1,9")
    for asked in ((*BUDGET.split(), "--sparsity", "9"), (*searched, "--dry-run")):
        outcome = newcomer.here("fit", "rows.svm", *asked)
        assert outcome.status == 0
        assert outcome.err.count(warning) == 1


def test_where_nothing_can_be_written(newcomer: Any, as_user: list[str]) -> None:
    """A folder without permission is named before anything is read."""
    Path("closed").mkdir(mode=0o555)
    for option in ("-o", "--ledger"):
        args = ("fit", "rows.svm", *BUDGET.split(), option, "closed/new.json")
        outcome = newcomer(*args, prefix=as_user)
        assert outcome.status == 5
        assert "closed/new.json: cannot be written: permission denied" in outcome.err
        assert "\nhint: name a folder in which you may write\n" in outcome.err


def test_a_ledger_is_new_when_it_was_made(newcomer: Any) -> None:
    """Told by the run that began it; a refused one began none."""
    refused = newcomer.here("fit", "cut.svm.gz", *BUDGET.split(), "--ledger", "new.json")
    assert "new ledger" not in refused.err
    assert not Path("new.json").exists()
    made = newcomer.here("fit", "rows.svm", *BUDGET.split(), "--ledger", "new.json")
    assert "dpfit: new.json: a new ledger, without a cap\n" in made.err


def test_operands_may_be_urls(newcomer: Any) -> None:
    """The help of every command that reads rows says so."""
    for command in ("fit", "predict", "evaluate", "complete-matrix"):
        assert re.search(r"FILE.*URLs", newcomer.here(command, "--help").out), command


def test_a_long_wait_is_told(
    newcomer: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a store that does not answer; not of files, and not under --quiet."""
    import time

    from dpfit.cli import streams

    monkeypatch.setattr(streams, "_PATIENCE", 0.01)
    for quiet, operand in ((False, "gs://bucket/a.csv"), (True, "gs://b/a"), (False, "a.csv")):
        with streams.Streams(quiet=quiet).waiting_for(["-", operand]):
            time.sleep(0.2)
    told = "dpfit: still waiting for credentials or an answer: gs://bucket/a.csv\n"
    assert capsys.readouterr().err == told
