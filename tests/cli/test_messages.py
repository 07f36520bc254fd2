"""What a user is told about a faulty input or option: the place, the cause and the way out."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

HEAD = "y,a,job\n"
ROWS = "".join(f"{'yes' if i % 2 else 'no'},{i % 7},{'xz'[i % 2]}\n" for i in range(60))
SCHEMA = 'label = "y"\nlabels = ["no", "yes"]\n[columns.job]\nlevels = ["x", "z"]\n'


def told(outcome: Any, status: int = 3) -> str:
    """What stands on stderr; one line and at most one hint."""
    assert (outcome.status, outcome.out) == (status, "")
    assert len(outcome.err.splitlines()) <= 2
    assert outcome.err.startswith("dpfit: error: ")
    return str(outcome.err)


def fit(dpfit: Any, *args: str) -> Any:
    """A fit of whatever the arguments say."""
    return dpfit.here("fit", *args, *dpfit.budget, "--force", "--n-rows", "60")


def table(text: str = HEAD + ROWS, schema: str = SCHEMA, name: str = "t.csv") -> tuple[str, ...]:
    """Arguments that read this table by this schema."""
    Path(name).write_text(text, encoding="utf-8")
    Path("s.toml").write_text(schema, encoding="utf-8")
    return (name, "--schema", "s.toml")


def fitted(dpfit: Any, *args: str) -> str:
    outcome = fit(dpfit, *(args or table()), "-o", "m.json")
    assert outcome.status == 0, outcome.err
    return "m.json"


# --- names and records ---------------------------------------------------------------------------


def test_a_record_taken_for_names(dpfit: Any) -> None:
    """No cell of a first record gets into a message or a model."""
    rows = "Meier,77,1\nSchmidt,66,0\n"
    Path("t.csv").write_text(rows, encoding="utf-8")
    err = told(fit(dpfit, "t.csv", "--label", "1"))
    assert "t.csv:1: the names of columns 2 and 3 are numbers: is this a record?" in err
    assert "hint: --no-header, or declare the columns in --schema" in err
    assert "Meier" not in err
    model = fitted(dpfit, *table(name="named.csv"))
    err = told(dpfit.here("predict", model, "t.csv"))
    assert "Meier" not in err
    assert "hint: see --no-header" in err


def test_declared_names_may_be_numbers(dpfit: Any) -> None:
    """In the schema, label included; the model then knows them."""
    text = HEAD.replace("a", "77").replace("y", "1") + ROWS
    schema = SCHEMA.replace('"y"', '"1"') + '[columns.77]\nrole = "numeric"\n'
    model = fitted(dpfit, *table(text, schema))
    assert dpfit.here("predict", model, "t.csv").status == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Jane,Doe,Roe\n1,2,3\n", "none of the expected columns"),
        ("a,Jane,Doe\n1,2,3\n", "missing columns: 'job'; 2 extra columns"),
        ("a,job,Jane\n1,x,3\n", "1 extra column\n"),
    ],
)
def test_new_names_are_counted(dpfit: Any, text: str, said: str) -> None:
    """A name that the model does not know may be a cell."""
    model = fitted(dpfit)
    Path("new.csv").write_text(text, encoding="utf-8")
    err = told(dpfit.here("predict", model, "new.csv"))
    assert said in err
    assert "Jane" not in err
    assert "Doe" not in err


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_another_delimiter(dpfit: Any, delimiter: str) -> None:
    """A header of one name is one that was not taken apart."""
    text = (HEAD + ROWS).replace(",", delimiter)
    said = "hint: the header has no comma: see --delimiter"
    assert said in told(fit(dpfit, *table(text)))
    model = fitted(dpfit)
    table(text, name="other.csv")
    assert said in told(dpfit.here("predict", model, "other.csv"))
    assert dpfit.here("predict", model, "other.csv", "--delimiter", delimiter).status == 0


# --- labels --------------------------------------------------------------------------------------


def test_labels_outside_the_set(dpfit: Any) -> None:
    """Fit holds them to --labels; predict to the model's classes, but to evaluate only."""
    bad = HEAD + ROWS + "No,1,x\n"
    err = told(fit(dpfit, *table(bad)))
    assert "t.csv:62: the label is not one of those declared" in err
    assert "hint: correct --labels or the schema (case and blanks matter)" in err
    model = fitted(dpfit)
    table(bad, name="bad.csv")
    assert dpfit.here("predict", model, "bad.csv").out.count("\n") == 61
    err = told(dpfit.here("predict", model, "bad.csv", "--evaluate", "-o", "p.txt"))
    assert "bad.csv:62: the label is not one of the classes of the model" in err
    assert "--labels" not in err


def test_labels_outside_the_set_in_libsvm(dpfit: Any) -> None:
    """The line counts from the file's start."""
    model = dpfit.fit()
    Path("bad.svm").write_bytes(dpfit.read("tiny.svm") + b"\n0 1:1\n")
    err = told(dpfit.here("fit", "bad.svm", *dpfit.budget, *dpfit.facts))
    assert "bad.svm:62: the label is not one of those declared" in err
    assert dpfit.here("predict", model, "bad.svm").status == 0
    err = told(dpfit.here("predict", model, "bad.svm", "--evaluate", "-o", "p.txt"))
    assert "bad.svm:62: the label is not one of" in err


def test_three_texts_are_classes_for_the_multinomial_loss_only(dpfit: Any) -> None:
    """The other losses say what they need and which loss takes such a target."""
    schema = SCHEMA.replace('labels = ["no", "yes"]\n', "")
    args = table(HEAD + ROWS + "maybe,1,x\n", schema)
    for loss, said in (
        ("logistic", "does not have exactly two values"),
        ("squared", "is text, not a number"),
        ("poisson", "is text, not a number"),
    ):
        outcome = dpfit.here("fit", *args, *dpfit.budget, "--loss", loss)
        assert said in told(outcome)
        assert "multinomial" in outcome.err
    assert dpfit.here("fit", *args, *dpfit.budget).status == 0


# --- cells ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "said", "hint"),
    [
        ("no,two,x", "column 'a' (field 2) is not a number", 'role = "ignore"'),
        ("no,inf,x", "column 'a' (field 2) is not finite", None),
        ("no,1e400,x", "column 'a' (field 2) is too large", None),
        ("no,,x", "column 'a' (field 2) is empty", "see --missing zero"),
        ("no,1,w", "column 'job' (field 3) has a level", "add it to the levels of column job"),
        (",1,x", "the label is empty", "is --label the right column?"),
    ],
)
def test_cells(dpfit: Any, record: str, said: str, hint: str | None) -> None:
    """The column by name, and a hint that is of use."""
    err = told(fit(dpfit, *table(f"{HEAD}{ROWS}{record}\n")))
    assert f"t.csv:62: {said}" in err
    assert hint in err if hint else "hint" not in err
    if not record.startswith(","):
        model = fitted(dpfit)
        table(f"{HEAD}{ROWS}{record}\n", name="bad.csv")
        err = told(dpfit.here("predict", model, "bad.csv"))
        assert f"bad.csv:62: {said}" in err
        assert "--schema" not in err


def test_hashing_needs_a_size(dpfit: Any) -> None:
    """Columns of text without levels: the hint gives an example."""
    for role in ("categorical", "hashed"):
        schema = f'label = "y"\n[columns.job]\nrole = "{role}"\n'
        err = told(fit(dpfit, *table(schema=schema)), 2)
        assert "hint: give --hash-bits B, for instance 10" in err


def test_columns_beyond_the_width(dpfit: Any) -> None:
    """fit has --n-features to correct, predict has --ignore-new-features."""
    model = dpfit.fit()
    err = told(fit(dpfit, "tiny.svm", "--n-features", "5"))
    assert "hint: correct --n-features or the schema, or see --index-base" in err
    assert "--ignore-new-features" not in err
    Path("wide.svm").write_text("1 1:1 11:1\n", encoding="utf-8")
    err = told(dpfit.here("predict", model, "wide.svm"))
    assert "wide.svm:1: a column index is beyond the model's features" in err
    assert err.endswith("hint: --ignore-new-features\n")


def test_a_wrong_number_of_rows_may_stand_in_the_schema(dpfit: Any) -> None:
    """The hint names both places where it may have been declared."""
    dpfit.svm()
    Path("s.toml").write_text("rows = 3\n", encoding="utf-8")
    err = told(dpfit.here("fit", "tiny.svm", *dpfit.budget, "--schema", "s.toml"))
    assert "hint: correct --n-rows or the schema" in err


# --- weight, offset, exposure ---------------------------------------------------------------------


WITH_MONTHS = "y,a,job,months\n" + "".join(f"{row},{i + 1}\n" for i, row in enumerate(ROWS.split()))


@pytest.mark.parametrize(
    ("option", "cell", "said", "hint"),
    [
        ("--weight", "-7", "is negative: a weight is 0 or more", None),
        ("--offset", "1e400", "is too large for a float", None),
        ("--offset", "", "is empty", "every record needs its own; --missing zero is for features"),
        ("--exposure", "0", "is not positive: an exposure is above 0", None),
        ("--exposure", "two", "is not a number", None),
    ],
)
@pytest.mark.parametrize("by_role", [False, True])
def test_cells_of_attributes(
    dpfit: Any, option: str, cell: str, said: str, hint: str | None, by_role: bool
) -> None:
    """The place, the column and the rule, whatever named the column; --missing zero or not."""
    role = f'[columns.months]\nrole = "{option[2:]}"\n' if by_role else ""
    args = table(f"{WITH_MONTHS}no,1,x,{cell}\n", SCHEMA + role)
    named = () if by_role else (option, "months")
    for missing in ("error", "zero"):
        err = told(fit(dpfit, *args, *named, "--missing", missing))
        assert f"t.csv:62: column 'months' (field 4) {said}\n" in err
        assert err.endswith(f"hint: {hint}\n") if hint else "hint" not in err
    assert not Path("t.ledger.json").exists()


def test_attribute_columns_by_name(dpfit: Any) -> None:
    """One that is not there is named; no column has two meanings."""
    args = table(WITH_MONTHS)
    err = told(fit(dpfit, *args, "--exposure", "years"))
    assert "t.csv: the exposure column 'years' is not among the columns" in err
    err = told(fit(dpfit, *args, "--exposure", "months", "--weight", "months"), 2)
    assert "column 'months' cannot be both the weight and the exposure" in err
    err = told(fit(dpfit, *args, "--offset", "y"), 2)
    assert "column 'y' cannot be both the label and the offset" in err


@pytest.mark.parametrize("option", ["--weight", "--offset", "--exposure"])
def test_attributes_of_a_libsvm_file(dpfit: Any, option: str) -> None:
    """Refused before reading: it need not even be one."""
    Path("tiny.svm").write_bytes(b"\0")
    err = told(fit(dpfit, "tiny.svm", option, "w"), 2)
    assert f"{option} names a column of a table; a LIBSVM file has no named columns" in err


# --- schema keys that the model keeps ------------------------------------------------------------


def test_prediction_repeats_what_the_schema_said(dpfit: Any) -> None:
    """Ranges, texts for empty and other levels work without the schema."""
    schema = (
        'label = "y"\nlabels = ["no", "yes"]\nna = ["?"]\n[columns.a]\nrange = [0, 6]\n'
        '[columns.job]\nlevels = ["x", "z"]\nother = true\n'
    )
    model = fitted(dpfit, *table(schema=schema))
    stored = dpfit.json(model)["features"]["columns"]
    assert stored["na"] == ["?"]
    assert stored["columns"][0]["range"] == [0, 6]
    assert stored["columns"][1]["other"] is True
    Path("p.csv").write_text("a,job\n600,w\n6,?\n,z\n0,z\n", encoding="utf-8")
    outcome = dpfit.here("predict", model, "p.csv", "--missing", "zero", "--margin")
    first, second, third, fourth = outcome.out.split()
    assert first == second
    assert third == fourth
    assert "p.csv:3: column 'job' (field 2) is empty" in told(dpfit.here("predict", model, "p.csv"))


def test_scales_are_brought_together(dpfit: Any) -> None:
    """A signal beside a column a million times as large: found with ranges, lost without."""
    text = "y,a,b\n" + "".join(f"{i % 2},{i % 2}.5,{10**6 + i % 3}\n" for i in range(60))
    errors = []
    for ranges in ("", "[columns.a]\nrange = [0, 2]\n[columns.b]\nrange = [999_995, 1_000_005]\n"):
        args = table(text, 'label = "y"\nlabels = [0, 1]\n' + ranges)
        assert dpfit.here("fit", *args, "--sparsity", "2", "--non-private", "--force").status == 0
        outcome = dpfit.here("predict", "t.model.json", "t.csv", "--evaluate", "--json")
        report = json.loads(outcome.err.splitlines()[-1])
        errors.append(report["evaluation"]["error_rate"])
    assert errors == [0.5, 0.0]


# --- operands and options ------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["pair", "struct"])
def test_sparse_parquet_goes_both_ways(dpfit: Any, layout: str) -> None:
    """The label's column is stored, so predict knows it, by name, beside the lists."""
    rows = [[(i % 5, 1.0), (5 + i % 2, 1.0)] for i in range(60)]
    target = {"y": [i % 2 for i in range(60)]}
    if layout == "struct":
        kind = pa.list_(pa.struct([("index", pa.int32()), ("value", pa.float64())]))
        cells = [[{"index": j, "value": v} for j, v in row] for row in rows]
        columns = {"row": pa.array(cells, kind)}
    else:
        columns = {
            "indices": pa.array([[j for j, _ in row] for row in rows]),
            "values": pa.array([[v for _, v in row] for row in rows]),
        }
    pq.write_table(pa.table({**columns, **target}), "sparse.parquet")
    err = told(fit(dpfit, "sparse.parquet", "--label", "z"))
    assert "label column is not among the columns" in err
    model = fitted(dpfit, "sparse.parquet", "--label", "y", "--labels", "0,1")
    assert dpfit.json(model)["features"]["label"] == "y"
    expected = dpfit.here("predict", model, "sparse.parquet")
    assert expected.status == 0, expected.err
    pq.write_table(pa.table(columns), "bare.parquet")
    assert dpfit.here("predict", model, "bare.parquet").out == expected.out
    assert dpfit.here("predict", model, "sparse.parquet", "--evaluate").status == 0
    pq.write_table(pa.table({**columns, "id": target["y"]}), "other.parquet")
    err = told(dpfit.here("predict", model, "other.parquet"))
    assert "the file also has column 'id'" in err
    assert "name the target with --label" in err
    pq.write_table(pa.table({"a": [1.0], "b": [1.0]}), "named.parquet")
    assert "columns have names" in told(dpfit.here("predict", model, "named.parquet"))
    Path("same.svm").write_text("1 0:1\n", encoding="utf-8")
    assert dpfit.here("predict", model, "same.svm").status == 0


def test_no_threads(dpfit: Any) -> None:
    """0 is no way to say all."""
    model = dpfit.fit()
    assert "--threads" in told(fit(dpfit, "tiny.svm", "--threads", "0"), 2)
    assert "--threads" in told(dpfit.here("predict", model, "tiny.svm", "--threads", "0"), 2)


def test_label_of_a_libsvm_file(dpfit: Any) -> None:
    """The option means a column of a table."""
    model = dpfit.fit()
    assert "--label" in told(fit(dpfit, "tiny.svm", "--label", "y"), 2)
    assert "--label" in told(dpfit.here("predict", model, "tiny.svm", "--label", "y"), 2)
    Path("s.toml").write_text(SCHEMA, encoding="utf-8")
    assert "LIBSVM" in told(fit(dpfit, "tiny.svm", "--schema", "s.toml"), 2)


def test_the_same_file_twice(dpfit: Any) -> None:
    """Its records would count twice."""
    model = dpfit.fit()
    os.link("tiny.svm", "link.svm")
    os.makedirs("parts")
    os.link("tiny.svm", "parts/a.svm")
    for second in ("tiny.svm", "./tiny.svm", "link.svm", "parts"):
        assert "is named twice" in told(fit(dpfit, "tiny.svm", second), 2)
        assert "is named twice" in told(dpfit.here("predict", model, "tiny.svm", second), 2)


def test_compression_under_a_plain_name(dpfit: Any) -> None:
    """The name says how to read a file; standard input has none."""
    model = dpfit.fit()
    data = gzip.compress(dpfit.read("tiny.svm"))
    Path("fake.svm").write_bytes(data)
    for outcome in (fit(dpfit, "fake.svm"), dpfit.here("predict", model, "fake.svm")):
        err = told(outcome)
        assert "fake.svm: the content is gzip data" in err
        assert "hint: rename it to end in .gz" in err
    piped = dpfit("predict", model, "-", "--format", "libsvm", input=data)
    assert piped.status == 0


@pytest.mark.parametrize("how", [("--duplicates", "sum"), ("--hash-bits", "1")])
def test_sums_that_overflow(dpfit: Any, how: tuple[str, ...]) -> None:
    """A merged value is finite or an error with its line."""
    Path("big.svm").write_text("1 1:1\n-1 1:1e308 2:1e308 3:1e308\n", encoding="utf-8")
    if "--duplicates" in how:
        Path("big.svm").write_text("1 1:1\n-1 1:1e308 1:1e308\n", encoding="utf-8")
    assert "big.svm:2: the sum of" in told(fit(dpfit, "big.svm", *how))


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--cap-eps", "1"), "--cap-eps needs --cap-delta"),
        (("--cap-delta", "1e-6"), "--cap-delta needs --cap-eps"),
        (("--cap-eps", "0", "--cap-delta", "1e-6"), "--cap-eps must be"),
        (("--cap-eps", "1e9", "--cap-delta", "1e-6"), "--cap-eps 1000000000.0 is above"),
        (("--cap-eps", "1e-12", "--cap-delta", "1e-6"), "--cap-eps 1e-12 is below"),
        (("--cap-eps", "nan", "--cap-delta", "1e-6"), "--cap-eps must be"),
        (("--cap-eps", "1", "--cap-delta", "1"), "--cap-delta must lie"),
        (("--cap-eps", "1", "--cap-delta", "1e-310"), "--cap-delta must be at least"),
    ],
)
def test_caps_name_their_own_options(dpfit: Any, args: tuple[str, ...], said: str) -> None:
    """Not those of a run's budget."""
    err = told(dpfit.here("budget", "new.ledger.json", *args), 2)
    assert said in err
    assert "--eps" not in err
    assert "--delta" not in err
    assert "--non-private" not in err
    assert not Path("new.ledger.json").exists()
