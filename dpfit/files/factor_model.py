"""The model file of a matrix completion: one Parquet file, one row an item.

The columns are ``item`` (text), ``bias``, ``count`` and ``factor_0`` to ``factor_{r-1}``; what
belongs to all items stands as one JSON document under the key ``dpfit`` of the file's key-value
metadata. Any Parquet reader reads it, and reading runs no code. The released mean of an item is
``global_mean + bias``; what a user adds to it follows from the user's own ratings, this file, and
nothing else. No number in it belongs to a user.

Values are stored plainly, neither compressed nor by dictionary: a file can then hold no more than
its own size says, and the reader refuses others.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpfit.errors import DataError
from dpfit.files.arrow_errors import memory_apart
from dpfit.files.json_checks import (
    NAME_A_MODEL,
    Json,
    as_column,
    as_mapping,
    as_number,
    as_whole,
    no_constant,
    not_a_document,
)
from dpfit.files.model_file import read_model_file
from dpfit.files.parquet_footer import stored_by

SCHEMA: Final = "dpfit-factors/1"
LARGEST_RANK: Final = 64  # each user's solve takes time by its cube

_KEY: Final = b"dpfit"
_ROLES: Final = ("user", "item", "value")
_LARGEST: Final = 1e100  # its square, times any number of items, stays finite
_UNCOMPRESSED: Final = 0
_PLAIN: Final = {0, 3, 4}  # PLAIN; and RLE and BIT_PACKED, which are of levels, not of values


@dataclass(frozen=True)
class FactorModel:
    """Released quantities of the items, and what a user needs to use them.

    Attributes
    ----------
    provenance : mapping
        Program version, algorithm, settings, public facts and charge, as JSON values.
    private : bool
        False for a run without noise or with a seed.
    value_range : (float, float)
        Public bounds of the ratings.
    global_mean : float
    constants : mapping of str to float
        Further numbers of the local solve: ridges, feature standardisation, ...
    columns : mapping of str to (str or None)
        Names of the columns ``user``, ``item`` and ``value`` of the ratings; None without names.
    items : tuple of str
        Distinct identifiers.
    bias : float64 array, shape (n_items,)
    count : float64 array, shape (n_items,)
        Released number of ratings, noise included.
    factors : float64 array, shape (n_items, rank)
    """

    provenance: Json = field(repr=False)
    private: bool
    value_range: tuple[float, float]
    global_mean: float
    constants: Mapping[str, float]
    columns: Mapping[str, str | None]
    items: tuple[str, ...] = field(repr=False)
    bias: NDArray[np.float64]
    count: NDArray[np.float64]
    factors: NDArray[np.float64]

    @property
    def rank(self) -> int:
        return int(self.factors.shape[1])

    @property
    def item_means(self) -> NDArray[np.float64]:
        """What is predicted to a user without ratings, within the range; shape (n_items,)."""
        low, high = self.value_range
        return np.asarray(np.clip(self.global_mean + self.bias, low, high))

    def to_bytes(self) -> bytes:
        """The file; the same model gives the same bytes with the same version of pyarrow."""
        header = {
            "schema": SCHEMA,
            "kind": "factors",
            "private": self.private,
            "value_range": list(self.value_range),
            "global_mean": self.global_mean,
            "rank": self.rank,
            "columns": {role: self.columns[role] for role in _ROLES},
            "constants": {name: self.constants[name] for name in sorted(self.constants)},
            "provenance": self.provenance,
        }
        columns = [
            pa.array(self.items, pa.string()),
            *(pa.array(column) for column in (self.bias, self.count, *self.factors.T)),
        ]
        table = pa.Table.from_arrays(columns, schema=pa.schema(_fields(self.rank)))
        sink = io.BytesIO()
        with pq.ParquetWriter(
            sink,
            table.schema,
            compression="none",
            use_dictionary=False,
            write_statistics=False,
            store_schema=False,
            write_page_checksum=True,
        ) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({_KEY: json.dumps(header, allow_nan=False).encode()})
        return sink.getvalue()


def _fields(rank: int) -> list[pa.Field]:
    numbers = ["bias", "count", *(f"factor_{i}" for i in range(rank))]
    return [
        pa.field("item", pa.string(), nullable=False),
        *(pa.field(name, pa.float64(), nullable=False) for name in numbers),
    ]


def read_factor_model(path: str) -> FactorModel:
    """Read a model file.

    Raises
    ------
    StorageError
        The file cannot be read.
    DataError
        It is not a factor model as this version writes them.
    """
    return parse_factor_model(read_model_file(path), path)


def parse_factor_model(data: bytes, path: str) -> FactorModel:
    """The model of a file with that content; ``path`` is for errors.

    Raises
    ------
    DataError
        It is not a factor model as this version writes them.
    """
    try:
        with memory_apart():
            file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
            header = (file.metadata.metadata or {}).get(_KEY)
    except (pa.ArrowException, OSError, ValueError, TypeError, RuntimeError):
        raise DataError("is not a model file: not Parquet", path=path, hint=NAME_A_MODEL) from None
    if header is None:
        raise DataError(
            "is not a model file: a Parquet file of something else", path=path, hint=NAME_A_MODEL
        )
    try:
        with memory_apart():
            return _model(file, header, data)
    except (pa.ArrowException, OSError, RuntimeError):
        raise DataError("the model file is damaged", path=path) from None
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise not_a_document(SCHEMA, error, path) from None


def _model(file: pq.ParquetFile, header: bytes, data: bytes) -> FactorModel:
    root = _header(header)
    rank = as_whole(root["rank"], "rank", 0, LARGEST_RANK)
    columns = as_mapping(root["columns"], "columns")
    constants = as_mapping(root["constants"], "constants")
    private = root["private"]
    if not isinstance(private, bool):
        raise ValueError("private is neither true nor false")
    _check_layout(file, rank, data)
    items, numbers = _table(file, rank)
    return FactorModel(
        provenance=as_mapping(root["provenance"], "provenance"),
        private=private,
        value_range=_value_range(root["value_range"]),
        global_mean=_bounded(root["global_mean"], "global_mean"),
        constants={name: _bounded(value, "a constant") for name, value in constants.items()},
        columns={role: as_column(columns, role, "columns") for role in _ROLES},
        items=items,
        bias=numbers[0],
        count=numbers[1],
        factors=np.ascontiguousarray(numbers[2:].T),
    )


def _header(header: bytes) -> Json:
    try:
        document = json.loads(header, parse_constant=no_constant)
    except (ValueError, RecursionError):
        raise ValueError("its header is not JSON") from None
    root = as_mapping(document, "the header")
    if root["schema"] != SCHEMA or root["kind"] != "factors":
        raise ValueError("its schema or kind is another")
    return root


def _check_layout(file: pq.ParquetFile, rank: int, data: bytes) -> None:
    """What the file says it holds must be what it has room for."""
    expected = _fields(rank)
    found = file.schema_arrow
    if found.names != [one.name for one in expected]:
        raise ValueError("its columns are others")
    for column, wanted in zip(found, expected, strict=True):
        if column.type != wanted.type:
            raise ValueError(f"column '{wanted.name}' has another type")
    n_items = file.metadata.num_rows
    if n_items < 1:
        raise ValueError("it holds no items")
    if n_items * 8 * (2 + rank) > len(data):
        raise ValueError("it holds more rows than it has room for")
    for codec, encodings in stored_by(data):
        if codec != _UNCOMPRESSED or not encodings <= _PLAIN:
            raise ValueError("its columns are not stored plainly")


def _table(file: pq.ParquetFile, rank: int) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    table = file.read(use_threads=False)
    if any(column.null_count for column in table.columns):
        raise ValueError("a value is missing")
    items = tuple(table.column(0).to_pylist())
    if not all(items) or len(set(items)) != len(items):
        raise ValueError("items must have distinct names")
    numbers = np.stack([column.to_numpy() for column in table.columns[1:]])
    if not np.all(np.abs(numbers) <= _LARGEST):
        raise ValueError("a number is not finite or too large to compute with")
    return items, numbers


def _bounded(value: object, name: str) -> float:
    number = as_number(value, name)
    if abs(number) > _LARGEST:
        raise ValueError(f"{name} is too large to compute with")
    return number


def _value_range(value: object) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("value_range must be two numbers")
    low, high = (_bounded(end, "value_range") for end in value)
    if not (low < high and math.isfinite(high - low)):
        raise ValueError("value_range must increase")
    return low, high
