"""Model files before it is known of what kind they are."""

from __future__ import annotations

from typing import Final

from dpfit.errors import StorageError, reason_of

_PARQUET: Final = b"PAR1"


def read_model_file(path: str) -> bytes:
    """The content of a model file.

    Raises
    ------
    StorageError
        The file cannot be read.
    """
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {reason_of(error)}") from None


def is_of_factors(content: bytes) -> bool:
    """Whether it is a factor model, if it is a model at all."""
    return content.startswith(_PARQUET)
