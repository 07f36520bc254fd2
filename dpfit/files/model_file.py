"""Model files before it is known of what kind they are."""

from __future__ import annotations

from typing import Final

from dpfit.errors import DataError, StorageError, reason_of

LARGEST_MODEL: Final = 1 << 30  # bytes; of a device there is no end
_PARQUET: Final = b"PAR1"
_CHUNK: Final = 1 << 24


def read_model_file(path: str) -> bytes:
    """The content of a model file.

    Raises
    ------
    StorageError
        The file cannot be read.
    DataError
        It is larger than a model can be.
    """
    chunks: list[bytes] = []
    size = 0
    try:
        with open(path, "rb") as stream:
            while chunk := stream.read(_CHUNK):
                size += len(chunk)
                if size > LARGEST_MODEL:
                    raise DataError("is larger than a model can be", path=path)
                chunks.append(chunk)
    except OSError as error:
        raise StorageError(
            f"{path}: cannot be read: {reason_of(error)}",
            hint="is it the model, a file that you may read?",
        ) from None
    return b"".join(chunks)


def is_of_factors(content: bytes) -> bool:
    """Whether it is a factor model, if it is a model at all."""
    return content.startswith(_PARQUET)
