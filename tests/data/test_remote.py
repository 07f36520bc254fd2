"""URLs as operands: what they stand for, and what is refused without being repeated."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpfit.cli.streams import printable
from dpfit.data import remote
from dpfit.data.open import expand_inputs, open_binary, open_seekable
from dpfit.errors import DataError, StorageError, UsageError

fsspec = pytest.importorskip("fsspec")

TEXT = b"".join(b"%d %d:1\n" % (i % 2, i + 1) for i in range(3000))
PASSWORD = "swordfish"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A store in memory, allowed beside those that exist."""
    monkeypatch.setattr(remote, "_STORES", ("s3", "gs", "memory"))
    system = fsspec.filesystem("memory")
    for number in (10, 2, 1):
        system.pipe(f"/bucket/run/part-{number}.svm", TEXT)
    system.pipe("/bucket/run/_SUCCESS", b"")
    system.pipe("/bucket/odd[1].svm", TEXT)
    yield system
    system.rm("/bucket", recursive=True)


def test_what_a_url_stands_for(store: Any) -> None:
    """A file; a folder's parts or a pattern's matches by name; a file whose name is a pattern."""
    parts = [f"memory://bucket/run/part-{number}.svm" for number in (1, 10, 2)]
    assert expand_inputs(["memory://bucket/run"]) == parts
    assert expand_inputs(["memory://bucket/run/"]) == parts
    assert expand_inputs(["memory://bucket/run/part-*.svm"]) == parts
    assert expand_inputs(["memory://bucket/run/part-?.svm"]) == [parts[0], parts[2]]
    assert expand_inputs(["memory://bucket/odd[1].svm"]) == ["memory://bucket/odd[1].svm"]
    assert expand_inputs([parts[1]]) == [parts[1]]


def test_what_a_url_cannot_stand_for(store: Any) -> None:
    """As for local operands: nothing there, a folder in a folder, a file that is named twice."""
    for absent in ("memory://bucket/absent.svm", "memory://bucket/absent-*.svm"):
        with pytest.raises(StorageError):
            expand_inputs([absent])
    with pytest.raises(DataError, match="holds a directory"):
        expand_inputs(["memory://bucket"])
    with pytest.raises(UsageError, match="named twice"):
        expand_inputs(["memory://bucket/run/part-1.svm", "memory://bucket/run"])


def test_bytes_are_those_of_the_file(store: Any) -> None:
    """In order, decompressed by name, or in any order as they are."""
    store.pipe("/bucket/x.svm.gz", gzip.compress(TEXT))
    for name in ("run/part-1.svm", "x.svm.gz"):
        with open_binary(f"memory://bucket/{name}") as stream:
            assert b"".join(iter(lambda: stream.read(777), b"")) == TEXT
    parts = open_seekable("memory://bucket/run/part-1.svm")
    assert parts is not None
    with parts:
        parts.seek(100)
        assert parts.read(50) == TEXT[100:150]
    store.pipe("/bucket/hidden.svm", gzip.compress(TEXT))
    with pytest.raises(DataError, match="which the name does not say"):
        open_binary("memory://bucket/hidden.svm")


@pytest.mark.parametrize(
    "url",
    [
        f"s3://user:{PASSWORD}@bucket/x.svm",
        f"s3://key:{PASSWORD}/more@bucket/x.svm",
        f"https://user:{PASSWORD}@example.org/x.svm",
        f"https://user:{PASSWORD}/more@example.org/x.svm",
        f"https://example.org/x.svm?signature={PASSWORD}",
        f"https://example.org/x.svm#{PASSWORD}",
        f"https://example.org/x.svm%3Fsignature={PASSWORD}",
        f"https://example.org/x.svm%3fsignature%3d{PASSWORD}",
        f"s3://bucket/x.svm?X-Amz-Signature={PASSWORD}",
        f"s3://bucket/x.svm?a=1/2&X-Amz-Signature={PASSWORD}",
        f"s3://bucket/x.svm?versionId={PASSWORD}",
        f"gs://bucket/x.svm%3Fsignature={PASSWORD}",
        f"http://user:{PASSWORD}@example.org/x.svm",
        f"ftp://user:{PASSWORD}@example.org/x.svm",
        f"simplecache::s3://user:{PASSWORD}@bucket/x.svm",
        f"S3://user:{PASSWORD}@bucket/x.svm",
        "http://example.org/x.svm",
        "file:///x.svm",
        "reference://x.svm",
        "s3://",
        "https://example.org",
    ],
)
def test_refused_without_a_word_of_it(url: str) -> None:
    """What may hold a secret, comes in the open or makes fsspec do more than read a file."""
    with pytest.raises(UsageError) as caught:
        expand_inputs([url])
    assert PASSWORD not in f"{caught.value} {caught.value.hint}"
    with pytest.raises(UsageError):
        open_binary(url)


def test_no_line_shows_a_password() -> None:
    """Whatever names a URL, the program's own lines leave out the user's part of it."""
    for sign in ("?", "%3F"):
        query = f"s3://b/x{sign}X-Amz-Signature={PASSWORD}"
        assert printable(f"{query}: no such file") == f"s3://b/x{sign}*** no such file"
    for name in ("s3://b/part-?.svm: no such file", "https://h/date=1/x: no such file"):
        assert printable(name) == name
    for place in (f"u:{PASSWORD}@host/x", f"u:{PASSWORD}/2@host/x", f"{PASSWORD}@host/x"):
        assert printable(f"tls://{place}: not reached") == "tls://***@host/x: not reached"


@pytest.mark.parametrize(
    ("endpoint", "refused"),
    [
        ("http://store.example.org", True),
        ("HTTP://10.0.0.1:9000", True),
        ("http://localhost.example.org", True),
        ("http://127.0.0.1:9000", False),
        ("http://[::1]:9000", False),
        ("http://localhost:9000", False),
        ("https://store.example.org", False),
    ],
)
@pytest.mark.parametrize("setting", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "file"])
def test_a_store_in_the_open_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, setting: str, endpoint: str, refused: bool
) -> None:
    """Whichever setting names a plain endpoint, unless it is on this machine; it is not repeated,
    and nothing is sent."""
    s3fs = pytest.importorskip("s3fs")
    s3fs.S3FileSystem.clear_instance_cache()
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", PASSWORD)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    if setting == "file":
        settings = tmp_path / "config"
        settings.write_text(f"[default]\nendpoint_url = {endpoint}\n")
        monkeypatch.setenv("AWS_CONFIG_FILE", str(settings))
    else:
        monkeypatch.setenv(setting, endpoint)
    sent: list[str] = []
    monkeypatch.setattr(s3fs.S3FileSystem, "exists", lambda _, url: bool(sent.append(url)))
    monkeypatch.setattr(s3fs.S3FileSystem, "info", lambda _, url: sent.append(url) or _FILE)
    if not refused:
        assert remote.remote_entries("s3://bucket/x.svm") is None
        return
    with pytest.raises(UsageError, match="in the open") as caught:
        remote.remote_entries("s3://bucket/x.svm")
    assert "store.example" not in f"{caught.value} {caught.value.hint}"
    assert not sent


_FILE = {"name": "bucket/x.svm", "type": "file"}


def test_an_emulated_store_in_the_open_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Google's client takes a plain endpoint from the environment as well."""
    pytest.importorskip("gcsfs").GCSFileSystem.clear_instance_cache()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://store.example.org")
    with pytest.raises(UsageError, match="in the open"):
        remote.remote_entries("gs://bucket/x.svm")


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra one line says how to install it."""
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(UsageError, match="not installed") as caught:
        expand_inputs(["s3://bucket/x.svm"])
    assert caught.value.hint == "install them with: pip install 'dpfit[remote]'"


class _Failing:
    """A file that fails when it is read."""

    def read(self, _size: int) -> bytes:
        raise ConnectionError(f"GET ?signature={PASSWORD}")

    def close(self) -> None: ...


@pytest.mark.parametrize("name", ["x.svm", "x.svm.gz", "x.svm.zst"])
def test_a_failure_while_reading_is_one_line(
    store: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Of the program's own words and the kind of error: another's message may hold a secret."""
    store.pipe(f"/bucket/{name}", TEXT)
    monkeypatch.setattr(type(store), "open", lambda *_args, **_options: _Failing())
    with pytest.raises(StorageError) as caught:
        open_binary(f"memory://bucket/{name}")
    assert str(caught.value) == (
        f"memory://bucket/{name}: cannot be reached or read (ConnectionError)"
    )


@pytest.mark.parametrize(
    ("url", "stem"),
    [
        ("s3://bucket/run/part-*.svm", "part.svm"),
        ("s3://bucket/run/*.svm", "run"),
        ("s3://*", "remote"),
        ("s3://bucket/run/", "run"),
        ("https://example.org/a/x.csv.gz", "x.csv.gz"),
        ("s3://bucket/x-[0-9]?.svm", "x.svm"),
    ],
)
def test_what_files_behind_a_url_are_called(url: str, stem: str) -> None:
    """Model and ledger are named by the last part, without the signs of a pattern."""
    assert remote.stem_of(url) == stem
