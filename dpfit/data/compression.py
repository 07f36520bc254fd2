"""Transparent decompression of gzip, bzip2, xz and zstd streams, strict about what follows."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import BinaryIO, Protocol, cast

from dpfit.errors import DataError, StorageError, reason_of

SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}

MAGIC = {
    "gzip": b"\x1f\x8b",
    "bzip2": b"BZh",
    "xz": b"\xfd7zXZ\x00",
    "zstd": b"\x28\xb5\x2f\xfd",
}
MAGIC_BYTES = 6
_ZSTD_SKIPPABLE = tuple(bytes([low, 0x2A, 0x4D, 0x18]) for low in range(0x50, 0x60))
_CHUNK = 1 << 20
LARGEST_EXPANSION = 1000  # times the compressed bytes; data compress by some tens
FREE_EXPANSION = 1 << 24  # bytes that any input may expand to


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


def compression_of(head: bytes) -> str | None:
    """Name of the compression whose magic bytes start ``head``, or None."""
    for name, magic in MAGIC.items():
        if head.startswith(magic):
            return name
    return "zstd" if head.startswith(_ZSTD_SKIPPABLE) else None


class PrefixedStream(io.RawIOBase):
    """``head`` followed by what is left of ``rest``: a peek that works on pipes too."""

    def __init__(self, head: bytes, rest: BinaryIO, *, owned: bool = True) -> None:
        self._head = head
        self._rest = rest
        self._owned = owned

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            head, self._head = self._head, b""
            return head + self._rest.read()
        if self._head:
            head, self._head = self._head[:size], self._head[size:]
            return head
        return self._rest.read(size)

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if self._owned and not self.closed:
            self._rest.close()
        super().close()


class _Counted(io.RawIOBase):
    """Knows how many bytes were taken from a source, which it leaves open."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self.taken = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self.taken += len(data)
        return data


class _Members(io.RawIOBase):
    """Concatenated members of one compressed format.

    The standard library's bz2 and lzma files stop silently at the first bytes they do not know,
    which would drop the rows of a damaged second member.
    """

    def __init__(self, source: BinaryIO, make: Callable[[], _Decompressor], padding: bytes) -> None:
        self._source = source
        self._make = make
        self._padding = padding
        self._member = make()
        self._pending = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()

    def _next_member(self) -> bool:
        rest = self._member.unused_data
        while True:
            rest = rest.lstrip(self._padding) if self._padding else rest
            if rest:
                break
            rest = self._source.read(_CHUNK)
            if not rest:
                return False
        self._member = self._make()
        self._pending = rest
        return True

    def read(self, size: int = -1) -> bytes:
        while not self._ended:
            if self._member.eof:
                self._ended = not self._next_member()
                continue
            if not self._pending and self._member.needs_input:
                self._pending = self._source.read(_CHUNK)
                if not self._pending:
                    raise EOFError
            given, self._pending = self._pending, b""
            data = self._member.decompress(given, size)
            if data or size == 0:
                return data
        return b""


def _zstd_stream(source: BinaryIO) -> BinaryIO:
    # pyarrow is a core dependency and its decoder reads several frames and refuses damaged ones.
    import pyarrow as pa

    return cast(BinaryIO, pa.CompressedInputStream(pa.PythonFile(source, mode="r"), "zstd"))


_OPENERS: dict[str, Callable[[BinaryIO], BinaryIO]] = {
    "gzip": lambda source: cast(BinaryIO, gzip.GzipFile(fileobj=source, mode="rb")),
    "bzip2": lambda source: cast(BinaryIO, _Members(source, bz2.BZ2Decompressor, b"")),
    "xz": lambda source: cast(BinaryIO, _Members(source, lzma.LZMADecompressor, b"\x00")),
    "zstd": _zstd_stream,
}


class CheckedStream(io.RawIOBase):
    """A binary stream whose failures are the errors a user can read.

    Parameters
    ----------
    source : binary file
        What to read, already positioned.
    path : str
        The name to report.
    compression : str, optional
        Key of `MAGIC`; None reads the bytes as they are.
    owned : bool
        Whether closing this stream closes ``source``.
    """

    def __init__(
        self, source: BinaryIO, path: str, compression: str | None = None, *, owned: bool = True
    ) -> None:
        self._path = path
        self._owned = owned
        self._compression = compression
        self._source = source
        self._counted = _Counted(source)
        self._given = 0
        self._stream = source
        if compression is not None:
            self._stream = _OPENERS[compression](cast(BinaryIO, self._counted))

    @property
    def is_compressed(self) -> bool:
        """Whether the bytes read are not those of the source."""
        return self._compression is not None

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        try:
            data = self._stream.read(size) or b""
        except (EOFError, zlib.error, lzma.LZMAError, ValueError):
            raise self._damaged() from None
        except OSError as error:
            # The decoders report damage as OSError without an errno.
            if self._compression is not None and error.errno is None:
                raise self._damaged() from None
            raise StorageError(f"{self._path}: cannot be read: {reason_of(error)}") from None
        self._given += len(data)
        if self._compression is not None:
            self._check_expansion()
        return data

    def _check_expansion(self) -> None:
        """Refuse what is made to fill a machine."""
        most = max(FREE_EXPANSION, LARGEST_EXPANSION * self._counted.taken)
        if self._given > most:
            raise DataError(
                f"the {self._compression} data expand to more than "
                f"{LARGEST_EXPANSION} times their size",
                path=self._path,
                hint="decompress it first if it is what it should be",
            )

    def _damaged(self) -> DataError:
        kind = self._compression or "input"
        return DataError(
            f"the {kind} data are truncated or damaged",
            path=self._path,
            hint="copy or write the file again",
        )

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if self._owned and not self.closed:
            self._stream.close()
            self._source.close()
        super().close()
