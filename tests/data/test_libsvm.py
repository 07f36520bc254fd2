"""LIBSVM rules, one complaint of the neighbours' users each."""

from __future__ import annotations

import numpy as np
import pytest

from dpfit.data.schema import ColumnRole
from dpfit.errors import DataError, UsageError


def fault(read, text, **options) -> DataError:
    with pytest.raises(DataError) as caught:
        read(text, **options)
    return caught.value


def test_raw_indices_come_back_unless_the_base_is_applied_by_the_caller(read) -> None:
    """Rule 1, 2: the reader never guesses the base; index 0 and 1 stay what they are."""
    assert read("1 0:5 1:6\n").matrix.toarray().tolist() == [[5.0, 6.0]]
    assert read("1 1:6\n").matrix.toarray().tolist() == [[0.0, 6.0]]


def test_index_zero_has_its_own_message(read) -> None:
    """Rule 1, 3: one message per cause, with the line and the option."""
    error = fault(read, "1 1:2\n1 0:2\n", index_base=1)
    assert error.line == 2
    assert "count from 1" in error.message
    assert "--index-base" in (error.hint or "")


@pytest.mark.parametrize(("base", "beyond"), [(0, 3), (1, 4), (None, 4)])
def test_an_index_beyond_the_width_is_refused_or_dropped(read, base, beyond) -> None:
    """Rule 4: narrower is fine, wider is an error unless it is to be ignored."""
    text = f"1 {beyond - 1}:1 {beyond}:1\n"
    error = fault(read, text, n_features=3, index_base=base)
    assert error.line == 1
    assert error.hint == "correct --n-features or the schema, or see --index-base"
    error = fault(read, text, n_features=3, index_base=base, predicting=True)
    assert error.message == "a column index is beyond the model's features"
    assert error.hint == "--ignore-new-features"
    rows = read(text, n_features=3, index_base=base, ignore_new_features=True)
    assert rows.matrix.indices.tolist() == [beyond - 1]
    assert read("1 1:1\n", n_features=10**6).matrix.nnz == 1


def test_query_numbers_are_ignored(read) -> None:
    """Rule 6: qid is accepted up to 64 bits."""
    rows = read("1 qid:18446744073709551615 2:3\n")
    assert rows.matrix.toarray().tolist() == [[0, 0, 3]]
    assert "qid" in fault(read, "1 qid:18446744073709551616 2:3\n").message


def test_comments_and_blank_lines_are_skipped(read) -> None:
    """Rule 7: comments, blank and white-space-only lines hold no record; lines still count."""
    rows = read("# head\n\n1 2:3 # note\n \t\n-1 1:1#x\n")
    assert rows.target.tolist() == [1, -1]
    assert fault(read, "# head\n\n1 2:3 # note\n \nx 1:1\n").line == 5


@pytest.mark.parametrize("text", ["1,3 5:1\n", "1, 3 5:1\n"])
def test_multilabel_lines_are_a_named_error(read, text) -> None:
    """Rule 8: several labels are told from a bad number."""
    assert "several labels" in fault(read, text).message


def test_unsorted_indices_are_sorted_silently(read) -> None:
    """Rule 9: order within a line does not matter."""
    rows = read("1 5:5 2:2 9:9\n")
    assert rows.matrix.indices.tolist() == [2, 5, 9]
    assert rows.matrix.data.tolist() == [2, 5, 9]


@pytest.mark.parametrize(("how", "value"), [("sum", 5.0), ("last", 3.0)])
def test_duplicates_are_refused_or_merged(read, how, value) -> None:
    """Rule 9: a repeated index is an error with its line unless a merge was chosen."""
    text = "1 1:1\n1 4:2 5:1 4:3\n"
    error = fault(read, text)
    assert error.line == 2
    assert "--duplicates" in (error.hint or "")
    assert read(text, duplicates=how).matrix[1, 4] == value


def test_large_indices_need_hash_bits(read) -> None:
    """Rule 10: beyond 31 bits the message names --hash-bits, with which they are folded."""
    text = "1 2147483647:1 9223372036854775807:2\n"
    assert "--hash-bits" in (fault(read, text).hint or "")
    rows = read(text, hash_bits=12)
    assert rows.matrix.nnz == 2
    assert rows.matrix.indices.max() < 2**12
    assert "--hash-bits" in (fault(read, "1 9223372036854775808:1\n", hash_bits=12).hint or "")
    assert read("1 2147483646:1\n").matrix.indices.tolist() == [2147483646]


def test_folding_is_the_published_one(read) -> None:
    """Index 1 goes to the low bits of splitmix64's first output for seed 1, for ever."""
    rows = read("1 1:1\n", hash_bits=30)
    z = (1 + 0x9E3779B97F4A7C15) % 2**64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    assert rows.matrix.indices.tolist() == [(z ^ (z >> 31)) % 2**30]


def test_colliding_columns_add_up(read) -> None:
    """Entries of one row that share a hash are summed."""
    rows = read("1 1:1 2:2 3:4 4:8 5:16\n", hash_bits=1)
    assert rows.matrix.sum() == 31
    assert rows.matrix.nnz <= 2


def test_a_missing_label_is_an_error_in_fit_only(read) -> None:
    """Rule 12: unlabelled rows never get a label; a mixture is an error with its line."""
    error = fault(read, "1 1:1\n2:2\n")
    assert (error.line, error.message) == (2, "the label is missing")
    rows = read("1:1\n\n2:2 # x\n", target_required=False)
    assert rows.target is None
    assert rows.matrix.shape[0] == 2
    assert fault(read, "1:1\n1 2:2\n", target_required=False).line == 2
    assert fault(read, "1 1:1\n2:2\n", target_required=False).line == 2


def test_carriage_returns_and_bom_are_stripped(read) -> None:
    """Rules 13, 19: CRLF gives no phantom row; a byte order mark only counts at the start."""
    rows = read(b"\xef\xbb\xbf1 1:2\r\n\r\n-1 2:3\r\n")
    assert rows.target.tolist() == [1, -1]
    assert fault(read, b"1 1:2\n\xef\xbb\xbf1 1:2\n").line == 2
    assert "carriage return" in fault(read, b"1 1:2\r1 1:2\n").message


def test_nul_bytes_are_an_error_with_the_line(read) -> None:
    """Rule 20."""
    error = fault(read, b"1 1:2\n1 1:2 # \0\n")
    assert (error.line, error.message) == (2, "the line holds a NUL byte")


@pytest.mark.parametrize(
    ("token", "cause"),
    [
        ("1:nan", "not finite"),
        ("1:-inf", "not finite"),
        ("1:1e999", "too large"),
        ("1:1_0", "underscore"),
        ("1:0x1p3", "hexadecimal"),
        ("1:", "empty"),
        ("1:abc", "not a number"),
        ("1:2:3", "not a number"),
        ("7", "not INDEX:VALUE"),
        (":7", "not a whole number"),
        ("-1:7", "negative"),
        ("1.5:7", "not a whole number"),
        ("0x10:7", "not a whole number"),
        ("٣:7", "not a whole number"),
    ],
)
def test_each_cause_has_its_message(read, token, cause) -> None:
    """Rule 18 and the reader facts: nothing that is not a plain number is taken for one."""
    error = fault(read, f"1 1:2\n\n1 {token}\n")
    assert error.line == 3
    assert cause in error.message


@pytest.mark.parametrize("predicting", [False, True])
def test_a_label_outside_the_set_has_its_line(read, predicting) -> None:
    """The declared labels, or the model's classes, are held to where the line is known."""
    text = "+1 1:1\n\n-1 2:1\n0 1:1\n"
    assert read(text, labels=(-1.0, 0.0, 1.0)).target.tolist() == [1, -1, 0]
    error = fault(read, text, labels=(-1.0, 1.0), predicting=predicting)
    assert error.line == 4
    assert error.message.startswith("the label is not one of")
    assert ("--labels" in (error.hint or "")) != predicting
    assert read("1:1\n", labels=(-1.0, 1.0), target_required=False).target is None


@pytest.mark.parametrize("how", ["sum", "last"])
@pytest.mark.parametrize("hash_bits", [None, 1])
def test_no_merging_makes_an_infinity(read, how, hash_bits) -> None:
    """Sums of repeated or colliding columns that overflow are errors with their line."""
    rest = " ".join(f"{i}:1e308" for i in range(2, 9))
    text = f"1 1:1\n1 1:1e308 1:1e308 {rest}\n"
    if how == "last" and hash_bits is None:
        assert np.isfinite(read(text, duplicates=how).matrix.data).all()
        return
    error = fault(read, text, duplicates=how, hash_bits=hash_bits)
    assert error.line == 2
    assert "too large for a float" in error.message
    assert fault(read, text + "x\n", duplicates=how, hash_bits=hash_bits).line == 2


def test_what_speaks_of_tables_is_refused(read) -> None:
    """--label, columns, texts for empty and labels that are texts mean nothing here."""
    for options in (
        {"label": "y"},
        {"columns": {"a": ColumnRole("ignore")}},
        {"na": ("?",)},
        {"labels": ("no", "yes")},
    ):
        with pytest.raises(UsageError):
            read("1 1:1\n", **options)
    stored = {"y": ColumnRole("label")}
    assert read("1 1:1\n", columns=stored, predicting=True).matrix.nnz == 1


@pytest.mark.parametrize("label", ["nan", "inf", "1_0", "yes", "0x1"])
def test_labels_are_plain_numbers(read, label) -> None:
    """A label obeys the same grammar as a value."""
    assert fault(read, f"{label} 1:2\n").message.startswith("the label ")


def test_parquet_read_as_text_names_the_option(read) -> None:
    """Content that contradicts the format is an error that names --format."""
    assert "--format" in (fault(read, b"PAR1\x15\x04PAR1").hint or "")


def test_a_label_alone_is_a_record(read) -> None:
    """A record without entries is an all-zero row."""
    rows = read("1\n-1 3:1\n0\n")
    assert rows.matrix.shape[0] == 3
    assert np.diff(rows.matrix.indptr).tolist() == [0, 1, 0]
