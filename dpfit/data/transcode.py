"""Turn text of a declared encoding into UTF-8 while it is read."""

from __future__ import annotations

import codecs
import io
from typing import BinaryIO, cast

from dpfit.errors import DataError, UsageError


def is_utf8(encoding: str) -> bool:
    """Whether the encoding needs no change.

    Raises
    ------
    UsageError
        It is no text encoding.
    """
    try:
        info = codecs.lookup(encoding)
        usable = info._is_text_encoding
    except (LookupError, ValueError):
        usable = False
    # Escape codecs build text by evaluating it; they are no encodings of files.
    if not usable or info.name in ("unicode_escape", "raw_unicode_escape", "idna", "punycode"):
        raise UsageError(
            "--encoding names no known text encoding", hint="for instance utf-8, latin-1 or utf-16"
        )
    return info.name in ("utf-8", "utf-8-sig", "ascii")


class TranscodedStream(io.RawIOBase):
    """A binary stream of UTF-8 made from one of another encoding."""

    def __init__(self, source: BinaryIO, path: str, encoding: str) -> None:
        self._source = source
        self._path = path
        self._decoder = codecs.getincrementaldecoder(encoding)("strict")
        self._line = 1
        self._held = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while not self._held and not self._ended:
            raw = self._source.read(size if size > 0 else 1 << 20)
            self._ended = not raw
            self._held = self._decoded(raw)
        if size < 0:
            size = len(self._held)
        out, self._held = self._held[:size], self._held[size:]
        return out

    def _decoded(self, raw: bytes) -> bytes:
        try:
            data = self._decoder.decode(raw, final=self._ended).encode("utf-8")
        except UnicodeError as error:
            line = self._line
            if isinstance(error, UnicodeDecodeError):
                line += error.object[: error.start].count(b"\n")
            raise DataError(
                "the text is not in the declared encoding",
                path=self._path,
                line=line,
                hint="see --encoding",
            ) from None
        self._line += data.count(b"\n")
        return data

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()


def as_utf8(stream: BinaryIO, path: str, encoding: str) -> BinaryIO:
    """The stream itself if it is UTF-8 already, else its transcoded form."""
    if is_utf8(encoding):
        return stream
    return cast(BinaryIO, TranscodedStream(stream, path, encoding))
