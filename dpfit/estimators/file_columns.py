"""Which models have columns that only files have, so that the command line alone predicts."""

from __future__ import annotations

from typing import Any

from dpfit.errors import DataError
from dpfit.files.linear_model import LinearModel


def refuse_columns_of_files(model: LinearModel) -> None:
    """Refuse to predict from arrays where the command line makes the columns.

    Raises
    ------
    DataError
        They come of levels, ranges or hashes, or scores of classes have offsets.
    """
    columns: Any = model.feature_map
    made = columns is not None and any(
        column["role"] != "numeric" or "range" in column for column in columns["columns"]
    )
    shifted = model.offset_column is not None or model.exposure_column is not None
    if made or model.hash_bits is not None or (shifted and model.classes is not None):
        raise DataError(
            "its columns are made of others by levels, ranges, hashes or offsets",
            path="the model",
            hint="predict with `dpfit predict`",
        )
