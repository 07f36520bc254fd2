"""Records as they were read, on the finest grid, until the public facts say what they become."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.data.id_table import IdTable
from dpfit.data.rows import RowBlock
from dpfit.design.builder import DesignBuilder
from dpfit.design.grid import Grid
from dpfit.design.kept_file import KeptFile, KeptRows
from dpfit.design.owner_rows import OwnerRows
from dpfit.design.storage import Storage
from dpfit.errors import DataError
from dpfit.privacy.owner_choice import chosen_rows, contents_of
from dpfit.privacy.private_records import PrivateRecords
from dpfit.privacy.questions import Records
from dpfit.privacy.stays_here import StaysHere
from dpfit.privacy.summary import Label, Summary, Target
from dpfit.privacy.target_map import class_numbers, in_range

Floats: TypeAlias = NDArray[np.float64]
Array: TypeAlias = NDArray[Any]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class RecordMap:
    """The public map from records as read to private records.

    Attributes
    ----------
    grid : Grid
        As fine as that of the collection or coarser.
    n_features : int
        d.
    index_base : int
        Number of the first column.
    classes : tuple of labels, or None
        Whose numbers targets become.
    target_range : (float, float) or None
        What becomes [0, 1], otherwise.
    log_exposure : float
        Taken off every offset, and cuts it.
    max_weight : float or None
        What weights are shares of, and cut at; None without weights.
    max_rows : int or None
        Rows of a privacy unit that take part; None where each record is one of its own.
    """

    grid: Grid
    n_features: int
    index_base: int
    classes: tuple[Label, ...] | None
    target_range: tuple[float, float] | None
    log_exposure: float | None
    max_weight: float | None
    max_rows: int | None = None


class Collected(Protocol):
    """Records as read, wherever they stand."""

    def summary(self) -> Summary:
        """What is read off them."""
        ...

    def records(self, record_map: RecordMap) -> Records:
        """The private records; what was collected is used up."""
        ...


class CollectedRecords(StaysHere):
    """Takes blocks as they are read.

    Parameters
    ----------
    grid : Grid
        The record map at its finest; coarsened when the number of records asks for it.
    source : str
        What to call the input in messages.
    threads : int
        For the design.
    storage : Storage
        Where the rows stand.
    file : KeptFile, optional
        Where they are kept beyond that.
    """

    def __init__(
        self,
        grid: Grid,
        source: str,
        *,
        threads: int,
        storage: Storage,
        file: KeptFile | None = None,
    ) -> None:
        self._builder = DesignBuilder(grid, threads, storage, file)
        self._source = source
        self._targets: list[Target] = []
        self._offsets: list[Floats] = []
        self._weights: list[Floats] = []
        self._identifiers = IdTable()
        self._owners: list[Integers] = []

    def collect(self, blocks: Iterable[RowBlock]) -> None:
        """Quantise every block; its floats are not kept."""
        self._builder.collect(map(self._noted, blocks))

    def _noted(self, block: RowBlock) -> RowBlock:
        """Take up all that a block holds beside its rows."""
        if block.target is None:
            raise DataError("holds no target", path=self._source)
        self._targets.append(block.target)
        if block.offset is not None:
            self._offsets.append(block.offset)
        if block.weight is not None:
            self._weights.append(block.weight)
        if block.owner is not None:
            self._owners.append(self._identifiers.codes(block.owner))
        return block

    def beside_rows(self) -> dict[str, Array]:
        """All that was collected but the rows, as arrays of numbers."""
        parts = {"offset": self._offsets, "weight": self._weights}
        held: dict[str, Array] = {name: _joined(part) for name, part in parts.items() if part}
        if self._owners:
            held["owner"] = np.concatenate(self._owners)
            held["units"] = _encoded(self._identifiers.texts)
        target = _joined(self._targets)
        if target.dtype != object:
            return {**held, "target": target}
        texts, codes = np.unique(target, return_inverse=True)
        return {**held, "codes": codes, "texts": _encoded(texts.tolist())}

    def take_over(self, kept: KeptRows) -> None:
        """Have what another run collected."""
        beside = kept.beside
        self._builder.take_over(kept.chunks)
        self._offsets = [beside["offset"]] if "offset" in beside else []
        self._weights = [beside["weight"]] if "weight" in beside else []
        if "owner" in beside:
            self._owners = [beside["owner"]]
            self._identifiers = IdTable(json.loads(beside["units"].tobytes()))
        if "target" in beside:
            self._targets = [beside["target"]]
        else:
            texts = json.loads(beside["texts"].tobytes())
            self._targets = [np.array(texts, object)[beside["codes"]]]

    def summary(self) -> Summary:
        """What is read off the records."""
        columns = self._builder.column_range()
        summary = Summary.of(columns, self._targets, self._offsets, self._weights)
        return replace(summary, n_owners=len(self._identifiers)) if self._owners else summary

    def records(self, record_map: RecordMap, first: int = 0) -> PrivateRecords:
        """The private records; what was collected is used up.

        Parameters
        ----------
        record_map : RecordMap
            Public.
        first : int
            Position of the first of them among all records.
        """
        if record_map.classes is not None:
            target = self._class_target(record_map.classes)
        else:
            assert record_map.target_range is not None
            target = in_range(_joined(self._targets), record_map.target_range)
        design = self._builder.build(
            record_map.n_features, grid=record_map.grid, index_base=record_map.index_base
        )
        offset, shares = self._offset(record_map), self._shares(record_map)
        records = PrivateRecords(design, target, offset, shares, first)
        if record_map.max_rows is None:
            return records
        return self._by_owner(records, record_map.max_rows)

    def _by_owner(self, records: PrivateRecords, most: int) -> PrivateRecords:
        """The records of each unit that take part, side by side."""
        owners = np.concatenate([np.zeros(0, np.int64), *self._owners])
        attributes = (records.target, records.offset, records.shares)
        contents = contents_of(
            records.design.row_digests(), attributes, owners, self._identifiers.texts
        )
        chosen = chosen_rows(owners, contents, most)
        counts = np.bincount(owners[chosen], minlength=len(self._identifiers))
        target, offset, shares = (a if a is None else a[chosen] for a in attributes)
        assert target is not None
        design = records.design.in_order(chosen, counts)
        starts = np.append(0, np.cumsum(counts))
        by_owner = OwnerRows(design, starts)
        return PrivateRecords(design, target, offset, shares, owners=by_owner)

    def _class_target(self, classes: tuple[Label, ...]) -> Floats:
        """Targets as the numbers of their classes, from 0."""
        numbers = _joined([class_numbers(target, classes) for target in self._targets])
        if np.any(numbers < 0.0):
            raise DataError(  # readers check declared labels and tell the line: a backstop
                "has a label that is not among the declared ones",
                path=self._source,
                hint="correct --labels or the schema (case and blanks matter)",
            )
        return numbers

    def _offset(self, record_map: RecordMap) -> Floats | None:
        """Offsets; those of counts below the largest exposure's, which cuts them."""
        if not self._offsets:
            return None
        offset = np.concatenate(self._offsets)
        if record_map.log_exposure is None:
            return offset
        return np.asarray(np.fmin(offset - record_map.log_exposure, 0.0))

    def _shares(self, record_map: RecordMap) -> Floats | None:
        """Weights over their public maximum, which cuts them."""
        if record_map.max_weight is None:
            return None
        weights = _joined(self._weights)
        return np.asarray(np.fmin(weights, record_map.max_weight) / record_map.max_weight)


def _encoded(texts: list[str]) -> Array:
    return np.frombuffer(json.dumps(texts).encode(), np.uint8)


def _joined(parts: list[Floats] | list[Target]) -> Floats:
    return np.concatenate(parts or [np.zeros(0)])
