"""Inputs behind a URL: objects of a store and files of a web server, read as they arrive.

A URL holds no secret, since it would be seen in lists of processes and in messages: credentials are
those that the store's own tools take from the environment.
"""

from __future__ import annotations

import difflib
import io
import ipaddress
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, cast
from urllib.parse import urlsplit

from dpfit.errors import DpfitError, StorageError, UsageError

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.:-]*://")  # also what fsspec would chain
_STORES: Final = ("s3", "gs")
_WEB: Final = "https"
_BUCKET: Final = re.compile(r"[\w.-]+(/.*)?", re.ASCII | re.DOTALL)
_PAGE: Final = re.compile(r"[\w.-]+(:[0-9]+)?/[^?#@]+", re.ASCII | re.DOTALL)
# A store takes names with a question mark, and so does a pattern; a signature has an equals sign.
_QUERY: Final = re.compile(r"(\?|%3f).*(=|%3d)", re.IGNORECASE | re.DOTALL)
_PATTERN: Final = re.compile(r"[*?\[]")
_AHEAD: Final = 4 << 20  # bytes asked of a store at once
_TALKERS: Final = ("fsspec", "s3fs", "gcsfs", "aiobotocore", "botocore", "aiohttp", "asyncio")
_PATIENCE: Final = 30.0  # seconds to reach a web server, and for its next bytes


def is_remote(operand: str) -> bool:
    """Whether an operand is a URL, of whatever scheme."""
    return _URL.match(operand) is not None


def check_url(url: str) -> str:
    """The scheme of a URL that can be read and holds no secret.

    Raises
    ------
    UsageError
        Of any other; the message does not repeat it.
    """
    scheme, _, rest = url.partition("://")
    if scheme not in (*_STORES, _WEB):
        raise UsageError("a remote input is s3://, gs:// or https://", hint=_way_to_read(scheme))
    place = (_PAGE if scheme == _WEB else _BUCKET).fullmatch(rest)
    if place is None or _QUERY.search(rest):
        raise UsageError(
            "a URL must name a bucket or host and a file, without user, password or query",
            hint="credentials come from the environment; see dpfit-fit(1)",
        )
    return scheme


def _way_to_read(scheme: str) -> str:
    """What to do about a URL of another scheme."""
    if scheme == "file":
        return "name the file without file://"
    if scheme == "http":
        return "what comes in the open is not read; fetch it first if it may"
    near = difflib.get_close_matches(scheme.lower(), (*_STORES, _WEB), 1)
    return f"did you mean {near[0]}://?" if near else "fetch the file first, and name the copy"


def remote_entries(url: str) -> dict[str, bool] | None:
    """What a URL of a store stands for, and whether each is a folder itself.

    Parameters
    ----------
    url : str
        A file, a folder, or a pattern with ``*``, ``?`` or ``[...]`` that is no file's name.

    Returns
    -------
    dict of str to bool, or None
        URLs in order of their names; None for a file, which is all there is.

    Raises
    ------
    UsageError
        See `check_url`; or what reads such a URL is not installed.
    StorageError
        It does not exist or cannot be reached.
    """
    scheme = check_url(url)
    with _told(url):
        system = _system(scheme)
        if scheme == _WEB or not _PATTERN.search(url) or system.exists(url):
            found = system.info(url)
            if scheme == _WEB or found["type"] != "directory":
                return None
            own = found["name"].strip("/")
            entries = [e for e in system.ls(url, detail=True) if e["name"].strip("/") != own]
        else:
            matched = system.glob(url, detail=True).values()
            entries = [entry for entry in matched if entry["type"] == "file"]
            if not entries:
                raise StorageError(f"{url}: matches no file", hint="is the pattern right?")
    folders = {entry["name"].strip("/"): entry["type"] == "directory" for entry in entries}
    return {f"{scheme}://{name}": folders[name] for name in sorted(folders)}


def open_remote(url: str) -> BinaryIO:
    """The bytes of a file from its beginning, in one answer or in large parts; nothing is kept.

    Raises
    ------
    UsageError, StorageError
        As `remote_entries`. Reading raises `StorageError`.
    """
    scheme = check_url(url)
    with _told(url):
        if scheme == _WEB:
            source = _system(scheme).open(url, "rb", block_size=0)
        else:
            source = _system(scheme).open(url, "rb", cache_type="readahead", block_size=_AHEAD)
    return cast(BinaryIO, _Remote(source, url))


def open_parts(url: str) -> BinaryIO | None:
    """A file of which parts can be asked for; None where a server gives it as a whole only."""
    with _told(url):
        parts = _Remote(_system(check_url(url)).open(url, "rb", cache_type="none"), url)
    try:
        parts.seek(-1, os.SEEK_END)
        parts.read(1)
        parts.seek(0)
    except StorageError:
        parts.close()
        return None
    return cast(BinaryIO, parts)


def stem_of(url: str) -> str:
    """What to call the files behind a URL: the last part that is more than a pattern's signs."""
    for part in reversed(url.partition("://")[2].split("/")):
        name = re.sub(r"[-_]*(\*|\?|\[[^]]*\])+", "", part)
        if name and not name.startswith("."):
            return name
    return "remote"


class _Remote(io.RawIOBase):
    """A remote file whose failures are the errors a user can read."""

    def __init__(self, source: Any, url: str) -> None:
        self._source = source
        self._url = url

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._source.seekable())

    def read(self, size: int = -1) -> bytes:
        with _told(self._url):
            return bytes(self._source.read(size))

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        with _told(self._url):
            return int(self._source.seek(offset, whence))

    def tell(self) -> int:
        with _told(self._url):
            return int(self._source.tell())

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()


@contextmanager
def _told(url: str) -> Iterator[None]:
    """One line for whatever the network does; others' messages may hold what is secret."""
    try:
        yield
    except (DpfitError, MemoryError):
        raise
    except ImportError:
        raise UsageError(
            f"{url.partition('://')[0]}:// needs packages that are not installed",
            hint="install them with: pip install 'dpfit[remote]'",
        ) from None
    except Exception as error:
        reason, hint = _reason(error)
        raise StorageError(f"{url}: {reason}", hint=hint) from None


def _reason(error: BaseException) -> tuple[str, str | None]:
    """What went wrong, and what to do."""
    cause = error.__cause__
    status = getattr(error, "status", None)
    if isinstance(error, FileNotFoundError):
        # fsspec says so of everything that a web server's answer, or its silence, can mean.
        if isinstance(cause, OSError) or getattr(cause, "status", 404) != 404:
            return _reason(cause)  # type: ignore[arg-type]
        return "no such file", "is the URL right?"
    if isinstance(error, PermissionError) or status in (401, 403):
        return "permission denied", "credentials come from the environment; see dpfit-fit(1)"
    told = f"HTTP {status}" if isinstance(status, int) else type(error).__name__
    return f"cannot be reached or read ({told})", "is the URL right, and the network there?"


def _system(scheme: str) -> Any:
    import fsspec

    for name in _TALKERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    # What a listing said before may be old: a worker of a cluster lives for days.
    options = _web_options() if scheme == _WEB else {}
    system = fsspec.filesystem(scheme, use_listings_cache=False, **options)
    _check_endpoint(_endpoint(system, scheme))
    return system


def _endpoint(system: Any, scheme: str) -> str:
    """Where a store is asked, whichever setting says so; empty for what is no store."""
    if scheme == "s3":
        return str(system.s3.meta.endpoint_url)
    return str(system.base) if scheme == "gs" else ""


def _check_endpoint(endpoint: str) -> None:
    """Refuse a store whose rows would cross a network in the open."""
    parts = urlsplit(endpoint)
    if parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
        raise UsageError(
            "the store's endpoint is http://: rows would come in the open",
            hint="set an https:// endpoint, as AWS_ENDPOINT_URL; http:// is for this machine only",
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _web_options() -> dict[str, Any]:
    """Encrypted also after redirections, as the file is, and with no bound on the whole time."""
    from aiohttp import ClientTimeout, TraceConfig

    async def refuse_plain(_session: Any, _context: Any, redirect: Any) -> None:
        headers = redirect.response.headers
        if urlsplit(headers.get("Location") or headers.get("URI", "")).scheme not in ("", _WEB):
            raise ConnectionRefusedError

    trace = TraceConfig()
    trace.on_request_redirect.append(refuse_plain)
    waits = ClientTimeout(total=None, sock_connect=_PATIENCE, sock_read=_PATIENCE)
    client = {"trust_env": True, "timeout": waits, "trace_configs": [trace]}
    return {
        "client_kwargs": client,
        "headers": {"Accept-Encoding": "identity"},
        "skip_instance_cache": True,
    }
