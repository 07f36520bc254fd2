"""Inputs from a store and a web server of this machine: the same models, one line for failures."""

from __future__ import annotations

import gzip
import json
import os
import ssl
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from certificates import Certificates, certificates

pytest.importorskip("aiohttp")
pytest.importorskip("s3fs")

DATASET = ("--dataset", "rows")
BUDGET = ("--eps", "4", "--delta", "0.001", "--seed", "1", "--force", *DATASET)
ROWS = (*BUDGET, "--sparsity", "3", "--algo", "dp-ight", "--labels=-1,1")
TABLE = (*ROWS, "--label", "y")
WIDE = (*TABLE, "--schema", "schema.toml")
RATINGS = (*BUDGET, "--range", "1", "5", "--user", "u", "--item", "i", "--value", "v")
SECRET = "swordfish"

# The test server of S3 in its own process: what it imports may warn.
MOTO = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.disable(logging.CRITICAL)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print("http://%s:%d" % server.get_host_and_port(), flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Store:
    """A server of S3's protocol, and how a process is told of it."""

    endpoint: str
    process: subprocess.Popen[str]

    @property
    def env(self) -> dict[str, str]:
        return {
            **os.environ,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_MAX_ATTEMPTS": "1",
        }

    def put(self, name: str, content: bytes = b"") -> None:
        headers = {"Content-Type": "application/octet-stream"}
        request = urllib.request.Request(f"{self.endpoint}/{name}", content, headers, method="PUT")
        urllib.request.urlopen(request, timeout=300).close()


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    pytest.importorskip("moto")
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", MOTO], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        endpoint = process.stdout.readline().strip()
        if not endpoint:
            pytest.skip("moto's server does not start here")
        made = Store(endpoint, process)
        made.put("bucket")
        yield made
        process.kill()


@dataclass
class Web:
    """What an HTTPS server gives, and how many bytes it gave as parts of files."""

    files: dict[str, bytes] = field(default_factory=dict)
    given: int = 0
    redirect: str = ""
    address: str = ""
    env: dict[str, str] = field(default_factory=dict)


def handler_of(web: Web) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, *, body: bool) -> None:
            content = web.files.get(self.path)
            if self.path == "/moved.svm":
                self.head(302, 0, ("Location", web.redirect))
            elif self.path == "/forbidden.svm":
                self.head(403, 0)
            elif content is None:
                self.head(404, 0)
            elif self.path.startswith("/cut"):
                self.head(200, len(content))
                self.wfile.write(content[: len(content) // 2] if body else b"")
                self.close_connection = True
            else:
                self.part(content, body=body)

        def part(self, content: bytes, *, body: bool) -> None:
            wanted = self.headers.get("Range")
            if wanted is None or self.path.startswith("/whole"):
                self.head(200, len(content))
                part = content
            else:
                first, last = (int(text) for text in wanted.removeprefix("bytes=").split("-"))
                part = content[first : last + 1]
                where = f"bytes {first}-{first + len(part) - 1}/{len(content)}"
                self.head(206, len(part), ("Content-Range", where))
                web.given += len(part)
            if body:
                self.wfile.write(part)

        def head(self, status: int, length: int, *others: tuple[str, str]) -> None:
            self.send_response(status)
            for name, value in (("Content-Length", str(length)), *others):
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    return Handler


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates(tmp_path_factory.mktemp("https"), "127.0.0.1")


@pytest.fixture
def web(identity: Certificates) -> Iterator[Web]:
    """An HTTPS server whose authority the environment of a process may name."""
    served = Web(env={**os.environ, "SSL_CERT_FILE": identity.authority})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(served))
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    served.address = f"https://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield served
    server.shutdown()
    thread.join()
    server.server_close()


def same(folder: Path, one: str, other: str) -> bool:
    return (folder / one).read_bytes() == (folder / other).read_bytes()


@pytest.fixture
def tables(dpfit: Any) -> dict[str, bytes]:
    """The same rows in two formats, and ratings."""
    rows = [(i % 9, (i * 7) % 5, 1 if i % 9 > 4 else -1) for i in range(60)]
    columns = dict(zip("aby", zip(*rows, strict=True), strict=True))
    text = "".join(f"{a},{b},{y}\n" for a, b, y in rows)
    (dpfit.folder / "t.csv").write_text("a,b,y\n" + text)
    # Of three columns one is long: what is not read needs not be fetched.
    padding = [os.urandom(20_000) for _ in rows]
    pq.write_table(pa.table({**columns, "long": padding}), dpfit.folder / "t.parquet")
    (dpfit.folder / "schema.toml").write_text('[columns]\nlong = { role = "ignore" }\n')
    ratings = "".join(f"u{i % 20},i{i % 7},{1 + i % 5}\n" for i in range(140))
    (dpfit.folder / "r.csv").write_text("u,i,v\n" + ratings)
    names = ("t.csv", "t.parquet", "r.csv")
    return {name: (dpfit.folder / name).read_bytes() for name in names}


def test_parts_in_a_store(dpfit: Any, store: Store) -> None:
    """A pattern, a folder and a compressed file fit the model of the file here, to the bit, and
    predict what it predicts; the ledger and the model's name come from the URL's last part."""
    lines = (dpfit.folder / dpfit.svm()).read_bytes().splitlines(keepends=True)
    for number in range(3):
        store.put(f"bucket/run/part-{number}.svm", b"".join(lines[20 * number : 20 * number + 20]))
    store.put("bucket/run/_SUCCESS")
    store.put("bucket/one.svm.gz", gzip.compress(b"".join(lines)))
    assert dpfit.here("fit", "tiny.svm", *ROWS, "-o", "wanted.json").status == 0
    for url in ("s3://bucket/run/part-*.svm", "s3://bucket/run", "s3://bucket/one.svm.gz"):
        ended = dpfit("fit", url, *ROWS, env=store.env)
        assert ended.status == 0, ended.err
        stem = {"*": "part", "n": "run", "z": "one"}[url[-1] if "*" not in url else "*"]
        assert same(dpfit.folder, f"{stem}.model.json", "wanted.json")
        ledger = (dpfit.folder / f"{stem}.ledger.json").read_text()
        assert SECRET not in ledger
        assert json.loads(ledger)["entries"][-1]["kind"] == "released"
    wanted = dpfit.here("predict", "wanted.json", "tiny.svm", "--proba")
    assert dpfit("predict", "wanted.json", "s3://bucket/run", "--proba", env=store.env) == wanted


def test_tables_and_ratings_in_a_store(dpfit: Any, store: Store, tables: dict[str, bytes]) -> None:
    """CSV, Parquet read by parts, and ratings."""
    for name, content in tables.items():
        store.put(f"bucket/{name}", content)
    for name, command, options in (
        ("t.csv", "fit", TABLE),
        ("t.parquet", "fit", WIDE),
        ("r.csv", "complete-matrix", RATINGS),
    ):
        assert dpfit.here(command, name, *options, "-o", "wanted").status == 0
        ended = dpfit(command, f"s3://bucket/{name}", *options, "-o", "found", env=store.env)
        assert ended.status == 0, ended.err
        assert same(dpfit.folder, "found", "wanted"), name


def test_workers_of_a_cluster_read_a_store(dpfit: Any, store: Store) -> None:
    """Each worker fetches its own files; the model is that of one process."""
    pytest.importorskip("distributed")
    lines = (dpfit.folder / dpfit.svm()).read_bytes().splitlines(keepends=True)
    for number in range(2):
        store.put(f"bucket/two/{number}.svm", b"".join(lines[30 * number : 30 * number + 30]))
    assert dpfit.here("fit", "tiny.svm", *ROWS, "-o", "wanted.json").status == 0
    where = ("--cluster", "local:2", "-o", "found.json")
    ended = dpfit("fit", "s3://bucket/two/*.svm", *ROWS, *where, env=store.env)
    assert ended.status == 0, ended.err
    assert same(dpfit.folder, "found.json", "wanted.json")


def test_failures_of_a_store_are_one_line(dpfit: Any, store: Store) -> None:
    """What is not there or does not answer is status 5, and shows no credential."""
    nowhere = {**store.env, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    for url, env, told in (
        ("s3://bucket/absent.svm", store.env, "s3://bucket/absent.svm: no such file"),
        ("s3://absent/x-*.svm", store.env, "s3://absent/x-*.svm: "),
        ("s3://bucket/x.svm", nowhere, "s3://bucket/x.svm: cannot be reached or read ("),
    ):
        ended = dpfit("fit", url, *ROWS, env=env)
        assert ended.status == 5, ended.err
        assert ended.err.startswith(f"dpfit: error: {told}"), ended.err
        assert ended.err.count("\n") <= 2
        assert SECRET not in ended.err
    assert not list(dpfit.folder.glob("*.ledger.json"))


def test_a_web_server(dpfit: Any, web: Web, tables: dict[str, bytes]) -> None:
    """Text comes as it is read; of a Parquet file only what is wanted, or all of it where the
    server knows no parts."""
    web.files = {f"/{name}": content for name, content in tables.items()}
    web.files["/whole.parquet"] = tables["t.parquet"]
    web.files["/t.csv.gz"] = gzip.compress(tables["t.csv"])
    for name, local, options in (
        ("t.csv", "t.csv", TABLE),
        ("t.csv.gz", "t.csv", TABLE),
        ("t.parquet", "t.parquet", WIDE),
        ("whole.parquet", "t.parquet", WIDE),
    ):
        assert dpfit.here("fit", local, *options, "-o", "wanted").status == 0
        web.given = 0
        ended = dpfit("fit", f"{web.address}/{name}", *options, "-o", "found", env=web.env)
        assert ended.status == 0, ended.err
        assert same(dpfit.folder, "found", "wanted"), name
        if name == "t.parquet":
            assert 0 < web.given < len(tables[name]) // 2


def test_failures_of_a_web_server_are_one_line(dpfit: Any, web: Web) -> None:
    """Missing, forbidden, cut short, moved to where it would come in the open, or of an authority
    that nobody named: status 5, and nothing charged."""
    rows = (dpfit.folder / dpfit.svm()).read_bytes()
    web.files = {"/cut.svm": rows * 50, "/x.svm": rows}
    web.redirect = web.address.replace("https", "http") + "/x.svm"
    others = {name: value for name, value in web.env.items() if name != "SSL_CERT_FILE"}
    for name, env, told in (
        ("absent.svm", web.env, "no such file"),
        ("forbidden.svm", web.env, "permission denied"),
        ("cut.svm", web.env, "cannot be reached or read (ClientPayloadError)"),
        ("moved.svm", web.env, "cannot be reached or read (ConnectionRefusedError)"),
        ("x.svm", others, "cannot be reached or read (ClientConnectorCertificateError)"),
    ):
        ended = dpfit("fit", f"{web.address}/{name}", *ROWS, env=env)
        assert ended.status == 5, (name, ended.err)
        errors = [line for line in ended.err.splitlines() if "error" in line]
        assert errors == [f"dpfit: error: {web.address}/{name}: {told}"], ended.err
    assert not list(dpfit.folder.glob("*.ledger.json"))


def test_a_secret_in_any_operand_is_not_repeated(dpfit: Any) -> None:
    """Also where no URL belongs, and in JSON."""
    url = f"https://user:{SECRET}@127.0.0.1/x.svm"
    query = f"s3://bucket/x.svm?X-Amz-Signature={SECRET}"
    for arguments in (
        ("fit", url, *ROWS),
        ("predict", url, "x.svm"),
        ("predict", url, "x.svm", "--json"),
        ("fit", "x.svm", *ROWS, "--schema", url),
        ("fit", "x.svm", *ROWS, "--cluster", f"tls://user:{SECRET}@127.0.0.1:9"),
        ("complete-matrix", url, *RATINGS),
        ("budget", url),
        ("fit", query, *ROWS),
        ("predict", query, "x.svm", "--json"),
        ("fit", "x.svm", *ROWS, "--schema", query),
        ("complete-matrix", query, *RATINGS),
    ):
        ended = dpfit.here(*arguments)
        assert ended.status in (2, 5), ended.err
        assert SECRET not in ended.err + ended.out, arguments
