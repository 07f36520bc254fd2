"""CSV and TSV rules, one complaint of the neighbours' users each."""

from __future__ import annotations

import pytest

from dpfit.data.features import FeatureMap
from dpfit.data.schema import ColumnRole
from dpfit.errors import DataError, UsageError

JOB = {"job": ColumnRole("categorical", ("clerk", "farmer"))}


def fault(read, text, name="x.csv", **options) -> DataError:
    with pytest.raises(DataError) as caught:
        read(text, name, **{"label": "y", **options})
    return caught.value


def test_numbers_and_levels_become_columns(read) -> None:
    """Columns keep the header's order; a categorical one gets a column per level."""
    rows = read("y,a,job,b\n1,2,farmer,3\n0,0,clerk,4\n", "x.csv", label="y", columns=JOB)
    assert rows.matrix.toarray().tolist() == [[2, 0, 1, 3], [0, 1, 0, 4]]
    assert rows.matrix.nnz == 5
    assert rows.target.tolist() == [1.0, 0.0]


def test_a_colon_in_a_cell_changes_nothing(read) -> None:
    """Rule 14: no sniffing; but a first record of nothing but pairs names --format."""
    columns = {"t": ColumnRole("ignore")}
    error = fault(read, "+1 3:0.5 7:1\n-1 2:1\n")
    assert "--format" in (error.hint or "")
    rows = read("y,t,a\n1,1:2,3\n", "x.csv", label="y", columns=columns)
    assert rows.matrix.toarray().tolist() == [[3.0]]


def test_the_label_must_be_named(read) -> None:
    """Rule 15: no column is silently the label."""
    with pytest.raises(UsageError) as caught:
        read("y,a\n1,2\n", "x.csv")
    assert "--label" in (caught.value.hint or "")
    assert "label" in fault(read, "z,a\n1,2\n").message


def test_without_header_columns_are_numbered(read) -> None:
    """Rule 17: --no-header names columns c1, c2, ...; the label goes by number or name."""
    for label in ("3", "c3"):
        rows = read("1,2,9\n3,4,8\n", "x.csv", header=False, label=label)
        assert rows.matrix.toarray().tolist() == [[1, 2], [3, 4]]
        assert rows.target.tolist() == [9, 8]


def test_a_header_of_numbers_is_a_missing_header(read) -> None:
    """Rule 17: a first record of numbers is not taken for names."""
    error = fault(read, "1,2,9\n3,4,8\n", label="9")
    assert "--no-header" in (error.hint or "")


@pytest.mark.parametrize("number", ["77", "-1.5", "1e999", "nan", "0x1F", "1_0", "+.5", '"7,5"'])
@pytest.mark.parametrize("predicting", [False, True])
def test_a_record_is_not_taken_for_names(read, number, predicting) -> None:
    """Any number among the names says that the first record is data, which stays unsaid."""
    error = fault(read, f"\nMeier,{number},y,1\n", predicting=predicting)
    assert str(error).endswith(
        "x.csv:2: the names of columns 2 and 4 are numbers: is this a record?"
    )
    assert ("--schema" in (error.hint or "")) != predicting
    assert "--no-header" in (error.hint or "")
    error = fault(read, f"y,{number},a\n1,2,3\n")
    assert "the name of column 2 is a number" in error.message
    many = fault(read, "y," + ",".join(map(str, range(9))) + "\n")
    assert "columns 2, 3, 4, 5, 6 and 4 more are" in many.message


def test_declared_names_may_be_numbers(read) -> None:
    """A name that stands in the schema or in the model is public already."""
    columns = {"77": ColumnRole(), "1": ColumnRole("label")}
    rows = read("a,77,1\n2,3,4\n", "x.csv", columns=columns)
    assert rows.matrix.toarray().tolist() == [[2, 3]]
    error = fault(read, "a,77,1,78\n2,3,4,5\n", columns=columns, label=None)
    assert "the name of column 4" in error.message
    model = FeatureMap.build(["77", "1"], {}, "1", None)
    options = {"feature_map": model, "predicting": True, "target_required": False}
    assert read("1,77\n2,3\n", "x.csv", **options).matrix.toarray().tolist() == [[3]]


def test_the_label_column_that_is_not_there(read) -> None:
    """The hint follows from what the header looks like."""
    for name, text in (("comma", "y;a\n1;2\n"), ("comma", "y\ta\n1\t2\n")):
        assert fault(read, text).hint == f"the header has no {name}: see --delimiter"
    assert fault(read, "y,a\n1,2\n", "x.tsv").hint == "the header has no tab: see --delimiter"
    assert "--no-header" in (fault(read, "a,b\n1,2\n").hint or "")
    hint = fault(read, "a,b\n1,2\n", header=False).hint or ""
    assert "--no-header" not in hint
    assert "number" in hint


def test_none_of_the_models_columns(read) -> None:
    """The hint follows from what the header looks like, and no name found is said."""
    model = FeatureMap.build(["a", "b"], {}, None, None)
    options = {"feature_map": model, "predicting": True, "target_required": False, "label": None}
    for text, header, wanted in (
        ("Jane,Doe\n", True, "see --no-header"),
        ("a;b\n", True, "the header has no comma: see --delimiter"),
        ("a,b\n", False, "the columns have names: leave --no-header out"),
    ):
        error = fault(read, text, header=header, **options)
        assert (error.message, error.hint) == ("none of the expected columns is there", wanted)
    error = fault(read, "a,Jane,Doe\n", **options)
    assert error.message == "missing columns: 'b'; 2 extra columns"


@pytest.mark.parametrize("labels", [("no", "yes"), (0.0, 1.0)])
@pytest.mark.parametrize("predicting", [False, True])
def test_a_label_outside_the_set_has_its_line(read, labels, predicting) -> None:
    """Case and blanks inside count; the line is that of the record."""
    text = isinstance(labels[0], str)
    good, bad = (("no", "Yes"), ("no", "y es")) if text else (("1", "2"), ("0", "-1"))
    rows = read(f"y,a\n{labels[0]},1\n {labels[1]} ,2\n", "x.csv", label="y", labels=labels)
    assert rows.target.tolist() == list(labels)
    for first, second in (good, bad):
        error = fault(
            read, f'y,a\n{first},"2"\n\n{second},3\n', labels=labels, predicting=predicting
        )
        assert error.line == 4
        assert "the label is not one of" in error.message
        assert ("--labels" in (error.hint or "")) != predicting
    if not text:
        assert fault(read, "y,a\n1,2\nno,3\n", labels=labels).line == 3


def test_a_range_brings_numbers_to_the_unit_interval(read) -> None:
    """Clipped, then mapped; the low end is no entry and 0 does not stay 0."""
    columns = {"a": ColumnRole(range=(-10.0, 30.0)), "b": ColumnRole(range=(0.0, 5e-324))}
    text = "y,a,b,c\n1,-11,0,7\n1,0,1,8\n1,40,0,9\n1,,0,9\n"
    rows = read(text, "x.csv", label="y", columns=columns, missing="zero")
    assert rows.matrix.toarray().tolist() == [[0, 0, 7], [0.25, 1, 8], [1, 0, 9], [0.25, 0, 9]]
    assert fault(read, text, columns=columns).line == 5
    assert fault(read, "y,a,b\n1,inf,0\n", columns=columns).line == 2


@pytest.mark.parametrize("quote", ["", '"'])
def test_texts_that_count_as_empty(read, quote) -> None:
    """As an empty cell in a column of any role, also with blanks around; never a label."""
    columns = {**JOB, "h": ColumnRole("hashed")}
    options = {"columns": columns, "hash_bits": 2, "na": ("?", "-9")}
    for at, text in ((1, "?"), (2, "?"), (3, "?"), (1, "-9"), (3, " -9 "), (1, " ? ")):
        cells = ["1", "2", "clerk", "x"]
        cells[at] = quote + text + quote
        content = "y,a,job,h\n" + ",".join(cells) + "\n"
        error = fault(read, content, **options)
        assert error.message.endswith("is empty")
        assert error.hint == "see --missing zero"
        assert read(content, "x.csv", label="y", missing="zero", **options).matrix.nnz == 2
    assert read("y,a,job,h\n1,-9.0,clerk,x\n", "x.csv", label="y", **options).matrix.nnz == 3
    assert "the label is empty" in fault(read, "y,a,job,h\n-9,2,clerk,x\n", **options).message


def test_other_levels_may_be_no_feature(read) -> None:
    """``other`` lets a level pass that is not declared; an empty cell stays empty."""
    columns = {"job": ColumnRole("categorical", ("clerk", "farmer"), other=True)}
    rows = read("y,job\n1,farmer\n1,spy\n", "x.csv", label="y", columns=columns)
    assert rows.matrix.toarray().tolist() == [[0, 1], [0, 0]]
    assert "is empty" in fault(read, "y,job\n1,\n", columns=columns).message


def test_text_in_a_numeric_column_is_an_error(read) -> None:
    """Rule 17: nothing becomes zero because it is no number."""
    error = fault(read, "y,a\n1,2\n1,two\n")
    assert error.line == 3
    assert error.message == "column 'a' (field 2) is not a number"
    assert (error.hint or "").startswith('in a --schema file: [columns.a] role = "ignore"')
    assert "schema" not in (fault(read, "y,a\n1,two\n", predicting=True).hint or "")
    error = fault(read, "1,2\n1,two\n", label="1", header=False)
    assert error.message == "field 2 is not a number"
    assert "[columns.c2]" in (error.hint or "")
    error = fault(read, 'y,"a b ""c"""\n1,two\n')
    assert '[columns."a b \\"c\\""]' in (error.hint or "")
    for cell in ("inf", "1e400", "0x1", "1_0"):
        assert fault(read, f"y,a\n1,{cell}\n").hint is None


def test_a_tsv_is_not_one_column(read) -> None:
    """Rules 17, 21: tab for .tsv, comma for .csv, or --delimiter; never guessed."""
    assert read("y\ta\n1\t2\n", "x.tsv", label="y").matrix.toarray().tolist() == [[2]]
    assert read("y;a\n1;2\n", "x.csv", label="y", delimiter=";").matrix.toarray().tolist() == [[2]]
    assert "label" in fault(read, "y\ta\n1\t2\n").message


@pytest.mark.parametrize("delimiter", ["", ",,", "1", '"', "\n", ".", "é"])
def test_a_delimiter_must_be_able_to_delimit(read, delimiter) -> None:
    """One character that no number and no quote uses."""
    with pytest.raises(UsageError, match="--delimiter"):
        read("y,a\n1,2\n", "x.csv", label="y", delimiter=delimiter)


@pytest.mark.parametrize("cell", ["", " ", "nan", '""'])
def test_missing_cells_are_errors_or_zero(read, cell) -> None:
    """Rule 18: empty and NaN are errors by default, 0 on request."""
    text = f"y,a,b\n1,2,3\n1,{cell},5\n"
    error = fault(read, text)
    assert error.line == 3
    assert "--missing" in (error.hint or "")
    assert read(text, "x.csv", label="y", missing="zero").matrix[1].toarray().tolist() == [[0, 5]]


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e999", "NA", "0x1", "1_0"])
@pytest.mark.parametrize("missing", ["error", "zero"])
def test_other_texts_are_never_zero(read, cell, missing) -> None:
    """Rule 18: infinities and words are errors in any case."""
    assert fault(read, f"y,a\n1,{cell}\n", missing=missing).line == 2


def test_an_empty_label_is_always_an_error(read) -> None:
    """Rule 12: no label is made up."""
    assert "label" in fault(read, "y,a\n1,2\n,3\n", missing="zero").message


def test_byte_order_mark_and_crlf(read) -> None:
    """Rules 13, 19: neither the first nor the last name is spoiled; blank lines are no records."""
    rows = read(b"\xef\xbb\xbfy,a\r\n1,2\r\n\r\n0,3", "x.csv", label="y", columns={})
    assert rows.matrix.toarray().tolist() == [[2], [3]]
    assert read("y,a\r\n1,2\r\n", "x.csv", label="a").target.tolist() == [2]


@pytest.mark.parametrize(
    ("record", "cause"),
    [
        ("1,2", "2 fields where 3"),
        ("1,2,3,4", "4 fields where 3"),
        ("1,2\0,3", "NUL"),
        ('1,"2,3', "never ends"),
        ('1,2"x",3', "quote stands inside"),
        ('1,"2"x,3', "closing quote"),
        ("1,2\r,3", "carriage return"),
    ],
)
def test_broken_records_are_errors_with_the_line(read, record, cause) -> None:
    """Rule 20."""
    error = fault(read, f"y,a,b\n1,2,3\n{record}\n1,2,3\n")
    assert error.line == 3
    assert cause in error.message


def test_lines_inside_quotes_count(read) -> None:
    """The line of a fault is the physical one on which its record starts."""
    columns = {"t": ColumnRole("ignore")}
    error = fault(read, 'y,t,a\n1,"x\ny\n",2\n1,z,bad\n', columns=columns)
    assert error.line == 5


def test_duplicate_and_empty_names_are_errors(read) -> None:
    """The reader facts: names must tell columns apart."""
    assert "same name" in fault(read, "y,a,a\n1,2,3\n").message
    assert "no name" in fault(read, "y,a,\n1,2,3\n").message


def test_unknown_levels_are_errors_with_the_line(read) -> None:
    """A cell of a categorical column is one of the declared levels."""
    error = fault(read, "y,job\n1,clerk\n1,secretspy\n", columns=JOB)
    assert error.line == 3
    assert "secretspy" not in str(error)
    assert error.message == "column 'job' (field 2) has a level that is not declared"
    assert (error.hint or "").startswith("add it to the levels of column job")
    hint = fault(read, "y,job\n1,spy\n", columns=JOB, predicting=True).hint or ""
    assert "add it" not in hint


def test_a_categorical_column_needs_levels_or_hashing(read) -> None:
    """The levels are public facts: they are declared, or the column is hashed."""
    undeclared = {"job": ColumnRole("categorical")}
    with pytest.raises(UsageError) as caught:
        read("y,job\n1,clerk\n", "x.csv", label="y", columns=undeclared)
    assert "--hash-bits" in (caught.value.hint or "")
    rows = read("y,job\n1,clerk\n0,clerk\n", "x.csv", label="y", columns=undeclared, hash_bits=4)
    assert rows.matrix.nnz == 2
    assert len(set(rows.matrix.indices.tolist())) == 1


@pytest.mark.parametrize("textual", [None, True, False])
def test_labels_are_text_or_numbers(read, textual) -> None:
    """Declared, or decided by the first records; numbers may be declared to be text."""
    rows = read("y,a\n1,2\n0,3\n", "x.csv", label="y", textual_labels=textual)
    assert rows.target.tolist() == (["1", "0"] if textual else [1.0, 0.0])


def test_textual_labels(read) -> None:
    """A first block with a word makes all labels text; declared numbers refuse it."""
    rows = read("y,a\n>50K,2\n <=50K,3\n", "x.csv", label="y")
    assert rows.target.tolist() == [">50K", "<=50K"]
    assert fault(read, "y,a\n1,2\nno,3\n", textual_labels=False).line == 3


def test_a_later_block_cannot_change_the_kind_of_labels(read) -> None:
    """Numeric by the first block: a word further on is an error with its line."""
    n = 400_000
    text = "y,a\n" + "1,2\n" * n + "no,3\n"
    assert fault(read, text).line == n + 2


def test_encodings(read) -> None:
    """UTF-8 unless declared; a wrong byte is an error that names --encoding."""
    columns = {"t": ColumnRole("categorical", ("é", "a"))}
    text = "y,t\n1,a\n1,é\n"
    for encoding in ("utf-8", "latin-1", "utf-16", "cp1252"):
        rows = read(text.encode(encoding), "x.csv", label="y", columns=columns, encoding=encoding)
        assert rows.matrix.toarray().tolist() == [[0, 1], [1, 0]]
    error = fault(read, text.encode("latin-1"), columns=columns)
    assert (error.line, error.hint) == (3, "name its encoding: --encoding")
    error = fault(read, text.encode("latin-1"), columns=columns, encoding="utf-8-sig")
    assert error.line == 3
    assert fault(read, text.encode("utf-8"), columns=columns, encoding="utf-16").line is not None
    with pytest.raises(UsageError, match="--encoding"):
        read(text, "x.csv", label="y", encoding="nonsense")


def test_prediction_may_lack_the_label(read) -> None:
    """A label column that is not needed is not read, whatever it holds."""
    options = {"label": "y", "target_required": False}
    assert read("a,b\n1,2\n", "x.csv", **options).target is None
    rows = read("a,y\n1,\n3,x\n", "x.csv", labels=(0.0, 1.0), **options)
    assert rows.target is None
    assert rows.matrix.toarray().tolist() == [[1], [3]]


def test_one_column_is_enough(read) -> None:
    """A single feature column; blank lines are still no records."""
    rows = read("a\n1\n\n2\n", "x.csv", target_required=False)
    assert rows.matrix.toarray().tolist() == [[1], [2]]
