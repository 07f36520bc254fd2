"""Rows that are kept on disk: used again only if they are exactly what would be read."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpfit.data.options import ReadOptions
from dpfit.data.reader import Reader
from dpfit.design.grid import Grid, RowMap
from dpfit.design.storage import Storage
from dpfit.privacy.collected_records import CollectedRecords
from dpfit.privacy.kept_records import key_of

KEPT = Path("kept/dpfit-rows")
CACHE = ("--cache", "kept", "--keep-cache")


@pytest.fixture(autouse=True)
def kept(dpfit: Any) -> None:
    """A folder for the cache and the data."""
    Path("kept").mkdir()
    dpfit.svm()
    rows = "".join(
        f"{'yes' if i % 3 else 'né'},{i % 7},{i % 5 - 2},{1 + i % 2},{i % 3 / 10}\n"
        for i in range(60)
    )
    Path("table.csv").write_text("y,a,b,w,o\n" + rows, encoding="utf-8")
    owned = "".join(f"{i % 2},{i % 7},{'é' if i % 9 else 'p'}{i % 11}\n" for i in range(60))
    Path("owned.csv").write_text("y,a,who\n" + owned, encoding="utf-8")


def fit(dpfit: Any, *args: str, name: str = "tiny.svm") -> bytes:
    """The model of a run that must succeed."""
    command = ["fit", name, *dpfit.budget, "--seed", "1", "-q", "--force", "-o", "m.json"]
    if name == "tiny.svm":
        command += dpfit.facts
    elif name == "owned.csv":
        command += ["--label", "y", "--unit", "who", "--max-rows-per-unit", "3"]
    else:
        command += ["--label", "y", "--weight", "w", "--offset", "o", "--max-weight", "2"]
    outcome = dpfit.here(*command, *args)
    assert outcome.status == 0, outcome.err
    return dpfit.read("m.json")


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(self: Reader) -> None:
        raise AssertionError("the input was read")

    monkeypatch.setattr(Reader, "__iter__", read)


@pytest.mark.parametrize("name", ["tiny.svm", "table.csv", "owned.csv"])
def test_a_second_fit_reads_nothing(dpfit: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The same model as without a cache, whatever is kept beside the rows."""
    plain = fit(dpfit, name=name)
    assert fit(dpfit, *CACHE, name=name) == plain
    forbid_reading(monkeypatch)
    assert fit(dpfit, *CACHE, name=name) == plain
    assert fit(dpfit, *CACHE, "--threads", "1", "--memory", "2GiB", name=name) == plain


def test_only_the_owner_can_read_them(dpfit: Any) -> None:
    """Whatever the umask says, and nothing else is left."""
    before = os.umask(0)
    try:
        fit(dpfit, *CACHE)
    finally:
        os.umask(before)
    assert stat.S_IMODE(KEPT.stat().st_mode) == 0o700
    [file] = KEPT.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(Path("kept").iterdir()) == [KEPT]


def test_nothing_is_kept_unasked(dpfit: Any) -> None:
    fit(dpfit, "--cache", "kept")
    assert not list(Path("kept").iterdir())


def test_a_changed_file_is_read_again(dpfit: Any) -> None:
    """Also one of the same length and the old time."""
    fit(dpfit, *CACHE)
    file = Path("tiny.svm")
    times = file.stat()
    file.write_text(file.read_text().replace("10:0.5", "10:0.7"))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert file.stat().st_size == times.st_size
    model = fit(dpfit, *CACHE)
    assert model == fit(dpfit)


@pytest.mark.parametrize(
    "args", [("--hash-bits", "3"), ("--row-norm", "2"), ("--duplicates", "sum")]
)
def test_other_options_are_other_rows(dpfit: Any, args: tuple[str, ...]) -> None:
    """Of reading and of the record map."""
    fit(dpfit, *CACHE)
    facts = ("--n-features", "8", "--index-base", "0") if "--hash-bits" in args else ()
    assert fit(dpfit, *CACHE, *args, *facts) == fit(dpfit, *args, *facts)
    assert len(list(KEPT.iterdir())) == 2


@pytest.mark.parametrize("other", ["link.tsv", "link.csv"])
def test_each_name_has_its_own_rows(other: str) -> None:
    """Whichever file it is: the name may tell the format."""
    os.symlink("table.csv", other)
    grid, storage = Grid(1.0, RowMap.CLIP, 20, True), Storage()
    options = ReadOptions(label="y")
    names = "table.csv", other
    assert len({key_of(Reader([name], options), grid, storage) for name in names}) == 2


DAMAGE: dict[str, Callable[[bytearray], bytes]] = {
    "empty": lambda data: b"",
    "cut by half": lambda data: bytes(data[: len(data) // 2]),
    "cut by one": lambda data: bytes(data[:-1]),
    "longer": lambda data: bytes(data) + b"\0",
    "an entry": lambda data: bytes([data[0] ^ 1]) + bytes(data[1:]),
    "its contents": lambda data: bytes(data).replace(b'"beside"', b'"besides'),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_damaged_rows_are_made_again(
    dpfit: Any, monkeypatch: pytest.MonkeyPatch, damage: Callable[[bytearray], bytes]
) -> None:
    """The model is right, and the file whole again."""
    model = fit(dpfit, *CACHE)
    [file] = KEPT.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(bytearray(whole)))
    assert fit(dpfit, *CACHE) == model
    assert file.read_bytes() == whole
    forbid_reading(monkeypatch)
    assert fit(dpfit, *CACHE) == model


def rewritten(file: Path, change: Callable[[bytearray, Any], Any]) -> None:
    """Change bytes and contents of a kept file, and close it by the digest of what it is now."""
    data = file.read_bytes()
    end = len(data) - 40
    start = end - int.from_bytes(data[end:-32], "little")
    body, contents = bytearray(data[:start]), json.loads(data[start:end])
    written = change(body, contents)
    if not isinstance(written, bytes):
        written = json.dumps(contents if written is None else written).encode()
    whole = bytes(body) + written + len(written).to_bytes(8, "little")
    file.write_bytes(whole + hashlib.sha256(whole).digest())


def in_array(name: str, place: int, value: int) -> Callable[[bytearray, Any], None]:
    """A change of one number of the first chunk's."""

    def change(body: bytearray, contents: Any) -> None:
        offset, _, _, n_columns, n_entries = contents["chunks"][0]
        starts = {"columns": offset + 8 * n_entries}
        starts["indptr"] = starts["columns"] + 4 * n_columns
        starts["indices"] = starts["indptr"] + 4 * (n_columns + 1)
        size = {"columns": n_columns, "indptr": n_columns + 1, "indices": n_entries}[name]
        np.frombuffer(body, np.int32, size, starts[name])[place] = value

    return change


def in_place(field: int, value: object) -> Callable[[bytearray, Any], None]:
    """A change of where the first chunk is said to stand."""

    def change(body: bytearray, contents: Any) -> None:
        contents["chunks"][0][field] = value

    return change


def beside(name: str, field: int, value: object) -> Callable[[bytearray, Any], None]:
    """A change of an array that stands beside the rows."""

    def change(body: bytearray, contents: Any) -> None:
        contents["beside"][name][field] = value

    return change


def without(name: str) -> Callable[[bytearray, Any], None]:
    """Something left out of what stands beside the rows."""

    def change(body: bytearray, contents: Any) -> None:
        del contents["beside"][name]

    return change


WRONG: dict[str, Callable[[bytearray, Any], Any]] = {
    "no table": lambda body, contents: {},
    "a list": lambda body, contents: [],
    "no JSON": lambda body, contents: b"{",
    "no text": lambda body, contents: bytes([255]),
    "nested": lambda body, contents: b"[" * 100_000,
    "no rows": lambda body, contents: {**contents, "chunks": []},
    "half a place": lambda body, contents: {**contents, "chunks": [[0, 0]]},
    "row too high": in_array("indices", 3, 10**9),
    "row below": in_array("indices", 3, -1),
    "end too high": in_array("indptr", -1, 10**9),
    "start below": in_array("indptr", 0, -1),
    "ends fall": in_array("indptr", 1, 10**9),
    "columns fall": in_array("columns", 0, 10**9),
    "column below": in_array("columns", 0, -1),
    "column too high": in_array("columns", -1, 2**31 - 1),
    "offset": in_place(0, 1 << 40),
    "offset off the page": in_place(0, 8),
    "offset below": in_place(0, -4096),
    "first": in_place(1, 7),
    "rows": in_place(2, 1 << 60),
    "fewer rows": in_place(2, 1),
    "columns": in_place(3, -1),
    "entries": in_place(4, 1 << 70),
    "a fraction": in_place(4, 1.5),
    "short codes": beside("codes", 2, 5),
    "long codes": beside("codes", 2, 1 << 60),
    "codes elsewhere": beside("codes", 0, 0),
    "other codes": beside("codes", 1, "<f8"),
    "objects": beside("codes", 1, "|O"),
    "no kind": beside("codes", 1, 3),
    "short weights": beside("weight", 2, 5),
    "whole offsets": beside("offset", 1, "<i8"),
    "short texts": beside("texts", 2, 3),
    "no codes": without("codes"),
    "no texts": without("texts"),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG.keys())
def test_wrong_rows_are_made_again(dpfit: Any, change: Callable[[bytearray, Any], Any]) -> None:
    """Even under a right digest: the compiled loops check nothing."""
    model = fit(dpfit, *CACHE, name="table.csv")
    [file] = KEPT.iterdir()
    whole = file.read_bytes()
    rewritten(file, change)
    assert file.read_bytes() != whole
    assert fit(dpfit, *CACHE, name="table.csv") == model
    assert file.read_bytes() == whole


def other_owner(body: bytearray, contents: Any) -> None:
    """The last row belongs to a unit that has no name."""
    start, _, count = contents["beside"]["owner"]
    np.frombuffer(body, np.int64, count, start)[-1] = 1000


def no_owner(body: bytearray, contents: Any) -> None:
    """A unit without a row."""
    start, _, count = contents["beside"]["owner"]
    owner = np.frombuffer(body, np.int64, count, start)
    owner[owner == owner[-1]] = owner[0]


@pytest.mark.parametrize(
    "change",
    [other_owner, no_owner, without("owner"), without("units"), beside("owner", 2, 5)],
    ids=["other owner", "no row", "no owners", "no names", "short owners"],
)
def test_wrong_units_are_made_again(dpfit: Any, change: Callable[[bytearray, Any], Any]) -> None:
    """Each row has a unit, and each unit a row."""
    model = fit(dpfit, *CACHE, name="owned.csv")
    [file] = KEPT.iterdir()
    whole = file.read_bytes()
    rewritten(file, change)
    assert file.read_bytes() != whole
    assert fit(dpfit, *CACHE, name="owned.csv") == model
    assert file.read_bytes() == whole


@pytest.mark.parametrize(
    "change",
    [in_array("columns", -1, 2**31 - 1), in_array("columns", 0, 0), beside("target", 2, 1)],
    ids=["column too high", "column below", "short targets"],
)
def test_wrong_sparse_rows_are_made_again(
    dpfit: Any, change: Callable[[bytearray, Any], Any]
) -> None:
    """Columns from 1 to the declared number, and targets that are numbers."""
    model = fit(dpfit, *CACHE)
    [file] = KEPT.iterdir()
    whole = file.read_bytes()
    rewritten(file, change)
    assert file.read_bytes() != whole
    assert fit(dpfit, *CACHE) == model
    assert file.read_bytes() == whole


def open_to_others(file: Path) -> None:
    file.chmod(0o640)


def open_folder(file: Path) -> None:
    file.parent.chmod(0o755)


def linked(file: Path) -> None:
    file.rename("elsewhere")
    file.symlink_to(Path("elsewhere").absolute())


def linked_folder(file: Path) -> None:
    file.parent.rename("elsewhere")
    file.parent.symlink_to(Path("elsewhere").absolute())


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


def of_another(file: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(file, 12345, -1)


@pytest.mark.parametrize(
    "spoil", [open_to_others, open_folder, linked, linked_folder, a_pipe, of_another]
)
def test_rows_that_others_could_touch_are_refused(
    dpfit: Any, spoil: Callable[[Path], None]
) -> None:
    """5, one line, no charge."""
    fit(dpfit, *CACHE)
    [file] = KEPT.iterdir()
    spoil(file)
    Path("tiny.ledger.json").unlink()
    outcome = dpfit.here("fit", "tiny.svm", *dpfit.budget, *dpfit.facts, *CACHE, "--force")
    assert outcome.status == 5, outcome.err
    assert outcome.err.startswith("dpfit: error: kept/dpfit-rows")
    assert not Path("tiny.ledger.json").exists()


def test_two_runs_may_make_them_at_once(dpfit: Any) -> None:
    """Both succeed, with one model and one file."""
    command = ["fit", "tiny.svm", *dpfit.budget, *dpfit.facts, "--seed", "1", "-q", *CACHE]
    both = [dpfit.start(*command, "-o", f"{i}.json", "--ledger", f"{i}.l.json") for i in (1, 2)]
    for process in both:
        _, err = process.communicate()
        assert process.returncode == 0, err
    assert dpfit.read("1.json") == dpfit.read("2.json")
    assert len(list(KEPT.iterdir())) == 1


def test_nothing_is_kept_of_a_file_with_a_fault(dpfit: Any) -> None:
    """3, and no half file."""
    with open("tiny.svm", "a", encoding="utf-8") as stream:
        stream.write("1 3:x\n")
    outcome = dpfit.here("fit", "tiny.svm", *dpfit.budget, *dpfit.facts, *CACHE)
    assert outcome.status == 3
    assert not list(KEPT.iterdir())


def test_a_file_that_changes_while_it_is_read_is_refused(
    dpfit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is kept or charged: nobody knows which rows they are."""
    collect = CollectedRecords.collect

    def collect_and_touch(self: CollectedRecords, blocks: Any) -> None:
        collect(self, blocks)
        os.utime("tiny.svm", (1, 1))

    monkeypatch.setattr(CollectedRecords, "collect", collect_and_touch)
    outcome = dpfit.here("fit", "tiny.svm", *dpfit.budget, *dpfit.facts, *CACHE)
    assert (outcome.status, "changed while it was read" in outcome.err) == (5, True)
    assert not list(KEPT.iterdir())
    assert not Path("tiny.ledger.json").exists()


def test_a_full_disk_leaves_nothing(dpfit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even at the last bytes: 5, and no half file."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    outcome = dpfit.here("fit", "tiny.svm", *dpfit.budget, *dpfit.facts, *CACHE)
    assert outcome.status == 5
    assert not list(KEPT.iterdir())


@pytest.mark.parametrize("nameless", [True, False])
def test_nothing_has_a_name_until_it_is_whole(
    dpfit: Any, monkeypatch: pytest.MonkeyPatch, nameless: bool
) -> None:
    """So a killed run leaves nothing; where all files have names the model is the same."""
    collect, make, seen = CollectedRecords.collect, os.open, list[int]()

    def collect_and_look(self: CollectedRecords, blocks: Any) -> None:
        collect(self, blocks)
        seen.append(len(list(KEPT.iterdir())))

    def make_named(path: Any, flags: int, *args: Any, **more: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(95, "Operation not supported")
        return make(path, flags, *args, **more)

    model = fit(dpfit)
    try:
        os.close(os.open("kept", os.O_TMPFILE | os.O_RDWR))
    except OSError:
        if nameless:
            pytest.skip("every file has a name here")
    monkeypatch.setattr(CollectedRecords, "collect", collect_and_look)
    if not nameless:
        monkeypatch.setattr(os, "open", make_named)
    assert fit(dpfit, *CACHE) == model
    assert seen == [0 if nameless else 1]
    assert len(list(KEPT.iterdir())) == 1


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("tiny.svm", "--keep-cache"), "--keep-cache needs --cache DIR"),
        (("tiny.svm", "--keep-cache", "--cluster", "local:1"), "--keep-cache needs --cache DIR"),
        (("-", "--format", "libsvm", *CACHE, "-o", "m"), "standard input cannot be known again"),
        ((os.devnull, "--format", "libsvm", *CACHE), "needs a regular file"),
    ],
)
def test_what_cannot_be_kept_is_refused(dpfit: Any, args: tuple[str, ...], told: str) -> None:
    outcome = dpfit.here("fit", *dpfit.budget, *dpfit.facts, "--dataset", "tiny", *args)
    assert (outcome.status, told in outcome.err) == (2, True), outcome.err


def test_what_is_behind_a_url_cannot_be_kept(dpfit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """2, and what else to do."""
    monkeypatch.setattr("dpfit.data.open.remote_entries", lambda operand: None)
    command = ["fit", *dpfit.budget, *dpfit.facts, "--dataset", "tiny", "-o", "m", *CACHE]
    outcome = dpfit.here(*command, "https://example.org/x.svm")
    assert (outcome.status, "behind a URL" in outcome.err) == (2, True), outcome.err


def test_kept_rows_stay_as_they_were_read(dpfit: Any) -> None:
    """A fit on a coarser grid cuts a copy of them."""
    fit(dpfit, *CACHE)
    [file] = KEPT.iterdir()
    before = file.read_bytes()
    coarse = ("--n-rows", "50000000000", "--adjacency", "add-remove")
    assert fit(dpfit, *CACHE, *coarse) == fit(dpfit, *coarse)
    assert [one.read_bytes() for one in KEPT.iterdir()] == [before]
