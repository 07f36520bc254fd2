"""Operands, compression and formats."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from dpfit.data.compression import FREE_EXPANSION, LARGEST_EXPANSION
from dpfit.data.open import expand_inputs, format_of, open_binary
from dpfit.data.reader import Reader, ReadOptions
from dpfit.errors import DataError, StorageError, UsageError, reason_of

TEXT = b"".join(b"%d %d:1\n" % (i % 2, i + 1) for i in range(3000))


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(data)
    return sink.getvalue().to_pybytes()


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd,
}
each_compression = pytest.mark.parametrize("suffix", list(COMPRESS))


def content(path: Path) -> bytes:
    with open_binary(str(path)) as stream:
        parts = []
        while part := stream.read(1000):
            parts.append(part)
    return b"".join(parts)


@each_compression
@pytest.mark.parametrize("members", [1, 2, 5])
def test_compression_is_transparent(tmp_path: Path, suffix: str, members: int) -> None:
    """Rule 28: any number of members."""
    path = tmp_path / f"x.svm{suffix}"
    path.write_bytes(COMPRESS[suffix](TEXT) * members)
    assert content(path) == TEXT * members


@each_compression
def test_compression_is_recognised_on_stdin(read_stdin, suffix: str) -> None:
    """By its magic bytes, since there is no name."""
    assert read_stdin(COMPRESS[suffix](TEXT), format="libsvm").matrix.shape[0] == 3000


@each_compression
@pytest.mark.parametrize("keep", [0.1, 0.5, 0.99])
def test_truncated_data_are_an_error(tmp_path: Path, suffix: str, keep: float) -> None:
    """A cut file never passes for a short one."""
    path = tmp_path / f"x.svm{suffix}"
    data = COMPRESS[suffix](TEXT)
    path.write_bytes(data[: max(8, int(keep * len(data)))])
    with pytest.raises(DataError, match="truncated or damaged"):
        content(path)


@each_compression
def test_damaged_or_followed_by_something_else(tmp_path: Path, suffix: str) -> None:
    """Flipped bytes and trailing rubbish are errors, not fewer rows."""
    path = tmp_path / f"x.svm{suffix}"
    data = COMPRESS[suffix](TEXT)
    middle = len(data) // 2
    damaged = data[:middle] + bytes(b ^ 0xFF for b in data[middle : middle + 8])
    # pyarrow writes zstd frames without a checksum: there a flipped byte cannot be seen.
    cases = [data + b"rubbish"] + [damaged + data[middle + 8 :]] * (suffix != ".zst")
    for bad in cases:
        path.write_bytes(bad)
        with pytest.raises(DataError, match="truncated or damaged"):
            content(path)


@each_compression
def test_a_name_that_lies_is_an_error(tmp_path: Path, suffix: str) -> None:
    """A plain file called .gz is refused."""
    path = tmp_path / f"x.svm{suffix}"
    path.write_bytes(TEXT)
    with pytest.raises(DataError, match="the name says"):
        content(path)


@each_compression
@pytest.mark.parametrize("name", ["x.svm", "x", "x.parquet", "x.gzip"])
def test_a_name_that_hides_compression_is_an_error(tmp_path: Path, suffix: str, name: str) -> None:
    """The format goes by the name: compressed data under a plain one are refused."""
    path = tmp_path / name
    path.write_bytes(COMPRESS[suffix](TEXT))
    with pytest.raises(DataError, match="which the name does not say") as caught:
        content(path)
    assert f"rename it to end in {suffix}" in (caught.value.hint or "")


def test_a_pipe_has_no_name_to_go_by(tmp_path: Path) -> None:
    """Like standard input, it is recognised by its first bytes."""
    path = tmp_path / "pipe.svm"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(gzip.compress(TEXT),))
    writer.start()
    assert content(path) == TEXT
    writer.join()


def test_a_file_is_read_once(tmp_path: Path) -> None:
    """The same file by the same name, a link or its folder is named twice."""
    folder, file = tmp_path / "parts", tmp_path / "parts" / "a.svm"
    folder.mkdir()
    file.write_bytes(TEXT)
    (tmp_path / "hard.svm").hardlink_to(file)
    (tmp_path / "soft.svm").symlink_to(file)
    for second in (file, folder, tmp_path / "hard.svm", tmp_path / "soft.svm"):
        with pytest.raises(UsageError, match="is named twice"):
            expand_inputs([str(file), str(second)])
    (folder / "b.svm").write_bytes(TEXT)
    assert len(expand_inputs([str(folder)])) == 2
    (folder / "c.svm").hardlink_to(file)
    with pytest.raises(UsageError, match=r"c\.svm: is named twice, as .*a\.svm$"):
        expand_inputs([str(folder)])


def test_stdin_is_not_closed() -> None:
    """The caller's standard input stays open."""
    stdin = io.BytesIO(gzip.compress(TEXT))
    rows = list(Reader(["-"], ReadOptions(format="libsvm"), stdin=stdin))
    del rows
    assert not stdin.closed


def test_a_directory_gives_its_parts_by_name(tmp_path: Path) -> None:
    """Names with a leading _ or . are bookkeeping; the order given by the user is kept."""
    for name in ("part-2.svm", "part-1.svm", "_SUCCESS", ".part-0.svm.crc"):
        (tmp_path / name).write_bytes(TEXT)
    other = tmp_path.parent / "a.svm"
    other.write_bytes(TEXT)
    found = expand_inputs([str(tmp_path), str(other)])
    assert [Path(path).name for path in found] == ["part-1.svm", "part-2.svm", "a.svm"]
    assert expand_inputs(["-"]) == ["-"]


def test_impossible_operands(tmp_path: Path) -> None:
    """No operand and '-' beside others are usage; a missing file storage; no parts data."""
    for operands in ([], ["-", "-"], ["-", "x.svm"]):
        with pytest.raises(UsageError):
            expand_inputs(operands)
    for path in (str(tmp_path / "absent.svm"), "a\0b"):
        with pytest.raises(StorageError):
            expand_inputs([path])
    with pytest.raises(DataError, match="no part files"):
        expand_inputs([str(tmp_path)])
    (tmp_path / "inner").mkdir()
    with pytest.raises(DataError, match="holds a directory"):
        expand_inputs([str(tmp_path)])


def test_a_vanished_or_unreadable_file_is_a_storage_error(tmp_path: Path) -> None:
    """The reader maps the system's refusal."""
    for path in (tmp_path / "absent.svm", tmp_path):
        with pytest.raises(StorageError):
            content(path)


@pytest.mark.parametrize(
    ("path", "declared", "expected"),
    [
        ("a.svm", None, "libsvm"),
        ("a.LIBSVM.gz", "auto", "libsvm"),
        ("d.x/a.svmlight.zst", None, "libsvm"),
        ("a.csv", None, "csv"),
        ("a.tsv.bz2", None, "tsv"),
        ("a.pq", None, "parquet"),
        ("a.parquet", None, "parquet"),
        ("a.txt", "libsvm", "libsvm"),
        ("a.csv", "tsv", "tsv"),
        ("-", "csv", "csv"),
    ],
)
def test_the_format_is_declared_or_the_extension(path, declared, expected) -> None:
    """A declaration wins; compression suffixes do not count."""
    assert format_of(path, declared) == expected


@pytest.mark.parametrize(("path", "declared"), [("a.txt", None), ("a", None), ("-", "auto")])
def test_an_unknown_format_names_the_option(path, declared) -> None:
    """Never by sniffing content."""
    with pytest.raises(UsageError) as caught:
        format_of(path, declared)
    assert "--format" in (caught.value.hint or "")
    with pytest.raises(UsageError, match="--format"):
        format_of(path, "arff")


def test_a_reason_is_never_empty() -> None:
    """The system's words in lower case, or the kind of error where there are none."""
    assert reason_of(FileNotFoundError(2, "No such file or directory")) == (
        "no such file or directory"
    )
    assert reason_of(BlockingIOError()) == "blockingioerror"


@each_compression
def test_a_compression_bomb_is_refused(tmp_path: Path, suffix: str) -> None:
    """What expands a thousandfold is refused before it fills anything; small data may."""
    for size, refused in ((FREE_EXPANSION, False), (1 << 26, True)):
        data = b"\n" * size
        packed = COMPRESS[suffix](data)
        path = tmp_path / f"a.svm{suffix}"
        path.write_bytes(packed)
        with open_binary(str(path)) as stream:
            given = 0
            expected = pytest.raises(DataError, match="expand to more than 1000 times")
            with expected if refused else contextlib.nullcontext():
                while more := stream.read(1 << 20):
                    given += len(more)
        assert given <= FREE_EXPANSION + LARGEST_EXPANSION * len(packed)
        assert refused or given == size
